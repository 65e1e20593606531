package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
)

// A run that is killed while it brings the spool in ends nothing by that, and the
// next one brings in what is left.
func TestAKillWhileTheSpoolIsBroughtInEndsNothing(t *testing.T) {
	t.Parallel()
	m := newOffline(t)
	ctx := context.Background()
	m.o.Do = "sweep"
	var made []string
	kills, ended := 0, 0
	for _, point := range []string{"ledger.begin", "ledger.sandbox", "ledger.intent.open", "ledger.meter.open", "ledger.meter.close", "ledger.stream", "ledger.commit", "ledger.committed", "engine.replay.moving", "engine.replay.told"} {
		m.cut.Off()
		e := m.next()
		for i := range 2 { // one goes on, the other is over
			s, err := e.Create(ctx, engine.Request{Profile: own.Profile, Name: fmt.Sprint(point, i), TTL: own.TTL}, nil, nil)
			if err == nil && i == 0 {
				made = append(made, string(s.ID))
			} else if err == nil {
				_, err = e.Destroy(ctx, s.Receipt, engine.DestroyOptions{})
				ended++
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		m.cut.On()
		slices.Sort(made)
		for nth := 1; ; nth++ {
			_, stderr, code := run(t, m.o, fmt.Sprintf("%s=%s@%d:kill", failpointtest.Env, point, nth), 0)
			left := m.left()
			if slices.Sort(left); strings.Contains(stderr, "panic") || !slices.Equal(left, made) {
				t.Fatalf("killed at %s, time %d: there is %v, it was %v: %s", point, nth, left, made, stderr)
			}
			if code == 0 {
				break // it does not come by there so often any more
			}
			kills++
		}
	}
	if kills < 15 {
		t.Errorf("only %d were killed", kills)
	}
	e := m.next()
	if _, err := e.Sweep(ctx, false, nil); err != nil {
		t.Fatal(err)
	}
	rows, err := e.List(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range rows {
		if want := map[bool]string{true: "ready", false: "destroyed"}[slices.Contains(made, string(s.ID))]; s.State != want {
			t.Errorf("%s is %s, not %s", s.ID, s.State, want)
		}
	}
	if len(rows) != len(made)+ended {
		t.Errorf("the ledger has %d of %d", len(rows), len(made)+ended)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if open, _ := m.spools(); open != 0 {
		t.Errorf("%d spools are left", open)
	}
	m.sound()
}

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
	if raced || testing.Short() {
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
			if left := m.left(); err == nil && len(left) > 0 {
				t.Errorf("it ended, and left %v", left)
			}
			m.settled(err == nil)
			m.sound()
		})
	}
}

// settled demands that the next runs bring ledger and places together, once the
// lease of the one that was cut off is over.
func (m *offline) settled(ended bool) {
	m.t.Helper()
	ctx := context.Background()
	for begun := time.Now(); ; time.Sleep(fleetLease / 4) {
		e := m.next()
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
			return
		}
		if time.Since(begun) > 5*fleetLease {
			m.t.Errorf("there is %v, in the ledger %v of %d", left, live, len(rows))
			return
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
