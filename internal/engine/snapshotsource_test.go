package engine_test

import (
	"context"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// newStops has a vendor, ext.stops, whose snapshots leave their sandbox paused.
func newStops(t *testing.T) *bench {
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
	return newBench(t, having(stops), onFiles(map[string]string{
		"extensions/ext.stops.yaml": "id: ext.stops\ntitle: Stops\nhandler: stops\nconfig: { dir: \"$VENDOR\" }\n",
		"profiles/t.yaml":           "id: profile.t\nversion: \"1.0.0\"\nextension: ext.stops\n" + common,
	}), func(b *bench) { b.profile = "profile.t" })
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
