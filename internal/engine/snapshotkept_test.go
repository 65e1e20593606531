package engine_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// keeps is how many snapshots the vendor has.
func (b *bench) keeps() int {
	b.t.Helper()
	left, err := vendor.At(b.vendor).Snapshots()
	if err != nil {
		b.t.Fatal(err)
	}
	return len(left)
}

func (b *bench) keep(s engine.Sandbox, req engine.SnapshotRequest) engine.SnapshotView {
	b.t.Helper()
	snap, err := b.Snapshot(b.t.Context(), s.Receipt, req)
	if err != nil {
		b.t.Fatal(told(err))
	}
	return snap
}

func later(d time.Duration) with { return ahead(func() time.Duration { return d }) }

func TestASnapshotPastItsTimeIsDeletedByTheNextChange(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(engine.Request{Name: "one", TTL: "12h"})
	first, second := b.keep(s, engine.SnapshotRequest{Name: "a", Retention: "1h"}), b.keep(s, engine.SnapshotRequest{Name: "b"})
	if want := first.CreatedAt.Add(time.Hour); !first.ExpiresAt.Equal(want) || !second.ExpiresAt.IsZero() {
		t.Errorf("they expire at %s and %s", first.ExpiresAt, second.ExpiresAt)
	}
	if err := b.reopen(later(59*time.Minute)).Recover(t.Context(), nil); err != nil || b.keeps() != 2 {
		t.Errorf("before its time %d are kept, %v", b.keeps(), told(err))
	}
	after := b.reopen(later(61 * time.Minute))
	_, err := after.Plan(t.Context(), engine.Request{Profile: "profile.stub", Name: "two", FromSnapshot: first.ID})
	if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(told(err), "expired at") || b.keeps() != 2 {
		t.Errorf("a plan from it: %v; %d are kept", told(err), b.keeps())
	}
	report, err := after.Sweep(t.Context(), true, nil)
	if err != nil || len(report.Snapshots) != 1 || report.Snapshots[0] != first.ID || b.keeps() != 2 {
		t.Errorf("a dry run says %v, %v; %d are kept", report.Snapshots, told(err), b.keeps())
	}
	if report, err = after.Sweep(t.Context(), false, nil); err != nil || len(report.Snapshots) != 1 || b.keeps() != 1 {
		t.Errorf("a sweep says %v, %v; %d are kept", report.Snapshots, told(err), b.keeps())
	}
	if all, err := b.Snapshots(t.Context(), false); err != nil || len(all) != 1 || all[0].ID != second.ID {
		t.Errorf("listed are %+v, %v", all, told(err))
	}
	b.end(s)
	b.clean()
}

func TestARetentionCanBeChanged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(engine.Request{Name: "one"})
	snap := b.keep(s, engine.SnapshotRequest{Retention: "1h", Live: true})
	kept, err := b.Retain(t.Context(), snap.ID, "2d")
	if err != nil || !kept.ExpiresAt.Equal(snap.CreatedAt.Add(48*time.Hour)) {
		t.Errorf("it expires at %s, %v", kept.ExpiresAt, told(err))
	}
	if kept, err = b.Retain(t.Context(), snap.ID, ""); err != nil || !kept.ExpiresAt.IsZero() || !kept.Live {
		t.Errorf("%+v, %v", kept, told(err))
	}
	for _, wrong := range []string{"0s", "-1h", "soon"} {
		if _, err := b.Retain(t.Context(), snap.ID, wrong); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s: %v", wrong, told(err))
		}
		if _, err := b.Snapshot(t.Context(), s.Receipt, engine.SnapshotRequest{Retention: wrong}); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s: %v", wrong, told(err))
		}
	}
	if _, err := b.DeleteSnapshot(t.Context(), snap, false); err != nil {
		t.Fatal(told(err))
	}
	if _, err := b.Retain(t.Context(), snap.ID, "1h"); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Errorf("of a deleted one: %v", told(err))
	}
	b.end(s)
	b.clean()
}

