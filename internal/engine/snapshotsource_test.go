package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// newStops has a vendor, ext.stops, whose snapshots leave their sandbox paused.
func newStops(t *testing.T, more ...with) *bench {
	t.Helper()
	stops := &hooked{handler: "stops", says: func(d *extensions.Descriptor) { d.NamedOnly, d.Snapshots.StopsSource = false, true },
		does: func(c *calls, cfg extensions.Config) {
			take := c.Snapshot
			c.Snapshot = func(ctx context.Context, h extensions.Handle, s extensions.SnapshotSpec) (extensions.Snapshot, error) {
				k, err := take(ctx, h, s)
				if err == nil {
					err = vendor.At(cfg.Values["dir"].(string)).Client(cfg.Account, "", 0).Pause(ctx, h.Ref)
				}
				return k, err
			}
		}}
	return newBench(t, append([]with{having(stops), onFiles(map[string]string{
		"extensions/ext.stops.yaml": "id: ext.stops\ntitle: Stops\nhandler: stops\nconfig: { dir: \"$VENDOR\" }\n",
		"profiles/t.yaml":           "id: profile.t\nversion: \"1.0.0\"\nextension: ext.stops\n" + common,
	}), func(b *bench) { b.profile = "profile.t" }}, more...)...)
}

func TestASandboxThatASnapshotStoppedGoesOn(t *testing.T) {
	t.Parallel()
	for name, point := range map[string]string{"taken": "", "failed once made": "engine.snapshot.made"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newStops(t)
			s := b.create(engine.Request{Name: "one"})
			ctx := t.Context()
			if point != "" {
				ctx = failpointtest.Inject(ctx, point, func() error { return failpointtest.ErrInjected })
			}
			if _, err := b.Snapshot(ctx, s.Receipt, engine.SnapshotRequest{Name: "kept"}); (err == nil) != (point == "") {
				t.Fatalf("%v", err)
			}
			b.metered(s.ID, engine.Running, engine.Paused, engine.Running)
			if o := b.object(); o.State != vendor.StateRunning {
				t.Errorf("it is %s", o.State)
			}
			b.end(s)
			b.clean()
		})
	}
}

// A whole snapshot is kept although its sandbox could not be resumed, which is told.
func TestASnapshotIsKeptWhoseSandboxDoesNotGoOn(t *testing.T) {
	t.Parallel()
	b := newStops(t)
	s := b.create(engine.Request{Name: "one"})
	b.script(saasstub.Rule{Op: vendor.OpResume, Do: vendor.DoConflict})
	snap := b.keep(s, engine.SnapshotRequest{})
	if snap.State != "ready" || b.keeps() != 1 || !strings.Contains(notices(snap.Notices), "could not be resumed") {
		t.Errorf("it is %s, told %s; %d are kept", snap.State, notices(snap.Notices), b.keeps())
	}
	b.script()
	if _, err := b.SetMode(t.Context(), s.Receipt, engine.Running, nil); err != nil {
		t.Error(told(err))
	}
	if o := b.object(); o.State != vendor.StateRunning {
		t.Errorf("its sandbox is %s", o.State)
	}
	if _, err := b.DeleteSnapshot(t.Context(), snap, false); err != nil {
		t.Error(told(err))
	}
	b.end(s)
	b.clean()
}

// Whoever finds that says what to do, as nobody resumes it later.
func TestASandboxThatAFailedSnapshotStoppedAndDoesNotGoOnIsTold(t *testing.T) {
	t.Parallel()
	for name, recovered := range map[string]bool{"by its run": false, "by the run that settles it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newStops(t)
			s := b.create(engine.Request{Name: "one"})
			dies, err := engine.New(b.Options)
			if err != nil {
				t.Fatal(err)
			}
			ctx := failpointtest.Inject(t.Context(), "engine.snapshot.made", func() error {
				if !recovered {
					return failpointtest.ErrInjected
				}
				b.script(saasstub.Rule{Op: vendor.OpAny, Do: vendor.DoUnauthorized})
				return errors.Join(dies.Close(), failpointtest.ErrInjected)
			})
			b.script(saasstub.Rule{Op: vendor.OpResume, Do: vendor.DoConflict})
			kept, err := dies.Snapshot(ctx, s.Receipt, engine.SnapshotRequest{})
			if err == nil {
				t.Fatal("it did not fail")
			}
			said := notices(kept.Notices)
			if recovered {
				said = ""
				b.script(saasstub.Rule{Op: vendor.OpResume, Do: vendor.DoConflict})
				err = b.reopen().Recover(t.Context(), func(n engine.Notice) { said += n.Summary + ": " + n.Detail })
			} else {
				err = dies.Close()
			}
			if err != nil || !strings.Contains(said, "Its sandbox does not go on") ||
				!strings.Contains(said, "sandboxer sandbox resume "+string(s.ID)) || strings.Contains(said, "Not settled yet") || b.keeps() != 0 {
				t.Errorf("%s, told %q; %d are kept", told(err), said, b.keeps())
			}
			b.script()
			b.mode(b.Engine, s, engine.Running)
			b.end(s)
			b.clean()
		})
	}
}

