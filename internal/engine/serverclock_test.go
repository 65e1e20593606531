package engine_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/pgtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func by(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

func TestASkewedMachineEndsNothingThatLives(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"ahead": 30 * time.Hour, "behind": -30 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, ctx := newFleet(t, ""), t.Context()
			a := f.Engine
			s, err := a.Create(ctx, mine, nil, nil)
			if err != nil {
				t.Fatal(told(err))
			}
			for _, dry := range []bool{true, false} {
				if r, err := f.machine(ahead(by(off))).Sweep(ctx, dry, nil); err != nil || len(r.Ended)+len(r.Settled)+len(r.Failures) != 0 {
					t.Errorf("swept, dry %t: %+v, %v", dry, r, err)
				}
			}
			e := f.machine(ahead(by(off)))
			if got, err := e.Get(ctx, s.Receipt); err != nil || got.State != "ready" {
				t.Errorf("read: %s (%s), %v", got.State, got.Reason, err)
			}
			if got, err := e.List(ctx, false); err != nil ||
				!slices.ContainsFunc(got, func(x engine.Sandbox) bool { return x.ID == s.ID && x.State == "ready" }) {
				t.Errorf("listed: %+v, %v", got, err)
			}
			if left := f.alive(); len(left) != 1 {
				t.Errorf("left: %q", left)
			}
			r, err := e.Destroy(ctx, s.Receipt, engine.DestroyOptions{})
			if err != nil || r.AlreadyGone || time.Since(r.EndedAt).Abs() > time.Minute {
				t.Errorf("destroyed: %+v, %v", r, err)
			}
			f.sound(true)
		})
	}
}

// What such a machine began would end hours too early or too late.
func TestASkewedMachineGivesNothingAnEnd(t *testing.T) {
	t.Parallel()
	f, ctx := newFleet(t, ""), t.Context()
	a := f.Engine
	s, err := a.Create(ctx, mine, nil, nil)
	if err != nil {
		t.Fatal(told(err))
	}
	other := mine
	other.Name = "other"
	for _, off := range []time.Duration{10 * time.Minute, -30 * time.Hour} {
		e := f.machine(ahead(by(off)))
		p, err := e.Plan(ctx, other)
		if err != nil || !strings.Contains(notices(p.Notices), "clock is") {
			t.Errorf("%s off, planned: %s, %v", off, notices(p.Notices), err)
		}
		wrong := func(what string, err error) {
			t.Helper()
			if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), "clock") ||
				!strings.Contains(extensions.RemedyOf(err), "set this machine's clock") {
				t.Errorf("%s off, %s: %s", off, what, told(err))
			}
		}
		_, err = e.Create(ctx, other, nil, nil)
		wrong("created", err)
		_, err = e.ExtendTTL(ctx, s.Receipt, 2*time.Hour)
		wrong("extended", err)
		_, err = e.Recreate(ctx, s.Receipt, nil, nil)
		wrong("recreated", err)
	}
	if left := f.alive(); len(left) != 1 {
		t.Errorf("left: %q", left)
	}
	e := f.machine(ahead(by(time.Minute))) // which nobody would notice
	if _, err := e.Create(ctx, other, nil, nil); err != nil {
		t.Errorf("a minute off: %s", told(err))
	}
}

// Whichever machine sweeps, by the server's clock it is over.
func TestWhatIsOverdueEndsWhoeverSweeps(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"right": 0, "ahead": 30 * time.Hour, "behind": -30 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, ctx := newFleet(t, ""), t.Context()
			pgtest.OwnClock(t, f.Ledger)
			a := f.Engine
			s, err := a.Create(ctx, mine, nil, nil)
			if err != nil {
				t.Fatal(told(err))
			}
			pgtest.Advance(t, f.Ledger, 9*time.Minute) // of 10
			if r, err := f.machine(ahead(by(off+9*time.Minute))).Sweep(ctx, false, nil); err != nil ||
				len(r.Ended)+len(r.Settled)+len(r.Failures) != 0 {
				t.Errorf("swept a minute too early: %+v, %v", r, err)
			}
			pgtest.Advance(t, f.Ledger, 2*time.Minute)
			r, err := f.machine(ahead(by(off+11*time.Minute))).Sweep(ctx, false, nil)
			if err != nil || len(r.Ended) != 1 || r.Ended[0] != s.ID || len(f.alive()) != 0 {
				t.Errorf("swept: %+v, %v; left %q", r, err, f.alive())
			}
			if row, err := f.book().Get(ctx, s.ID); err != nil || row.EndReason != "expired" {
				t.Errorf("recorded: %q, %v", row.EndReason, err)
			}
			f.sound(true)
		})
	}
}

func TestAClockThatIsSetDuringARunEndsNothing(t *testing.T) {
	t.Parallel()
	f, ctx := newFleet(t, ""), t.Context()
	var off atomic.Int64
	e := f.machine(ahead(func() time.Duration { return time.Duration(off.Load()) }))
	s, err := e.Create(ctx, mine, nil, nil)
	if err != nil {
		t.Fatal(told(err))
	}
	for _, set := range []time.Duration{30 * time.Hour, -30 * time.Hour} {
		off.Store(int64(set))
		if r, err := e.Sweep(ctx, false, nil); err != nil || len(r.Ended)+len(r.Settled)+len(r.Failures) != 0 {
			t.Errorf("set by %s: %+v, %v", set, r, err)
		}
		if got, err := e.Get(ctx, s.Receipt); err != nil || got.State != "ready" {
			t.Errorf("set by %s: %s, %v", set, got.State, err)
		}
	}
}
