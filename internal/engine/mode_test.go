package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// mode sets a sandbox's mode, which must work.
func (b *bench) mode(e *engine.Engine, s engine.Sandbox, mode engine.Mode) engine.Sandbox {
	b.t.Helper()
	out, err := e.SetMode(context.Background(), s.Receipt, mode, nil)
	if err != nil || out.Mode != string(mode) {
		b.t.Fatalf("%s: it is %q, %s", mode, out.Mode, told(err))
	}
	return out
}

// object is the only one at the vendor.
func (b *bench) object() vendor.Object {
	b.t.Helper()
	objs, err := vendor.At(b.vendor).Objects()
	if err != nil || len(objs) != 1 {
		b.t.Fatalf("%d objects, %v", len(objs), err)
	}
	return objs[0]
}

// metered demands the modes of a meter's segments, and that the last one runs since its place says so.
func (b *bench) metered(id engine.ID, modes ...engine.Mode) []ledger.Segment {
	b.t.Helper()
	segments := b.meter(id).Segments
	var have []string
	for _, s := range segments {
		have = append(have, string(s.Mode))
	}
	var want []string
	for _, m := range modes {
		want = append(want, string(m))
	}
	if strings.Join(have, " ") != strings.Join(want, " ") {
		b.t.Fatalf("the meter counts %v, want %v", have, want)
	}
	last := segments[len(segments)-1]
	if len(segments) > 1 && last.StartedAt.Sub(b.object().Since).Abs() > time.Microsecond {
		b.t.Errorf("%s since %s, its place says %s", last.Mode, last.StartedAt, b.object().Since)
	}
	return segments
}

func TestAPausedSandboxIsKeptAndNoUseResumesIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := t.Context()
	s := b.create(engine.Request{Name: "one"})
	b.sh(s.Receipt, "printf kept >f")
	paused := b.mode(b.Engine, s, engine.Paused)
	if paused.State != "ready" || !paused.ExpiresAt.Equal(s.ExpiresAt) {
		t.Errorf("paused, it is %s and ends at %s", paused.State, paused.ExpiresAt)
	}
	for _, e := range []*engine.Engine{b.Engine, b.elsewhere()} { // one without its ledger is told by the place
		got, err := e.Get(ctx, paused.Receipt)
		if err != nil || got.Mode != "paused" || got.State != "ready" {
			t.Errorf("it is shown as %s, %q, %v", got.State, got.Mode, err)
		}
		_, exec := e.Exec(ctx, s.Receipt, engine.ExecRequest{Command: []string{"true"}})
		_, url := e.URL(ctx, s.Receipt, 8080)
		for what, err := range map[string]error{"exec": exec, "url": url,
			"upload":   e.Upload(ctx, s.Receipt, "", bytes.NewReader(nil)),
			"download": e.Download(ctx, s.Receipt, "", io.Discard)} {
			if !extensions.IsKind(err, extensions.KindConflict) || !strings.Contains(extensions.RemedyOf(err), "`sandboxer resume "+string(s.ID)+"`") {
				t.Errorf("%s: %s", what, told(err))
			}
		}
	}
	if b.object().State != vendor.StatePaused {
		t.Errorf("a use left it %s", b.object().State)
	}
	logs, err := b.Logs(ctx, s.Receipt, extensions.LogRequest{})
	if err != nil {
		t.Errorf("its logs: %s", told(err))
	} else {
		_ = logs.Close()
	}
	b.mode(b.Engine, s, engine.Paused)
	b.mode(b.Engine, s, engine.Running)
	if got := b.sh(s.Receipt, "cat f"); got != "kept" {
		t.Errorf("its file reads %q", got)
	}
	b.metered(s.ID, engine.Running, engine.Paused, engine.Running)
	b.end(s)
	b.clean()
}

func TestPausedTimeCostsWhatItsPriceSays(t *testing.T) {
	t.Parallel()
	const components = "  - { component: sandbox, unit: sandbox-hour, price: \"1\", paused_price: \"0.25\" }\n"
	onBoth(t, map[string]string{"prices/mine.yaml": prices("ext.mine", components)}, func(t *testing.T, b *bench) {
		b.grant(20 * dollar)
		s := b.create(engine.Request{Profile: "profile.mine", Name: "one", TTL: "9h"})
		b.mode(b.later(2*time.Hour), s, engine.Paused)
		b.mode(b.later(4*time.Hour), s, engine.Running)
		e := b.later(time.Hour)
		if _, err := e.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil {
			t.Fatal(told(err))
		}
		const want = 3*dollar + dollar // 3 h running, 4 h paused
		if spent := 20*dollar - b.balance(ledger.AccountWallet).Available(); spent < want || spent > want+dollar/100 {
			t.Errorf("it cost %d, want %d and some seconds", spent, want)
		}
		b.Engine = e
		b.clean()
	})
}

func TestASandboxCreatedPausedWasReadyFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(engine.Request{Name: "one", DesiredMode: "paused"})
	if s.Mode != "paused" || s.State != "ready" {
		t.Errorf("it is %s, %q", s.State, s.Mode)
	}
	b.metered(s.ID, engine.Running, engine.Paused)
	again, err := b.Recreate(t.Context(), s.Receipt, nil, nil)
	if err != nil || again.Mode != "paused" {
		t.Errorf("re-created it is %q, %s", again.Mode, told(err))
	}
	b.end(again)
	b.clean()
}

func TestAnAdoptedSandboxGetsTheModeThatIsAskedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.create(engine.Request{Name: "one", DesiredMode: "paused"})
	taken := b.create(engine.Request{Name: "one", OnConflict: "adopt", DesiredMode: "running"})
	if taken.Mode != "running" || b.object().State != vendor.StateRunning {
		t.Errorf("it is %q, and %s at the vendor", taken.Mode, b.object().State)
	}
	if len(taken.Notices) == 0 {
		t.Error("nothing is said of the adoption")
	}
	b.end(taken)
	b.clean()
}

func TestWhatHasEndedHasNoMode(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, mode := range map[string]string{"paused": "paused", "running": "running"} {
		b.create(engine.Request{Name: name, TTL: "5m", DesiredMode: mode})
	}
	failed := b.create(engine.Request{Name: "failed", DesiredMode: "running"})
	if err := vendor.At(b.vendor).Fail(string(failed.ID), "broken"); err != nil {
		t.Fatal(err)
	}
	e := b.later(10 * time.Minute)
	for _, row := range b.rows() {
		s, err := e.Lookup(t.Context(), row.ID, "", "")
		if err == nil {
			s, err = e.Get(t.Context(), s.Receipt)
		}
		if err != nil || s.Mode != "" || s.State == "ready" {
			t.Errorf("%s: %s, %q, %v", row.Name, s.State, s.Mode, err)
		}
		if _, err := e.SetMode(t.Context(), s.Receipt, engine.Paused, nil); !extensions.IsKind(err, extensions.KindConflict) &&
			!extensions.IsKind(err, extensions.KindNotFound) {
			t.Errorf("%s: pause: %v", row.Name, err)
		}
	}
	b.clean()
}

// A run that dies, fails or is cancelled at any step leaves a mode and a meter that are the place's own once
// the next one has begun.
func TestAKillAtAnyStepOfAChangeOfModeConverges(t *testing.T) {
	t.Parallel()
	killing(t)
	for _, point := range append(failpointtest.Names("engine.mode."), "ledger.sandbox", "ledger.committed", "ledger.intent.finish",
		"ledger.meter.segment.open",
		"ledger.meter.segment.close") {
		for _, do := range []string{"pause", "resume"} {
			t.Run(point+"/"+do, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				b.fund()
				s := b.create(engine.Request{Name: "one"})
				counted := []engine.Mode{engine.Running}
				if do == "resume" {
					s = b.mode(b.Engine, s, engine.Paused)
					counted = append(counted, engine.Paused)
				}
				time.Sleep(20 * time.Millisecond)
				b.killed(order{Do: do, Receipt: s.Receipt}, point)
				time.Sleep(50 * time.Millisecond) // it costs so long without anybody
				e := b.reopen()
				if err := e.Recover(t.Context(), nil); err != nil {
					t.Fatal(told(err))
				}
				there := engine.Running
				if b.object().State == vendor.StatePaused {
					there = engine.Paused
				}
				if there != counted[len(counted)-1] {
					counted = append(counted, there)
				}
				b.metered(s.ID, counted...)
				if got, err := e.Lookup(t.Context(), s.ID, "", ""); err != nil || got.Mode != string(there) {
					t.Errorf("the ledger has it %q, the vendor %q, %v", got.Mode, there, err)
				}
				want := engine.Paused
				if do == "resume" {
					want = engine.Running
				}
				b.Engine = e
				b.mode(e, s, want)
				b.accounted()
				b.end(s)
				b.accounted()
				b.clean()
			})
		}
	}
}

func TestAnInterruptedChangeOfModeIsWhatThePlaceShows(t *testing.T) {
	t.Parallel()
	takesLong(t)
	interruptions(t, "engine.mode.", func(t *testing.T, i interruption) {
		b := newBench(t)
		s := b.create(engine.Request{Name: "one"})
		ctx, passed := i.arm(t)
		_, err := b.SetMode(ctx, s.Receipt, engine.Paused, nil)
		if passed.Load() == 0 {
			t.Fatal("it did not come by")
		}
		state := b.object().State
		if err == nil && state != vendor.StatePaused {
			t.Errorf("no error, and it is %s", state)
		}
		got, lerr := b.Lookup(t.Context(), s.ID, "", "")
		if lerr != nil || (got.Mode == "paused") != (state == vendor.StatePaused) {
			t.Errorf("the ledger has it %q, the vendor %s, %v", got.Mode, state, lerr)
		}
		b.settled(got, err)
	})
}