// Whoever comes first, a snapshot is never deleted under a sandbox that is being started from it.
func TestASnapshotThatASandboxStartsFromIsNotDeletedForItsTime(t *testing.T) {
	t.Parallel()
	request := func(snap engine.SnapshotView) engine.Request {
		return engine.Request{Profile: "profile.stub", Name: "two", FromSnapshot: snap.ID}
	}
	t.Run("the create came first", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		s := b.create(engine.Request{Name: "one", TTL: "12h"})
		snap := b.keep(s, engine.SnapshotRequest{Retention: "1h"})
		ctx := failpointtest.Inject(t.Context(), "engine.create.placed", func() error {
			if err := b.reopen(later(2*time.Hour)).Recover(context.Background(), nil); err != nil || b.keeps() != 1 {
				t.Errorf("meanwhile %d are kept, %v", b.keeps(), told(err))
			}
			return nil
		})
		two, err := b.Create(ctx, request(snap), nil, nil)
		if err != nil {
			t.Fatal(told(err))
		}
		if err := b.reopen(later(2*time.Hour)).Recover(t.Context(), nil); err != nil || b.keeps() != 0 {
			t.Errorf("after it %d are kept, %v", b.keeps(), told(err))
		}
		b.end(s, two)
		b.clean()
	})
	t.Run("the deletion came first", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		s := b.create(engine.Request{Name: "one", TTL: "12h"})
		snap := b.keep(s, engine.SnapshotRequest{Retention: "1h"})
		ctx := failpointtest.Inject(t.Context(), "engine.unkeep.begun", func() error {
			_, err := b.Create(context.Background(), request(snap), nil, nil)
			if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(told(err), "is deleting") {
				t.Errorf("a create meanwhile: %v", told(err))
			}
			return nil
		})
		if err := b.reopen(later(2*time.Hour)).Recover(ctx, nil); err != nil || b.keeps() != 0 {
			t.Errorf("%d are kept, %v", b.keeps(), told(err))
		}
		b.end(s)
		b.clean()
	})
}

func TestASnapshotPastItsTimeThatCannotBeDeletedWaits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(engine.Request{Name: "one", TTL: "12h"})
	b.keep(s, engine.SnapshotRequest{Retention: "1h"})
	b.script(saasstub.Rule{Op: vendor.OpDeleteSnapshot, Do: vendor.DoConflict})
	if err := b.reopen(later(2*time.Hour)).Recover(t.Context(), nil); err != nil || b.keeps() != 1 {
		t.Errorf("%d are kept, %v", b.keeps(), told(err))
	}
	b.script()
	if err := b.reopen(later(2*time.Hour)).Recover(t.Context(), nil); err != nil || b.keeps() != 0 {
		t.Errorf("then %d are kept, %v", b.keeps(), told(err))
	}
	b.end(s)
	b.clean()
}

func TestAKindThatThePlaceDoesNotTakeIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(engine.Request{Name: "one"})
	memory := engine.SnapshotRequest{Kind: "memory"}
	if _, err := b.CheckSnapshot(t.Context(), s.ID, memory); !extensions.IsKind(err, extensions.KindUnsupported) {
		t.Errorf("in a plan: %v", told(err))
	}
	if _, err := b.Snapshot(t.Context(), s.Receipt, memory); !extensions.IsKind(err, extensions.KindUnsupported) || b.keeps() != 0 {
		t.Errorf("taken: %v; %d are kept", told(err), b.keeps())
	}
	if told, err := b.CheckSnapshot(t.Context(), s.ID, engine.SnapshotRequest{Kind: "metadata"}); err != nil || len(told) > 0 {
		t.Errorf("one that it takes: %v, %v", told, err)
	}
	unknown, err := b.CheckSnapshot(t.Context(), "", memory)
	if err != nil || !strings.Contains(toldOf(unknown), "may hold secrets") {
		t.Errorf("where the place is not known: %v, %v", unknown, err)
	}
	b.end(s)
	b.clean()
}

