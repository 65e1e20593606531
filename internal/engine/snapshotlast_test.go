package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// enders is a vendor, ext.ends, whose snapshots end their sandbox.
type enders struct {
	*bench
	// before and after a snapshot are taken at the vendor; either may fail.
	before, after func() error
	blind         error        // what a look-up of a snapshot fails with
	torn          func() error // after a teardown; may fail
}

func newEnders(t *testing.T) *enders {
	t.Helper()
	nothing := func() error { return nil }
	e := &enders{before: nothing, after: nothing, torn: nothing}
	x := &hooked{handler: "ends", says: func(d *extensions.Descriptor) { d.NamedOnly, d.Snapshots.EndsSource = false, true },
		does: func(c *calls, cfg extensions.Config) {
			take, stat, teardown := c.Snapshot, c.StatSnapshot, c.Teardown
			c.Teardown = func(ctx context.Context, h extensions.Handle) (extensions.CleanupReport, error) {
				r, err := teardown(ctx, h)
				return r, errors.Join(err, e.torn())
			}
			c.Snapshot = func(ctx context.Context, h extensions.Handle, s extensions.SnapshotSpec) (extensions.Snapshot, error) {
				err := e.before()
				var k extensions.Snapshot
				if err == nil {
					k, err = take(ctx, h, s)
				}
				if err == nil {
					err = vendor.At(cfg.Values["dir"].(string)).Fail(string(h.ID), "a snapshot ended it")
				}
				if err == nil {
					err = e.after()
				}
				return k, err
			}
			c.StatSnapshot = func(ctx context.Context, h extensions.SnapshotHandle) (extensions.Snapshot, error) {
				if e.blind != nil {
					return extensions.Snapshot{}, e.blind
				}
				return stat(ctx, h)
			}
		}}
	e.bench = newBench(t, having(x), onFiles(map[string]string{
		"extensions/ext.ends.yaml": "id: ext.ends\ntitle: Ends\nhandler: ends\nconfig: { dir: \"$VENDOR\" }\n",
		"prices/ends.yaml":         prices("ext.ends", "  - { component: sandbox, unit: sandbox-hour, price: \"1\" }\n"),
		"profiles/t.yaml":          "id: profile.t\nversion: \"1.0.0\"\nextension: ext.ends\n" + common,
		"profiles/mirrored.yaml": "id: profile.mirrored\nversion: \"1.0.0\"\nextension: ext.ends\n" +
			strings.Replace(common, "remote-canonical", "mirror", 1) + "inputs: { repo: { type: string } }\n",
	}), func(b *bench) { b.profile = "profile.t" })
	e.fund()
	return e
}

// lose lets the answer to a snapshot be lost; what it ended takes no other.
func (e *enders) lose() {
	e.after = func() error {
		e.after = func() error { return extensions.Errorf(extensions.KindNotFound, "it has ended") }
		return extensions.Errorf(extensions.KindIndeterminate, "lost")
	}
}

var permitted = engine.SnapshotRequest{Name: "kept", Retention: "30d", AllowEnd: true}

// settled demands that a sandbox was ended by its snapshot, with its cost, and that only the snapshot is left.
func (e *enders) settled(s engine.Sandbox, kept engine.SnapshotView) {
	e.t.Helper()
	row, err := e.book().Get(e.t.Context(), s.ID)
	if err != nil || row.State != lifecycle.Destroyed || row.EndReason != "snapshot" {
		e.t.Errorf("the source is %s (%s), %v", row.State, row.EndReason, err)
	}
	got, err := e.reopen().Get(e.t.Context(), s.Receipt)
	if err != nil || got.State != "expired" || !strings.Contains(got.Reason, "a snapshot ended it") {
		e.t.Errorf("it is told as %q, %q, %v", got.State, got.Reason, err)
	}
	if charges, err := e.Charges(e.t.Context(), s.ID); err != nil || len(charges) != 1 {
		e.t.Errorf("its charges are %+v, %v", charges, err)
	}
	if snap, err := e.reopen().LookupSnapshot(e.t.Context(), kept.ID); err != nil || snap.State != "ready" {
		e.t.Errorf("the snapshot is %q, %v", snap.State, err)
	}
	if e.keeps() != 1 || len(e.alive()) != 0 {
		e.t.Errorf("the vendor has %d snapshots and %v", e.keeps(), e.alive())
	}
	open, err := e.book().OpenIntents(e.t.Context(), ledger.IntentFilter{})
	if err != nil || len(open) > 0 {
		e.t.Errorf("open: %+v, %v", open, err)
	}
	e.accounted()
	e.clean()
}