// Where nobody can see whether a snapshot left its sandbox paused, the next run looks, so that it does not count as
// running for good.
func TestASandboxThatASnapshotStoppedUnseenIsFollowedOnceItsPlaceCanBeAsked(t *testing.T) {
	t.Parallel()
	b := newStops(t)
	s := b.create(engine.Request{Name: "one"})
	ctx := failpointtest.Inject(t.Context(), "engine.snapshot.made", func() error {
		b.script(saasstub.Rule{Op: vendor.OpAny, Do: vendor.DoUnreachable})
		return nil
	})
	snap, err := b.Snapshot(ctx, s.Receipt, engine.SnapshotRequest{})
	if err != nil || !strings.Contains(notices(snap.Notices), "sandbox resume "+string(s.ID)) {
		t.Errorf("told %s, %s", notices(snap.Notices), told(err))
	}
	b.script()
	if err := b.reopen().Recover(t.Context(), nil); err != nil {
		t.Error(told(err))
	}
	b.metered(s.ID, engine.Running, engine.Paused)
	b.mode(b.Engine, s, engine.Running)
	if _, err := b.DeleteSnapshot(t.Context(), snap, false); err != nil {
		t.Error(told(err))
	}
	b.end(s)
	b.clean()
}

// Where the place of a snapshot of a dead run cannot be reached, its operation stays open: the next run that can reach it removes
// what was taken, and lets its sandbox go on.
func TestASnapshotOfADeadRunIsSettledOnceItsPlaceIsReached(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]*bench{"stops": newStops(t), "does not": newBench(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := b.create(engine.Request{Name: "one"})
			dies, err := engine.New(b.Options)
			if err != nil {
				t.Fatal(err)
			}
			ctx := failpointtest.Inject(t.Context(), "engine.snapshot.made", func() error {
				b.script(saasstub.Rule{Op: vendor.OpAny, Do: vendor.DoUnreachable})
				return errors.Join(dies.Close(), failpointtest.ErrInjected)
			})
			kept, err := dies.Snapshot(ctx, s.Receipt, engine.SnapshotRequest{})
			if err == nil || kept.ID == "" {
				t.Fatalf("it did not die: %+v, %v", kept, err)
			}
			next, err := engine.New(b.Options)
			if err != nil {
				t.Fatal(err)
			}
			unsettled := ""
			err = next.Recover(t.Context(), func(n engine.Notice) { unsettled += n.Detail })
			if err = errors.Join(err, next.Close()); err != nil || !strings.Contains(unsettled, kept.ID) || b.keeps() != 1 {
				t.Errorf("out of reach: %v, told %q; %d are kept", told(err), unsettled, b.keeps())
			}
			b.script()
			if err := b.reopen().Recover(t.Context(), nil); err != nil || b.keeps() != 0 {
				t.Errorf("within reach: %v; %d are kept", told(err), b.keeps())
			}
			if _, err := b.LookupSnapshot(t.Context(), kept.ID); !extensions.IsKind(err, extensions.KindNotFound) {
				t.Errorf("the ledger still has it: %v", told(err))
			}
			if o := b.object(); o.State != vendor.StateRunning {
				t.Errorf("its sandbox is %s", o.State)
			}
			b.end(s)
			b.clean()
		})
	}
}

