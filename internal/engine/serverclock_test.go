package engine_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/pgtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
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
	other, asleep := mine, mine
	other.Name, asleep.Name, asleep.DesiredMode = "other", "asleep", "paused"
	sleeper, err := a.Create(ctx, asleep, nil, nil)
	if err != nil {
		t.Fatal(told(err))
	}
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
		_, err = e.SetMode(ctx, sleeper.Receipt, engine.Running, nil)
		wrong("resumed", err)
		if got, err := e.SetMode(ctx, sleeper.Receipt, engine.Paused, nil); err != nil || got.Mode != "paused" {
			t.Errorf("%s off, paused: %q, %s", off, got.Mode, told(err))
		}
	}
	if left := f.alive(); len(left) != 2 {
		t.Errorf("left: %q", left)
	}
	e := f.machine(ahead(by(time.Minute))) // which nobody would notice
	if _, err := e.Create(ctx, other, nil, nil); err != nil {
		t.Errorf("a minute off: %s", told(err))
	}
}

// What a dead run changed waits for a machine that can set its end, and holds up nothing else.
func TestASkewedMachineSetsNoEndAgain(t *testing.T) {
	t.Parallel()
	f, ctx := newFleet(t, ""), t.Context()
	one, two := f.create(engine.Request{Name: "one"}), f.create(engine.Request{Name: "two"})
	die := func() {
		t.Helper()
		dies, err := engine.New(f.Options)
		if err != nil {
			t.Fatal(err)
		}
		_, err = dies.ExtendTTL(failpointtest.Inject(ctx, "engine.extend.moved", func() error {
			f.script(saasstub.Rule{Op: vendor.OpAny, Do: vendor.DoUnauthorized})
			return errors.Join(dies.Close(), failpointtest.ErrInjected)
		}), one.Receipt, 2*time.Hour)
		if f.script(); err == nil || f.deadline(one.ID).Sub(one.ExpiresAt) < 59*time.Minute {
			t.Fatalf("it did not die: %v", err)
		}
	}
	die()
	moved := f.deadline(one.ID)
	e, said := f.machine(ahead(by(-30*time.Hour))), ""
	if err := e.Recover(ctx, func(n engine.Notice) { said += n.Summary + ": " + n.Detail }); err != nil ||
		!strings.Contains(said, "Not settled yet: The extend of "+string(one.ID)) || !strings.Contains(said, "set this machine's clock") {
		t.Errorf("recovered: %s, told %s", told(err), said)
	}
	if _, err := e.Destroy(ctx, two.Receipt, engine.DestroyOptions{}); err != nil || len(f.alive()) != 1 || !f.deadline(one.ID).Equal(moved) {
		t.Errorf("destroyed: %s, left %q; the end of the other moved from %s to %s", told(err), f.alive(), moved, f.deadline(one.ID))
	}
	if err := f.machine().Recover(ctx, nil); err != nil || f.deadline(one.ID).Sub(one.ExpiresAt).Abs() > time.Second {
		t.Errorf("recovered by another machine: %s; the vendor ends it at %s, the ledger says %s", told(err), f.deadline(one.ID), one.ExpiresAt)
	}
	die()
	if _, err := e.Destroy(ctx, one.Receipt, engine.DestroyOptions{}); err != nil || len(f.alive()) != 0 {
		t.Errorf("destroyed: %s, left %q", told(err), f.alive())
	}
	if open, err := f.book().OpenIntents(ctx, ledger.IntentFilter{}); err != nil || len(open) != 0 {
		t.Errorf("open: %+v, %v", open, err)
	}
	f.sound(true)
}

// Where a snapshot stops its sandbox, it could not go on with an end of such a machine. The end of one whose work is to be brought
// back would be too early for that.
func TestASkewedMachineStopsNothingThatItCannotResume(t *testing.T) {
	t.Parallel()
	t.Run("for a snapshot", func(t *testing.T) {
		t.Parallel()
		b := newStops(t, onLedger(pgtest.New(t)))
		s := b.create(engine.Request{Name: "one"})
		e := b.machine(ahead(by(30 * time.Hour)))
		if _, err := e.Snapshot(t.Context(), s.Receipt, engine.SnapshotRequest{Name: "kept"}); !extensions.IsKind(err, extensions.KindInvalid) ||
			!strings.Contains(extensions.RemedyOf(err), "set this machine's clock") {
			t.Errorf("%s", told(err))
		}
		if o := b.object(); o.State != vendor.StateRunning || b.keeps() != 0 {
			t.Errorf("it is %s; %d are kept", o.State, b.keeps())
		}
	})
	for name, pause := range map[string]func(b *bench, s engine.Sandbox){
		"for its end": func(b *bench, s engine.Sandbox) { b.mode(b.Engine, s, engine.Paused) },
		"for its end, unknown to the ledger": func(b *bench, s engine.Sandbox) {
			b.places(func(be extensions.Backend, o extensions.Observation) {
				if _, err := be.(extensions.Pauser).Pause(b.t.Context(), o.Handle); err != nil {
					b.t.Error(err)
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, onLedger(pgtest.New(t)))
			dir := folder(t, map[string]string{"a.txt": "1\n"})
			s := b.create(engine.Request{Profile: "profile.mirror-local", Name: "one", Inputs: map[string]any{"repo": dir}})
			b.sh(s.Receipt, "echo 2 >a.txt")
			pause(b, s)
			_, err := b.reopen(ahead(by(30*time.Hour))).Destroy(t.Context(), s.Receipt, engine.DestroyOptions{})
			if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(extensions.RemedyOf(err), "set this machine's clock") ||
				len(b.left()) != 1 {
				t.Errorf("%s; left %q", told(err), b.left())
			}
			b.end(s)
			if got, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(got) != "2\n" {
				t.Errorf("its work came back as %q, %v", got, err)
			}
		})
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