// What is asked for reaches the place, and what it says of its own deletions is kept.
func TestASnapshotIsTakenAsItIsAskedFor(t *testing.T) {
	t.Parallel()
	var asked extensions.SnapshotSpec
	kinds := []extensions.SnapshotKind{extensions.SnapshotMetadata, extensions.SnapshotMemory}
	x := &hooked{handler: "asked", says: func(d *extensions.Descriptor) {
		d.NamedOnly, d.Snapshots.Kinds, d.Snapshots.HoldsSecrets, d.Snapshots.Expires = false, kinds, true, 24*time.Hour
	}, does: func(c *calls, _ extensions.Config) {
		take := c.Snapshot
		c.Snapshot = func(ctx context.Context, h extensions.Handle, s extensions.SnapshotSpec) (extensions.Snapshot, error) {
			asked = s
			s.Kind = ""
			k, err := take(ctx, h, s)
			k.Kind, k.ExpiresAt = asked.Kind, k.CreatedAt.Add(24*time.Hour)
			return k, err
		}
	}}
	b := newBench(t, having(x), onFiles(map[string]string{
		"extensions/ext.asked.yaml": "id: ext.asked\ntitle: Asked\nhandler: asked\nconfig: { dir: \"$VENDOR\" }\n",
		"profiles/t.yaml":           "id: profile.t\nversion: \"1.0.0\"\nextension: ext.asked\n" + common,
	}), func(b *bench) { b.profile = "profile.t" })
	s := b.create(engine.Request{Name: "one"})
	notices, err := b.CheckSnapshot(t.Context(), s.ID, engine.SnapshotRequest{})
	if err != nil || !strings.Contains(toldOf(notices), "may hold secrets") {
		t.Errorf("a plan tells %v, %v", notices, told(err))
	}
	snap := b.keep(s, engine.SnapshotRequest{Kind: "memory", Live: true, Retention: "2d"})
	if asked.Kind != extensions.SnapshotMemory || !asked.Live || snap.Kind != "memory" || !snap.Live {
		t.Errorf("asked for %+v, got %+v", asked, snap)
	}
	if d := snap.ExpiresAt.Sub(snap.CreatedAt); d < 23*time.Hour || d > 25*time.Hour {
		t.Errorf("it expires after %s, and its place deletes it after a day", d)
	}
	again, err := b.LookupSnapshot(t.Context(), snap.ID)
	if err != nil || again.Retention != "2d" || !again.Live {
		t.Errorf("an import gets %+v, %v", again, told(err))
	}
	if _, err := b.DeleteSnapshot(t.Context(), snap, false); err != nil {
		t.Error(told(err))
	}
	b.end(s)
	b.clean()
}

// What keeping a snapshot cost is settled when it is deleted, or past its time, and shown until then as it runs.
func TestKeepingASnapshotIsCharged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fund()
	s := b.create(engine.Request{Name: "one", TTL: "12h"})
	b.keep(s, engine.SnapshotRequest{Name: "a", Retention: "1h"})
	other := b.keep(s, engine.SnapshotRequest{Name: "b", Retention: "30d"})
	usage := func(e *engine.Engine) (running, settled []engine.UsageRow) {
		t.Helper()
		r, err := e.Usage(t.Context(), engine.UsageQuery{By: []string{"component"}, Component: "snapshot"})
		if err != nil {
			t.Fatal(told(err))
		}
		return r.Running, r.Settled
	}
	soon := b.reopen(later(2 * time.Hour))
	if running, settled := usage(soon); len(running) != 1 || running[0].Quantity != "" && running[0].Unit != "MiB x ms" || len(settled) != 0 {
		t.Errorf("running %+v, settled %+v", running, settled)
	}
	if err := soon.Recover(t.Context(), nil); err != nil {
		t.Fatal(told(err))
	}
	_, settled := usage(soon)
	if len(settled) != 1 || settled[0].Billed.Sum == "" || settled[0].ConsumedUnit != "snapshot-gib-month" {
		t.Errorf("once it is past its time: %+v", settled)
	}
	if _, err := b.DeleteSnapshot(t.Context(), other, false); err != nil {
		t.Fatal(told(err))
	}
	if running, _ := usage(b.reopen()); len(running) != 0 {
		t.Errorf("still running: %+v", running)
	}
	if c, err := b.Charges(t.Context(), s.ID); err != nil || len(c) != 0 {
		t.Errorf("its sandbox, which lives, is charged %+v, %v", c, told(err))
	}
	b.end(s)
	b.accounted()
	b.clean()
}