func TestALostAnswerToAPauseIsSettledByALook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		rule   saasstub.Rule
		paused bool
	}{
		{"done, and the answer is lost", saasstub.Rule{Op: vendor.OpPause, Do: vendor.DoLoseAnswer}, true},
		{"not done, and the answer is lost", saasstub.Rule{Op: vendor.OpPause, Do: vendor.DoBadGateway}, false},
		{"refused", saasstub.Rule{Op: vendor.OpPause, Do: vendor.DoConflict}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := b.create(engine.Request{Name: "one"})
			b.script(c.rule)
			_, err := b.SetMode(t.Context(), s.Receipt, engine.Paused, nil)
			if (err == nil) != c.paused {
				t.Errorf("%s", told(err))
			}
			b.script()
			if c.paused {
				b.metered(s.ID, engine.Running, engine.Paused)
			} else {
				b.metered(s.ID, engine.Running)
			}
			b.end(s)
			b.clean()
		})
	}
}

func TestWhatCannotPauseIsRefusedInThePlanAndAtItsChange(t *testing.T) {
	t.Parallel()
	b := newSwept(t)
	if _, err := b.Plan(t.Context(), engine.Request{Profile: "profile.t", Name: "new", DesiredMode: "paused"}); err == nil ||
		!strings.Contains(told(err), "pause") {
		t.Errorf("planned: %s", told(err))
	}
	s := b.create(engine.Request{Name: "one"})
	if _, err := b.PlanUpdate(t.Context(), s.Receipt, s.Request, engine.Request{Profile: "profile.t", Name: "one", DesiredMode: "paused"}); !extensions.
		IsKind(err, extensions.KindUnsupported) || extensions.FieldOf(err) != "desired_mode" {
		t.Errorf("planned for a live one: %s", told(err))
	}
	if _, err := b.SetMode(t.Context(), s.Receipt, engine.Paused, nil); !extensions.IsKind(err, extensions.KindUnsupported) {
		t.Errorf("asked for: %s", told(err))
	}
	b.end(s)
	b.clean()
}

func TestAPausedWorkspaceComesBackBeforeItsEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(b *bench, s engine.Sandbox) error{
		"destroy": func(b *bench, s engine.Sandbox) error {
			_, err := b.Destroy(b.t.Context(), s.Receipt, engine.DestroyOptions{})
			return err
		},
		"without its ledger": func(b *bench, s engine.Sandbox) error {
			_, err := b.elsewhere().Destroy(b.t.Context(), s.Receipt, engine.DestroyOptions{})
			return err
		},
		"recreate": func(b *bench, s engine.Sandbox) error {
			_, err := b.Recreate(b.t.Context(), s.Receipt, nil, nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			dir := folder(t, map[string]string{"a.txt": "a\n"})
			s := b.create(engine.Request{Profile: "profile.mirror", Name: "one", Inputs: map[string]any{"repo": dir}})
			b.sh(s.Receipt, "echo new >b.txt")
			b.mode(b.Engine, s, engine.Paused)
			if err := end(b, s); err != nil {
				t.Fatal(told(err))
			}
			if got := read(t, dir, "b.txt"); got != "new\n" {
				t.Errorf("the work reads %q", got)
			}
		})
	}
}

// What has ended while it was paused has no work left to bring back, which must not keep it from its end.
func TestAWorkspaceThatEndedWhilePausedHoldsUpNoEnd(t *testing.T) {
	t.Parallel()
	ends := map[string]func(b *bench, id string) error{
		"expired": func(b *bench, _ string) error {
			b.Engine = b.later(10 * time.Minute)
			return nil
		},
		"vanished": func(b *bench, id string) error { return vendor.At(b.vendor).Vanish(id) },
		"failed":   func(b *bench, id string) error { return vendor.At(b.vendor).Fail(id, "broken") },
	}
	for how, ended := range ends {
		for do, end := range map[string]func(b *bench, s engine.Sandbox) ([]engine.Notice, error){
			"destroy": func(b *bench, s engine.Sandbox) ([]engine.Notice, error) {
				r, err := b.Destroy(b.t.Context(), s.Receipt, engine.DestroyOptions{})
				return r.Notices, err
			},
			"recreate": func(b *bench, s engine.Sandbox) ([]engine.Notice, error) {
				again, err := b.Recreate(b.t.Context(), s.Receipt, nil, nil)
				return again.Notices, err
			},
		} {
			t.Run(how+"/"+do, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				b.fund()
				dir := folder(t, map[string]string{"a.txt": "a\n"})
				s := b.create(engine.Request{Profile: "profile.mirror", Name: "one", TTL: "5m", Inputs: map[string]any{"repo": dir}})
				s = b.mode(b.Engine, s, engine.Paused)
				if err := ended(b, string(s.ID)); err != nil {
					t.Fatal(err)
				}
				notices, err := end(b, s)
				if err != nil || !strings.Contains(fmt.Sprint(notices), "had already ended") {
					t.Fatalf("%v, %s", notices, told(err))
				}
				if do == "recreate" {
					b.end(s)
				}
				if held := b.accounted(); held != 0 {
					t.Errorf("%d are still held", held)
				}
				b.clean()
			})
		}
	}
}
