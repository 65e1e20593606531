package engine_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// A place that says of what was asked for that it began long ago, or will begin, is believed no further than from
// when that life was asked for up to now, whichever answer it says it in.
func TestALieAboutTheStartNeverCostsMore(t *testing.T) {
	t.Parallel()
	var lie time.Time // of the one sandbox that is made at a time
	gives, isReady, comesReady := false, false, true
	liar := &hooked{handler: "liar", does: func(c *calls, _ extensions.Config) {
		provision, wait, teardown, status := c.Provision, c.WaitReady, c.Teardown, c.Status
		c.Provision = func(ctx context.Context, s extensions.Spec) (extensions.Handle, extensions.Observation, error) {
			h, o, err := provision(ctx, s)
			o.Phase, o.StartedAt = extensions.PhaseProvisioning, time.Time{}
			if gives {
				o.StartedAt = lie
			}
			return h, o, err
		}
		c.WaitReady = func(ctx context.Context, s extensions.Spec, h extensions.Handle) (extensions.Observation, error) {
			o, err := wait(ctx, s, h)
			if o.StartedAt = (time.Time{}); isReady {
				o.StartedAt = lie
			}
			if err == nil && !comesReady {
				err = extensions.Errorf(extensions.KindExhausted, "there is no room after all")
			}
			return o, err
		}
		c.Status = func(ctx context.Context, hs []extensions.Handle) ([]extensions.Observation, error) {
			all, err := status(ctx, hs)
			for i := range all {
				all[i].StartedAt = lie
			}
			return all, err
		}
		c.Teardown = func(ctx context.Context, h extensions.Handle) (extensions.CleanupReport, error) {
			r, err := teardown(ctx, h)
			r.StartedAt, r.Usage = lie, nil
			return r, err
		}
	}}
	b := newBench(t, having(liar), onFiles(map[string]string{
		"extensions/ext.liar.yaml": "id: ext.liar\nhandler: liar\nconfig: { dir: \"$VENDOR\" }\n",
		"prices/mine.yaml":         prices("ext.liar", "  - { component: sandbox, unit: sandbox-hour, price: \"1\" }\n"),
		"profiles/t.yaml":          "id: profile.liar\nversion: \"1.0.0\"\nextension: ext.liar\n" + common,
	}))
	honest := func() {
		t.Helper()
		rows, err := b.book().List(t.Context(), ledger.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			for _, m := range b.meters(row.ID) {
				if m.OpenedAt.Before(row.CreatedAt) || m.OpenedAt.After(time.Now()) {
					t.Errorf("told %s, it costs since %s, asked for at %s", lie, m.OpenedAt, row.CreatedAt)
				}
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 12 {
		lie = time.Now().Add(time.Duration(random.Int64N(int64(200*365*24*time.Hour))) - 100*365*24*time.Hour)
		gives, isReady, comesReady = i&1 > 0, i&2 > 0, i&4 == 0
		s, err := b.Create(t.Context(), engine.Request{Profile: "profile.liar", Name: "one"}, nil, nil)
		if (err == nil) != comesReady {
			t.Fatal(told(err))
		}
		if err == nil {
			again := time.Now()
			if s, err = b.Recreate(t.Context(), s.Receipt, nil, nil); err != nil {
				t.Fatal(told(err))
			}
			if ms := b.meters(s.ID); ms[len(ms)-1].OpenedAt.Before(again.Add(-time.Millisecond)) {
				t.Errorf("told %s, its second life of %s costs since %s", lie, again, ms[len(ms)-1].OpenedAt)
			}
			b.end(s)
		}
		honest()
	}
	b.clean()
}
