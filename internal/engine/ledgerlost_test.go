package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

var own = engine.Request{Profile: "profile.quickstart", Name: "one", TTL: "10m"}

// Wherever in a life the ledger is lost, and stays so until the next run: the
// life goes on to its end, or nothing is left of it; and the ledger tells so.
func TestTheLedgerLostAtAnyStatementOfALife(t *testing.T) {
	t.Parallel()
	whole := newOffline(t)
	before := whole.cut.Exchanges()
	if err := whole.life(context.Background()); err != nil {
		t.Fatal(err)
	}
	// Some of them in each run, others in the next.
	all, step := whole.cut.Exchanges()-before, 8
	if exttest.Detector || testing.Short() {
		step = 24
	}
	first := 1 + rand.IntN(step)
	t.Logf("a life has %d exchanges with the ledger; lost is each %dth from %d on", all, step, first)
	if all < 50 {
		t.Error("they are not counted")
	}
	for n := first; n <= all; n += step {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			m := newOffline(t)
			ctx := context.Background()
			m.cut.OffFrom(n, n%2 == 0)
			err := m.life(ctx)
			if cerr := m.Engine.Close(); cerr != nil {
				t.Error(cerr)
			}
			m.cut.On()
			if left := m.left(); (err == nil || errors.Is(err, engine.ErrLedgerUnusable)) && len(left) > 0 {
				t.Errorf("it ended with %v, and left %v", err, left)
			}
			m.sound(m.settled(err == nil))
		})
	}
}

// settled demands that the next runs bring ledger and places together, once the
// lease of the one that was cut off is over. It reports whether anything was begun.
func (m *offline) settled(ended bool) (begun bool) {
	m.t.Helper()
	ctx := context.Background()
	for since := time.Now(); ; time.Sleep(fleetLease / 4) {
		e := m.reopen()
		if _, err := e.Sweep(ctx, false, nil); err != nil {
			m.t.Fatal(err)
		}
		rows, err := e.List(ctx, true)
		if err != nil {
			m.t.Fatal(err)
		}
		left, live, moving := m.left(), []string{}, false
		for _, s := range rows {
			moving = moving || s.State != "ready" && s.State != "destroyed"
			if s.State != "destroyed" {
				live = append(live, string(s.ID))
			}
		}
		if err := e.Close(); err != nil {
			m.t.Error(err)
		}
		if !moving && slices.Equal(left, live) && (!ended || len(rows) > 0 && len(live) == 0) {
			return len(rows) > 0
		}
		if time.Since(since) > 5*fleetLease {
			m.t.Errorf("there is %v, in the ledger %v of %d", left, live, len(rows))
			return false
		}
	}
}

// life makes a sandbox, uses it and ends it.
func (m *offline) life(ctx context.Context) error {
	s, err := m.Create(ctx, own, nil, nil)
	if err != nil {
		return err
	}
	if _, err := m.Exec(ctx, s.Receipt, engine.ExecRequest{Command: []string{"true"}}); err != nil {
		return err
	}
	_, err = m.Destroy(ctx, s.Receipt, engine.DestroyOptions{})
	return err
}