// A kill at any step of keeping, restoring or deleting one leaves nothing that is not on the books.
func TestASnapshotThatNobodyChargesForIsNoUsage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(engine.Request{Profile: "profile.quickstart", Name: "one"})
	snap := b.keep(s, engine.SnapshotRequest{})
	for _, what := range []string{"kept", "deleted"} {
		for _, by := range [][]string{nil, {"profile"}, {"component"}} {
			u, err := b.Usage(t.Context(), engine.UsageQuery{By: by})
			if err != nil {
				t.Fatal(told(err))
			}
			for _, sums := range u.Totals {
				if sums.Lives == 0 || sums.Currency == "" {
					t.Errorf("%s, by %v: a total %+v", what, by, sums)
				}
			}
			for _, row := range slices.Concat(u.Running, u.Settled) {
				if row.Lives == 0 || row.Currency == "" {
					t.Errorf("%s, by %v: a line %+v", what, by, row)
				}
			}
		}
		if what == "kept" {
			if _, err := b.DeleteSnapshot(t.Context(), snap, false); err != nil {
				t.Fatal(told(err))
			}
			b.end(s)
		}
	}
	b.clean()
}

func TestAKillAtAnyStepOfASnapshotConverges(t *testing.T) {
	t.Parallel()
	killing(t)
	common := []string{"ledger.begin", "ledger.snapshot", "ledger.intent.open", "ledger.intent.finish", "ledger.event", "ledger.stream",
		"ledger.commit", "ledger.committed"}
	for _, c := range []struct {
		do, profile string
		points      []string
	}{{"snapshot", "profile.stub", slices.Concat(failpointtest.Names("engine.snapshot."), common,
		[]string{"ledger.meter.open", "ledger.meter.segment.open"})},
		{"unkeep", "profile.stub", slices.Concat(failpointtest.Names("engine.unkeep."), common,
			[]string{"ledger.meter.close", "ledger.meter.segment.close", "ledger.charge"})},
		{"create", "profile.stub", failpointtest.Names("engine.create.")},
		{"snapshot", "profile.quickstart", failpointtest.Names("engine.snapshot.")},
		{"unkeep", "profile.quickstart", failpointtest.Names("engine.unkeep.")}} {
		for _, point := range c.points {
			t.Run(c.do+"/"+point+"/"+c.profile, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				b.fund()
				s := b.create(engine.Request{Profile: c.profile, Name: "one"})
				o := order{Do: c.do, Profile: c.profile, Receipt: s.Receipt, Name: "two"}
				if c.do != "snapshot" {
					o.Snapshot = b.keep(s, engine.SnapshotRequest{Name: "first", Retention: "30d"}).ID
				}
				b.killed(o, point)
				e := b.reopen()
				if err := e.Recover(t.Context(), nil); err != nil {
					t.Fatal(told(err))
				}
				all, err := e.Snapshots(t.Context(), false)
				if err != nil {
					t.Fatal(told(err))
				}
				for _, snap := range all {
					if snap.State != "ready" {
						t.Errorf("%s is left %s", snap.ID, snap.State)
					}
					if _, err := e.GetSnapshot(t.Context(), snap); err != nil {
						t.Errorf("%s is on the books: %v", snap.ID, told(err))
					}
					if _, err := e.DeleteSnapshot(t.Context(), snap, false); err != nil {
						t.Error(told(err))
					}
				}
				for _, live := range b.liveOn(e) {
					if _, err := e.Destroy(t.Context(), live.Receipt, engine.DestroyOptions{}); err != nil {
						t.Error(told(err))
					}
				}
				if n := b.keeps() + b.keepsHere(); n != 0 {
					t.Errorf("%d snapshots are left that the ledger does not know", n)
				}
				if left := b.left(); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
				b.accounted()
				b.clean()
			})
		}
	}
}

func (b *bench) liveOn(e *engine.Engine) []engine.Sandbox {
	b.t.Helper()
	all, err := e.List(b.t.Context(), false)
	if err != nil {
		b.t.Fatal(told(err))
	}
	return all
}

// keepsHere is how many snapshots this machine has.
func (b *bench) keepsHere() int {
	b.t.Helper()
	found, err := filepath.Glob(filepath.Join(b.StateDir, "local", "snapshots", "*"))
	if err != nil {
		b.t.Fatal(err)
	}
	return len(found)
}
