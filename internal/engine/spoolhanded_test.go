package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// A run that dies before or after the ledger has taken a sandbox of the spool
// leaves it to the ledger: what is done without the ledger after that reaches
// it, and nothing goes on in two places.
func TestWhatIsHandedOverIsTheLedgersThoughItsRunDied(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"engine.replay.moving", "engine.replay.told"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, m apart) { handedOver(t, m, point) })
		})
	}
}

func handedOver(t *testing.T, m apart, point string) {
	ctx := context.Background()
	if _, err := m.next().List(ctx, false); err != nil {
		t.Fatal(err)
	}
	m.off()
	e := m.next()
	made := map[string]engine.Sandbox{}
	for _, name := range []string{"ended", "longer", "stays"} {
		s, err := e.Create(ctx, priced(name, "r-1"), nil, nil)
		if err != nil {
			t.Fatal(told(err))
		}
		made[name] = s
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	m.on()
	dieOverEach(t, m, point, len(made))

	m.off()
	e = m.next()
	if s, err := e.Recreate(ctx, made["stays"].Receipt, nil, nil); !extensions.IsKind(err, extensions.KindUnavailable) {
		t.Errorf("made again: %+v, %s", s, told(err))
	}
	if s, err := e.Create(ctx, priced("stays", "r-2"), nil, nil); !extensions.IsKind(err, extensions.KindConflict) || !strings.Contains(told(err), string(made["stays"].ID)) {
		t.Errorf("its name was taken: %+v, %s", s, told(err))
	}
	later := priced("longer", "r-1")
	later.TTL = "2h"
	longer, err := e.Update(ctx, made["longer"].Receipt, later, nil)
	if err != nil || !longer.ExpiresAt.Equal(made["longer"].CreatedAt.Add(2*time.Hour)) {
		t.Fatalf("%+v, %s", longer, told(err))
	}
	gone, err := e.Destroy(ctx, made["ended"].Receipt, engine.DestroyOptions{})
	if err != nil || gone.AlreadyGone {
		t.Fatalf("%+v, %s", gone, told(err))
	}
	for _, s := range []engine.Sandbox{made["stays"], longer} {
		if got, err := e.Get(ctx, s.Receipt); err != nil || got.State != "ready" || !got.ExpiresAt.Equal(s.ExpiresAt) {
			t.Errorf("%s: %+v, %s", s.Name, got, told(err))
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}

	m.on()
	e = m.next()
	if err := e.Recover(ctx, nil); err != nil {
		t.Fatal(told(err))
	}
	row, err := m.books.Get(ctx, made["ended"].ID)
	if err != nil || row.State != "destroyed" || row.EndEstimated || row.EndReason != "destroyed" || row.EndedAt.Sub(gone.EndedAt).Abs() > time.Millisecond {
		t.Errorf("it ended at %s: %+v, %v", gone.EndedAt, row, err)
	}
	if a := accountOf(t, m.books, row.ID); len(a.Charges) == 0 || a.Held != 0 {
		t.Errorf("what ended: %+v", a)
	}
	if row, err = m.books.Get(ctx, longer.ID); err != nil || !row.ExpiresAt.Equal(longer.ExpiresAt) || row.TTL != 2*time.Hour {
		t.Errorf("the later end is %s: %+v, %v", longer.ExpiresAt, row, err)
	}
	stays := accountOf(t, m.books, made["stays"].ID)
	if a := accountOf(t, m.books, longer.ID); stays.Held == 0 || a.Held <= 10*stays.Held {
		t.Errorf("for two hours %d is set aside, for ten minutes %d", a.Held, stays.Held)
	}
	left, want := m.left(), []string{string(longer.ID), string(made["stays"].ID)}
	if slices.Sort(left); !slices.Equal(left, slices.Sorted(slices.Values(want))) {
		t.Errorf("there is %v, not %v", left, want)
	}
	if _, err := e.Recreate(ctx, made["stays"].Receipt, nil, nil); err != nil {
		t.Errorf("made again: %s", told(err))
	}
	for _, name := range []string{"stays", "longer"} {
		if r, err := e.Destroy(ctx, engine.Receipt{ID: made[name].ID}, engine.DestroyOptions{}); err != nil || r.AlreadyGone {
			t.Errorf("%s: %+v, %s", name, r, told(err))
		}
		if a := accountOf(t, m.books, made[name].ID); a.Held != 0 || len(a.Charges) == 0 {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if r, err := m.books.Verify(ctx); err != nil || !r.OK() {
		t.Errorf("%+v, %v", r, err)
	}
	spool := spooledAt(t, m.dir)
	for name, s := range made {
		if row, err := spool.Get(ctx, s.ID); err != nil || row.EndReason != "moved" {
			t.Errorf("%s in the spool: %+v, %v", name, row, err)
		}
	}
}

// dieOverEach has each of n runs die over another sandbox of the spool.
func dieOverEach(t *testing.T, m apart, point string, n int) {
	t.Helper()
	var dying []*engine.Engine
	for range n {
		e := m.next()
		err := e.Recover(failpointtest.Inject(context.Background(), point, func() error { return failpointtest.ErrInjected }), nil)
		if !errors.Is(err, failpointtest.ErrInjected) {
			t.Fatal(told(err))
		}
		dying = append(dying, e)
	}
	for _, e := range dying {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
