package engine_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// keyless is a run that cannot open the vendor. It must not settle what only the vendor knows.
func (b *bench) keyless() {
	b.t.Helper()
	e := b.hooked(func(context.Context) error { return extensions.Errorf(extensions.KindUnauthorized, "no key") })
	told := false
	err := e.Recover(b.t.Context(), func(n engine.Notice) { told = told || n.Summary == "Not settled yet" })
	if err != nil || !told {
		b.t.Errorf("a run without a key: told %t, %v", told, err)
	}
	if err := e.Close(); err != nil {
		b.t.Error(err)
	}
}

// A run that died in a pause is settled by the first one that can ask the place, however late; one that cannot
// leaves it alone.
func TestAPauseThatDiedIsFollowedOnceItsPlaceCanBeAsked(t *testing.T) {
	t.Parallel()
	killing(t)
	for _, overdue := range []bool{false, true} {
		name := map[bool]string{false: "before its deadline", true: "after it"}[overdue]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newStopping(t)
			s := b.create(engine.Request{Name: "one", TTL: "5m", Billing: "byok"})
			b.killed(order{Do: "pause", Receipt: s.Receipt}, "engine.mode.set")
			b.keyless()
			if overdue {
				b.later(10 * time.Minute)
				b.keyless()
			}
			b.Engine = b.reopen()
			if err := b.Recover(t.Context(), nil); err != nil {
				t.Fatal(told(err))
			}
			if !overdue {
				b.metered(s.ID, engine.Running, engine.Paused)
				if calls, err := vendor.At(b.vendor).Calls(); err != nil || calls[vendor.OpPause] != 2 {
					t.Errorf("paused %d times, want twice: the first may have reached only a part of it (%v)", calls[vendor.OpPause], err)
				}
				if got, err := b.Lookup(t.Context(), s.ID, "", ""); err != nil || got.Mode != "paused" {
					t.Errorf("it is %q, %v", got.Mode, err)
				}
				b.Engine = b.later(10 * time.Minute)
				if err := b.Recover(t.Context(), nil); err != nil {
					t.Fatal(told(err))
				}
			}
			if left := b.alive(); len(left) != 0 {
				t.Errorf("nobody ended %v, which its vendor keeps paused", left)
			}
			b.clean()
		})
	}
}

