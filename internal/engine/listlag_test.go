package engine_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// newLagging has a place that looks one sandbox up at once, and whose list goes on showing what it once showed and
// lacks what is new.
func newLagging(t *testing.T) *bench {
	t.Helper()
	var mu sync.Mutex
	var shown []extensions.Observation
	x := &hooked{handler: "lagging", says: func(d *extensions.Descriptor) {
		d.List = extensions.List{Freshness: extensions.ListEventual, Lag: time.Hour}
	}, does: func(c *calls, _ extensions.Config) {
		status, make := c.Status, c.Provision
		c.Status = func(ctx context.Context, hs []extensions.Handle) ([]extensions.Observation, error) {
			if hs != nil {
				return status(ctx, hs)
			}
			mu.Lock()
			defer mu.Unlock()
			return append([]extensions.Observation{}, shown...), nil
		}
		c.Provision = func(ctx context.Context, s extensions.Spec) (extensions.Handle, extensions.Observation, error) {
			h, o, err := make(ctx, s)
			if s.Name == "old" {
				mu.Lock()
				defer mu.Unlock()
				shown = append(shown, o)
			}
			return h, o, err
		}
	}}
	return newBench(t, having(x), onFiles(map[string]string{
		"extensions/ext.lagging.yaml": "id: ext.lagging\ntitle: Lagging\nhandler: lagging\nconfig: { dir: \"$VENDOR\" }\n",
		"profiles/t.yaml":             "id: profile.t\nversion: \"1.0.0\"\nextension: ext.lagging\n" + common,
	}), func(b *bench) { b.profile = "profile.t" })
}

// Find is strong there, and still nothing is concluded from its list: neither that a sandbox is gone nor that it is
// there.
func TestAListThatMayBeStaleProvesNothing(t *testing.T) {
	t.Parallel()
	b := newLagging(t)
	ctx := t.Context()
	old, fresh := b.create(engine.Request{Name: "old"}), b.create(engine.Request{Name: "fresh"})
	for _, s := range []engine.Sandbox{old, fresh} {
		if got, err := b.reopen().Get(ctx, s.Receipt); err != nil || got.State != "ready" {
			t.Errorf("%s is %s, %v", s.Name, got.State, err)
		}
	}
	b.end(old)
	report, err := b.reopen().Sweep(ctx, false, nil)
	if err != nil || len(report.Orphans) != 0 || len(report.Settled) != 0 || len(report.Ended) != 0 {
		t.Errorf("after a destroy that its list does not show, a sweep finds %+v, %v", report, err)
	}
	b.end(fresh)
	b.clean()
}

func TestASandboxThatOnlyAStaleListShowsIsGone(t *testing.T) {
	t.Parallel()
	b := newLagging(t)
	old := b.create(engine.Request{Name: "old"})
	b.places(func(be extensions.Backend, o extensions.Observation) {
		if _, err := be.Teardown(t.Context(), o.Handle); err != nil {
			t.Error(err)
		}
	})
	if got, err := b.reopen().Get(t.Context(), old.Receipt); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Errorf("it reads as %s, %v", got.State, err)
	}
}