func TestASnapshotThatEndsItsSandboxNeedsPermission(t *testing.T) {
	t.Parallel()
	e := newEnders(t)
	s := e.create(engine.Request{Name: "one"})
	refused := func(err error) {
		t.Helper()
		if !extensions.IsKind(err, extensions.KindInvalid) || extensions.FieldOf(err) != "allow_end" || extensions.RemedyOf(err) == "" {
			t.Errorf("%s", told(err))
		}
	}
	_, err := e.CheckSnapshot(t.Context(), s.ID, engine.SnapshotRequest{Retention: "30d"})
	refused(err)
	_, err = e.Snapshot(t.Context(), s.Receipt, engine.SnapshotRequest{Retention: "30d"})
	refused(err)
	ns, err := e.CheckSnapshot(t.Context(), s.ID, permitted)
	if err != nil || len(ns) != 1 || !strings.Contains(ns[0].Summary, "ends its sandbox") {
		t.Errorf("%+v, %v", ns, err)
	}
	if o := e.object(); o.State != vendor.StateRunning || e.keeps() != 0 {
		t.Errorf("it is %s, with %d snapshots", o.State, e.keeps())
	}
	e.end(s)
	e.clean()
}

func TestASandboxThatItsSnapshotEndedIsSettledAndItsNameFree(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]func(e *enders) context.Context{
		"taken": func(e *enders) context.Context { return e.t.Context() },
		"the answer is lost": func(e *enders) context.Context {
			e.lose()
			return e.t.Context()
		},
		"the run fails once it is made": func(e *enders) context.Context {
			return failpointtest.Inject(e.t.Context(), "engine.snapshot.made", func() error { return failpointtest.ErrInjected })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnders(t)
			s := e.create(engine.Request{Name: "one"})
			e.sh(s.Receipt, "printf kept >f")
			kept, err := e.Snapshot(broken(e), s.Receipt, permitted)
			if err != nil {
				t.Fatal(told(err))
			}
			e.settled(s, kept)
			again := e.create(engine.Request{Name: "one", FromSnapshot: kept.ID})
			if got := e.sh(again.Receipt, "cat f"); got != "kept" {
				t.Errorf("restored, it reads %q", got)
			}
			e.end(again)
			e.clean()
		})
	}
}