// What a place refuses to set again stays open for the next run, too.
func TestADeadlineThatCannotBeSetAgainWaitsForTheNextRun(t *testing.T) {
	t.Parallel()
	killing(t)
	b := newBench(t)
	s := b.create(engine.Request{Name: "one"})
	b.killed(order{Do: "extend", Receipt: s.Receipt, TTL: "3h"}, "engine.extend.moved")
	for _, rules := range [][]saasstub.Rule{{{Op: vendor.OpExtend, Do: vendor.DoUnauthorized}}, nil} {
		b.script(rules...)
		e := b.reopen()
		if err := e.Recover(t.Context(), nil); err != nil {
			t.Fatal(told(err))
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	if d := b.deadline(s.ID); d.Sub(s.ExpiresAt).Abs() > time.Millisecond {
		t.Errorf("the vendor ends it at %s, the ledger says %s", d, s.ExpiresAt)
	}
	b.end(s)
	b.clean()
}

// A create of its name finds what a dead run changed, and that it lives.
func TestTheNameOfAChangeThatDiedIsTakenWhileItsPlaceCannotBeAsked(t *testing.T) {
	t.Parallel()
	killing(t)
	b := newBench(t)
	s := b.create(engine.Request{Name: "one"})
	b.killed(order{Do: "pause", Receipt: s.Receipt}, "engine.mode.set")
	b.script(saasstub.Rule{Op: vendor.OpGet, Do: vendor.DoUnauthorized})
	b.refused(b.reopen(), engine.Request{Profile: b.profile, Name: "one"}, extensions.KindConflict, "has the name", string(s.ID), "import {")
	b.script()
	b.Engine = b.reopen()
	b.mode(b.Engine, s, engine.Running)
	b.end(s)
	b.clean()
}

// Where the place does not say since when a sandbox runs again, the dead run's request does.
func TestAResumeThatDiedCostsSinceItWasAskedFor(t *testing.T) {
	t.Parallel()
	killing(t)
	b := newBench(t)
	s := b.create(engine.Request{Name: "one", TTL: "9h"})
	s = b.mode(b.Engine, s, engine.Paused)
	resumed := time.Now()
	b.killed(order{Do: "resume", Receipt: s.Receipt}, "engine.mode.set")
	b.keyless()
	b.later(6 * time.Hour)
	silent := &hooked{does: func(c *calls, _ extensions.Config) {
		status := c.Status
		c.Status = func(ctx context.Context, hs []extensions.Handle) ([]extensions.Observation, error) {
			all, err := status(ctx, hs)
			for i := range all {
				all[i].Since = time.Time{}
			}
			return all, err
		}
	}}
	b.Engine = b.reopen(func(b *bench) { b.Extensions = []extensions.Extension{silent, saasstub.NewEventual(), local.New()} })
	if err := b.Recover(t.Context(), nil); err != nil {
		t.Fatal(told(err))
	}
	all := b.meter(s.ID).Segments
	if last := all[len(all)-1]; len(all) != 3 || last.Mode != engine.Running || last.StartedAt.Sub(resumed) > time.Minute {
		t.Errorf("it counts %+v; it was resumed at %s", all, resumed)
	}
	if o := b.object(); o.State != vendor.StateRunning {
		t.Errorf("it is %s", o.State)
	}
	b.end(s)
	b.clean()
}

// A sandbox that a dead run's resume has only begun to start is resumed once more, so that the ledger has it running.
func TestAResumeThatDiedOnItsWayIsFinished(t *testing.T) {
	t.Parallel()
	killing(t)
	b := newBench(t)
	s := b.create(engine.Request{Name: "one"})
	s = b.mode(b.Engine, s, engine.Paused)
	b.killed(order{Do: "resume", Receipt: s.Receipt}, "engine.mode.set")
	var seen atomic.Bool
	slow := &hooked{does: func(c *calls, _ extensions.Config) {
		status := c.Status
		c.Status = func(ctx context.Context, hs []extensions.Handle) ([]extensions.Observation, error) {
			all, err := status(ctx, hs)
			if len(all) > 0 && !seen.Swap(true) {
				all[0].Phase = extensions.PhaseProvisioning
			}
			return all, err
		}
	}}
	b.Engine = b.reopen(func(b *bench) { b.Extensions = []extensions.Extension{slow, saasstub.NewEventual(), local.New()} })
	if err := b.Recover(t.Context(), nil); err != nil {
		t.Fatal(told(err))
	}
	b.metered(s.ID, engine.Running, engine.Paused, engine.Running)
	b.end(s)
	b.clean()
}

// A place decides whether a sandbox can be used: no use settles what a run left that died in a resume.
func TestWhatRunsAgainIsUsedBeforeTheLedgerKnows(t *testing.T) {
	t.Parallel()
	killing(t)
	b := newBench(t)
	s := b.create(engine.Request{Name: "one"})
	s = b.mode(b.Engine, s, engine.Paused)
	b.killed(order{Do: "resume", Receipt: s.Receipt}, "engine.mode.set")
	b.Engine = b.reopen()
	if got := b.sh(s.Receipt, "echo again"); got != "again\n" {
		t.Errorf("it said %q", got)
	}
	b.end(s)
	b.clean()
}

// Where neither a pause nor the look after it gets an answer, nothing is taken for the mode: whoever is next to change
// something asks the place first, be it the same run or another beside it.
func TestAPauseWithoutAnyAnswerIsFollowedOnceItsPlaceCanBeAsked(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(b *bench) *engine.Engine{
		"by the run that asked":    func(b *bench) *engine.Engine { return b.Engine },
		"by another run meanwhile": func(b *bench) *engine.Engine { return b.reopen() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := b.create(engine.Request{Name: "one"})
			b.script(saasstub.Rule{Op: vendor.OpPause, Do: vendor.DoLoseAnswer}, saasstub.Rule{Op: vendor.OpGet, Skip: 1, Do: vendor.DoUnreachable})
			got, err := b.SetMode(t.Context(), s.Receipt, engine.Paused, nil)
			if err == nil || !strings.Contains(told(err), "not known") || got.Mode != "running" {
				t.Errorf("it is %q, told %s", got.Mode, told(err))
			}
			b.keyless()
			b.script()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			b.Engine = next(b)
			longer := s.Request
			longer.TTL = "3h"
			if got, err = b.Update(ctx, s.Receipt, longer, nil); err != nil || got.Mode != "paused" {
				t.Fatalf("it is %q, %s", got.Mode, told(err))
			}
			b.metered(s.ID, engine.Running, engine.Paused)
			b.end(s)
			b.clean()
		})
	}
}