// A run that died while it resumed what its snapshot had stopped leaves a ledger that has it paused. It goes on all the same.
func TestASandboxThatADeadRunsSnapshotStoppedGoesOn(t *testing.T) {
	t.Parallel()
	b := newStops(t)
	s := b.create(engine.Request{Name: "one"})
	dies, err := engine.New(b.Options)
	if err != nil {
		t.Fatal(err)
	}
	ctx := failpointtest.Inject(t.Context(), "engine.mode.begun", func() error {
		b.script(saasstub.Rule{Op: vendor.OpAny, Do: vendor.DoUnreachable})
		return errors.Join(dies.Close(), failpointtest.ErrInjected)
	})
	if _, err := dies.Snapshot(ctx, s.Receipt, engine.SnapshotRequest{}); err == nil || b.object().State != vendor.StatePaused {
		t.Fatalf("it did not die: %v; its sandbox is %s", err, b.object().State)
	}
	b.script()
	b.Engine = b.reopen()
	if err := b.Recover(t.Context(), nil); err != nil || b.keeps() != 0 {
		t.Errorf("%v; %d are kept", told(err), b.keeps())
	}
	b.metered(s.ID, engine.Running, engine.Paused, engine.Running)
	if o := b.object(); o.State != vendor.StateRunning {
		t.Errorf("it is %s", o.State)
	}
	b.end(s)
	b.clean()
}

// What a failed snapshot left, and nobody could remove, is removed by the next run that can, whatever its retention.
func TestWhatAFailedSnapshotLeftIsRemovedLater(t *testing.T) {
	t.Parallel()
	for _, retention := range []string{"", "30d"} {
		t.Run(retention, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := b.create(engine.Request{Name: "one"})
			ctx := failpointtest.Inject(t.Context(), "engine.snapshot.made", func() error {
				b.script(saasstub.Rule{Op: vendor.OpAny, Do: vendor.DoUnreachable})
				return failpointtest.ErrInjected
			})
			if _, err := b.Snapshot(ctx, s.Receipt, engine.SnapshotRequest{Retention: retention}); err == nil || b.keeps() != 1 {
				t.Fatalf("%v; %d are kept", err, b.keeps())
			}
			unsettled := ""
			if err := b.reopen().Recover(t.Context(), func(n engine.Notice) { unsettled += n.Detail }); err != nil ||
				!strings.Contains(unsettled, "failed") {
				t.Errorf("out of reach: %v, told %q", told(err), unsettled)
			}
			b.script()
			report, err := b.reopen().Sweep(t.Context(), false, nil)
			if err != nil || len(report.Snapshots) != 1 || len(report.Failures) != 0 || b.keeps() != 0 {
				t.Errorf("within reach: %+v, %v; %d are kept", report, told(err), b.keeps())
			}
			b.end(s)
			b.clean()
		})
	}
}

func TestASnapshotOfAPausedSandboxLeavesItPaused(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]*bench{"stops": newStops(t), "does not": newBench(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := b.create(engine.Request{Name: "one", DesiredMode: "paused"})
			if _, err := b.Snapshot(t.Context(), s.Receipt, engine.SnapshotRequest{Name: "kept"}); err != nil {
				t.Fatal(told(err))
			}
			b.metered(s.ID, engine.Running, engine.Paused)
			if o := b.object(); o.State != vendor.StatePaused {
				t.Errorf("it is %s", o.State)
			}
			b.end(s)
			b.clean()
		})
	}
}

// Where a look-up may miss what is new, what a killed snapshot left is looked for until it must show.
func TestAKilledSnapshotIsRemovedWhereALookUpLags(t *testing.T) {
	t.Parallel()
	killing(t)
	for _, point := range []string{"engine.snapshot.begun", "engine.snapshot.made"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := b.create(engine.Request{Profile: "profile.eventual", Name: "one"})
			b.killed(order{Do: "snapshot", Receipt: s.Receipt}, point)
			if err := b.reopen().Recover(t.Context(), nil); err != nil {
				t.Fatal(told(err))
			}
			if left, err := b.eventual().Snapshots(); err != nil || len(left) != 0 {
				t.Errorf("%d snapshots are left, %v", len(left), err)
			}
			open, err := b.book().OpenIntents(t.Context(), ledger.IntentFilter{})
			if err != nil || len(open) != 0 {
				t.Errorf("open: %+v, %v", open, err)
			}
			b.end(s)
			b.clean()
		})
	}
}