// After a lost answer to its end, it is still told as ended by its snapshot, and whoever settles it says that: what has failed
// would be replaced.
func TestASandboxThatItsSnapshotEndedIsNotToldAsFailed(t *testing.T) {
	t.Parallel()
	for name, settle := range map[string]func(e *enders, kept engine.SnapshotView) error{
		"a sweep": func(e *enders, _ engine.SnapshotView) error {
			_, err := e.reopen().Sweep(e.t.Context(), false, nil)
			return err
		},
		"another takes its name": func(e *enders, kept engine.SnapshotView) error {
			_, err := e.Destroy(e.t.Context(), e.create(engine.Request{Name: "one", FromSnapshot: kept.ID}).Receipt, engine.DestroyOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnders(t)
			s := e.create(engine.Request{Name: "one"})
			e.torn = func() error {
				e.torn = func() error { return nil }
				return extensions.Errorf(extensions.KindIndeterminate, "lost")
			}
			kept, err := e.Snapshot(t.Context(), s.Receipt, permitted)
			if err != nil || len(kept.Notices) != 1 || !strings.Contains(kept.Notices[0].Detail, "sandboxer sweep") {
				t.Fatal(kept.Notices, told(err))
			}
			got, err := e.reopen().Get(t.Context(), s.Receipt)
			if err != nil || got.State != "expired" || !strings.Contains(got.Reason, "a snapshot ended it") {
				t.Errorf("it is told as %q, %q, %v", got.State, got.Reason, err)
			}
			list, err := e.reopen().List(t.Context(), false)
			if err != nil || len(list) != 1 || list[0].State != got.State || list[0].Reason != got.Reason || list[0].Mode != got.Mode {
				t.Errorf("it is listed as %+v, %v", list, err)
			}
			if err := settle(e, kept); err != nil {
				t.Fatal(told(err))
			}
			e.settled(s, kept)
		})
	}
}

// A run that is killed once its snapshot is recorded tells nobody, and no other one can be taken: the work is in that one.
func TestASandboxThatItsSnapshotEndedTellsOfIt(t *testing.T) {
	t.Parallel()
	e := newEnders(t)
	s := e.create(engine.Request{Name: "one"})
	kept, err := e.Snapshot(t.Context(), s.Receipt, permitted)
	if err != nil {
		t.Fatal(told(err))
	}
	names := func(want bool) {
		t.Helper()
		_, planned := e.CheckSnapshot(t.Context(), s.ID, permitted)
		_, taken := e.Snapshot(t.Context(), s.Receipt, permitted)
		for _, err := range []error{planned, taken} {
			block := "to = sandboxer_snapshot.NAME # the address of this resource\n  id = \"" + kept.ID + "\""
			if !extensions.IsKind(err, extensions.KindConflict) || strings.Contains(extensions.RemedyOf(err), block) != want {
				t.Errorf("it is named: want %t, got %s", want, told(err))
			}
		}
	}
	names(true)
	if _, err := e.DeleteSnapshot(t.Context(), kept, false); err != nil {
		t.Fatal(told(err))
	}
	names(false)
	e.clean()
}

// One of several who hold a sandbox cannot end it for the others.
func TestALastSnapshotWaitsUntilOneHoldsItsSandbox(t *testing.T) {
	t.Parallel()
	e := newEnders(t)
	one, two := e.create(held("10m")), e.make(e.reopen(), held("10m"))
	if _, err := e.Snapshot(t.Context(), one.Receipt, permitted); !extensions.IsKind(err, extensions.KindConflict) || e.keeps() != 0 {
		t.Errorf("while two hold it: %v", err)
	}
	if _, err := e.Destroy(t.Context(), two.Receipt, engine.DestroyOptions{}); err != nil {
		t.Fatal(told(err))
	}
	kept, err := e.Snapshot(t.Context(), one.Receipt, permitted)
	if err != nil {
		t.Fatal(told(err))
	}
	e.settled(one, kept)
}

// What the vendor refuses leaves the sandbox as it was.
func TestARefusedLastSnapshotLeavesItsSandboxRunning(t *testing.T) {
	t.Parallel()
	e := newEnders(t)
	s := e.create(engine.Request{Name: "one"})
	e.before = func() error { return extensions.Errorf(extensions.KindExhausted, "no room") }
	if v, err := e.Snapshot(t.Context(), s.Receipt, permitted); !extensions.IsKind(err, extensions.KindExhausted) || v.ID != "" {
		t.Errorf("%+v, %v", v, err)
	}
	if o := e.object(); o.State != vendor.StateRunning || e.keeps() != 0 {
		t.Errorf("it is %s, with %d snapshots", o.State, e.keeps())
	}
	e.before = func() error { return nil }
	kept, err := e.Snapshot(t.Context(), s.Receipt, permitted)
	if err != nil {
		t.Fatal(told(err))
	}
	e.settled(s, kept)
}

// While nobody can say whether it was taken, nothing of it is removed: the next run that can finishes it.
func TestALastSnapshotOfWhichNothingIsKnownIsFinishedLater(t *testing.T) {
	t.Parallel()
	e := newEnders(t)
	s := e.create(engine.Request{Name: "one"})
	e.lose()
	e.blind = extensions.Errorf(extensions.KindUnauthorized, "not now")
	kept, err := e.Snapshot(t.Context(), s.Receipt, permitted)
	if err == nil || kept.ID == "" || extensions.RemedyOf(err) == "" {
		t.Fatalf("%+v, %s", kept, told(err))
	}
	if e.keeps() != 1 {
		t.Fatal("the snapshot was removed")
	}
	if _, err := e.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err == nil {
		t.Error("what its look-up may need was torn down")
	}
	e.blind = nil
	if _, err := e.reopen().Sweep(t.Context(), false, nil); err != nil {
		t.Fatal(told(err))
	}
	snap, err := e.reopen().LookupSnapshot(t.Context(), kept.ID)
	if err != nil || snap.State != "ready" || e.keeps() != 1 || len(e.alive()) != 0 {
		t.Errorf("the snapshot is %q, %v; the vendor has %v", snap.State, err, e.alive())
	}
	e.accounted()
	e.clean()
}

// The work in a mirrored workspace comes back before the snapshot ends the sandbox.
func TestALastSnapshotBringsAMirroredWorkspaceBack(t *testing.T) {
	t.Parallel()
	e := newEnders(t)
	dir := folder(t, map[string]string{"a.txt": "1\n"})
	s := e.create(engine.Request{Profile: "profile.mirrored", Name: "one", Inputs: map[string]any{"repo": dir}})
	e.sh(s.Receipt, "echo 2 >a.txt")
	kept, err := e.Snapshot(t.Context(), s.Receipt, permitted)
	if err != nil {
		t.Fatal(told(err))
	}
	if got := read(t, dir, "a.txt"); got != "2\n" {
		t.Errorf("it came back as %q", got)
	}
	e.settled(s, kept)
}

// A destroy does not overtake a snapshot whose look-up may need the sandbox.
func TestADestroyWaitsForALastSnapshot(t *testing.T) {
	t.Parallel()
	e := newEnders(t)
	s := e.create(engine.Request{Name: "one"})
	taken, goOn := make(chan struct{}), make(chan struct{})
	e.after = func() error {
		close(taken)
		<-goOn
		return nil
	}
	var both sync.WaitGroup
	var kept engine.SnapshotView
	both.Go(func() {
		var err error
		if kept, err = e.Snapshot(t.Context(), s.Receipt, permitted); err != nil {
			t.Error(told(err))
		}
	})
	select {
	case <-taken:
	case <-time.After(20 * time.Second):
		t.Fatal("it was not taken")
	}
	waits := make(chan struct{}, 1)
	both.Go(func() {
		_, err := e.reopen().Destroy(t.Context(), s.Receipt, engine.DestroyOptions{Notify: func(n engine.Notice) {
			if n.Summary == "Waiting for another run" {
				waits <- struct{}{}
			}
		}})
		if err != nil {
			t.Error(told(err))
		}
	})
	select {
	case <-waits:
	case <-time.After(20 * time.Second):
		t.Error("it did not wait")
	}
	if len(e.alive()) != 1 {
		t.Error("the sandbox was torn down under its snapshot")
	}
	close(goOn)
	both.Wait()
	if snap, err := e.reopen().LookupSnapshot(t.Context(), kept.ID); err != nil || snap.State != "ready" || len(e.alive()) != 0 {
		t.Errorf("the snapshot is %q, %v; the vendor has %v", snap.State, err, e.alive())
	}
	e.accounted()
	e.closed()
}
