package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// What platform credit pays for must end: a plan and an apply refuse a snapshot without an end, and one that would lose
// its end.
func TestPlatformCreditKeepsNoSnapshotWithoutAnEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fund()
	s := b.create(engine.Request{Name: "one"})
	refused := func(what string, err error) {
		t.Helper()
		if !extensions.IsKind(err, extensions.KindInvalid) || extensions.FieldOf(err) != "retention" || extensions.RemedyOf(err) == "" {
			t.Errorf("%s: %v", what, told(err))
		}
	}
	_, err := b.CheckSnapshot(t.Context(), s.ID, engine.SnapshotRequest{})
	refused("a plan", err)
	_, err = b.Snapshot(t.Context(), s.Receipt, engine.SnapshotRequest{})
	refused("an apply", err)
	if n := b.keeps(); n != 0 {
		t.Errorf("the refused ones left %d", n)
	}
	if _, err := b.CheckSnapshot(t.Context(), s.ID, engine.SnapshotRequest{Retention: "30d"}); err != nil {
		t.Errorf("with an end: %v", told(err))
	}
	snap := b.keep(s, engine.SnapshotRequest{Retention: "30d"})
	refused("a plan that drops its end", b.CheckRetention(t.Context(), snap.ID, ""))
	_, err = b.Retain(t.Context(), snap.ID, "")
	refused("an apply that drops its end", err)
	if err := b.CheckRetention(t.Context(), snap.ID, "60d"); err != nil {
		t.Errorf("another end: %v", told(err))
	}
	if kept, err := b.Retain(t.Context(), snap.ID, "60d"); err != nil || !kept.ExpiresAt.Equal(snap.CreatedAt.Add(60*24*time.Hour)) {
		t.Errorf("another end: %s, %v", kept.ExpiresAt, told(err))
	}
	if _, err := b.DeleteSnapshot(t.Context(), snap, false); err != nil {
		t.Fatal(told(err))
	}
	b.end(s)
	b.accounted()
	b.clean()
}

// Where keeping costs nothing, or the place ends it, or somebody else pays, it may be kept until it is deleted.
func TestASnapshotWithoutAnEndIsKeptWhereItsCostIsBounded(t *testing.T) {
	t.Parallel()
	free := prices("ext.free", "  - { component: sandbox, unit: sandbox-hour, price: \"1\" }\n"+
		"  - { component: snapshot, unit: snapshot-gib-month, price: \"0\" }\n")
	for name, c := range map[string]struct {
		profile string
		funded  bool
	}{
		"it is free":      {"profile.free", true},
		"on this machine": {"profile.quickstart", true},
		"one's own key":   {"profile.stub", false},
		"it lapses":       {"profile.lapsing", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := &hooked{handler: "lapsing", says: func(d *extensions.Descriptor) { d.NamedOnly, d.Snapshots.Expires = false, time.Hour }}
			b := newBench(t, having(x), onFiles(map[string]string{
				"extensions/ext.free.yaml":    bound("ext.free", "$VENDOR", ""),
				"prices/free.yaml":            free,
				"profiles/free.yaml":          profile("profile.free", "extension: ext.free\n"),
				"extensions/ext.lapsing.yaml": "id: ext.lapsing\ntitle: Lapsing\nhandler: lapsing\nconfig: { dir: \"$VENDOR\" }\n",
				"prices/lapsing.yaml": strings.Replace(prices("ext.lapsing", "  - { component: sandbox, unit: sandbox-hour, price: \"1\" }\n"),
					"prices.mine", "prices.lapsing", 1),
				"profiles/lapsing.yaml": profile("profile.lapsing", "extension: ext.lapsing\n"),
			}), func(b *bench) { b.profile = c.profile })
			if c.funded {
				b.fund()
			}
			s := b.create(engine.Request{Name: "one"})
			if _, err := b.CheckSnapshot(t.Context(), s.ID, engine.SnapshotRequest{}); err != nil {
				t.Errorf("a plan: %v", told(err))
			}
			snap := b.keep(s, engine.SnapshotRequest{})
			if _, err := b.DeleteSnapshot(t.Context(), snap, false); err != nil {
				t.Fatal(told(err))
			}
			b.end(s)
			b.clean()
		})
	}
}

// Of what has ended no snapshot can be taken, so none is deleted for one. A plain delete goes on, and so does one for a
// snapshot of another sandbox.
func TestASnapshotIsNotDeletedForOneThatCannotBeTaken(t *testing.T) {
	t.Parallel()
	for name, without := range map[string]func(b *bench, s engine.Sandbox) *engine.Engine{
		"it has expired":          func(b *bench, _ engine.Sandbox) *engine.Engine { return b.reopen(later(2 * time.Hour)) },
		"it was destroyed":        func(b *bench, s engine.Sandbox) *engine.Engine { b.end(s); return b.reopen() },
		"it is of another ledger": func(b *bench, _ engine.Sandbox) *engine.Engine { return b.elsewhere() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s, other := b.create(engine.Request{Name: "one"}), b.create(engine.Request{Name: "two", TTL: "12h"})
			snap, plain := b.keep(s, engine.SnapshotRequest{}), b.keep(s, engine.SnapshotRequest{})
			e := without(b, s)
			_, err := e.CheckSnapshot(t.Context(), s.ID, engine.SnapshotRequest{})
			_, derr := e.DeleteSnapshot(t.Context(), snap, true)
			for _, err := range []error{err, derr} {
				if !extensions.IsKind(err, extensions.KindConflict) || extensions.FieldOf(err) != "sandbox_id" || extensions.RemedyOf(err) == "" {
					t.Errorf("%v", told(err))
				}
			}
			if b.keeps() != 2 {
				t.Errorf("%d are kept", b.keeps())
			}
			if snap.SandboxID = other.ID; name == "it is of another ledger" {
				snap.SandboxID = "" // not known yet
			}
			for _, c := range []struct {
				snap     engine.SnapshotView
				replaced bool
			}{{snap, true}, {plain, false}} {
				if _, err := e.DeleteSnapshot(t.Context(), c.snap, c.replaced); err != nil {
					t.Errorf("replaced %t: %v", c.replaced, told(err))
				}
			}
			if b.keeps() != 0 {
				t.Errorf("then %d are kept", b.keeps())
			}
			b.end(s, other)
			b.clean()
		})
	}
}

// Where use moves the end of a snapshot, its place says when that is: it is neither deleted nor refused before, and counts
// until then.
func TestASnapshotThatUseKeepsIsKept(t *testing.T) {
	t.Parallel()
	var ends time.Time // what the vendor says now
	var lost error
	x := &hooked{handler: "lapsing", says: func(d *extensions.Descriptor) { d.NamedOnly, d.Snapshots.Expires = false, 24*time.Hour },
		does: func(c *calls, _ extensions.Config) {
			take, stat := c.Snapshot, c.StatSnapshot
			c.Snapshot = func(ctx context.Context, h extensions.Handle, s extensions.SnapshotSpec) (extensions.Snapshot, error) {
				k, err := take(ctx, h, s)
				ends = k.CreatedAt.Add(24 * time.Hour)
				k.ExpiresAt = ends
				return k, err
			}
			c.StatSnapshot = func(ctx context.Context, h extensions.SnapshotHandle) (extensions.Snapshot, error) {
				k, err := stat(ctx, h)
				k.ExpiresAt = ends
				return k, errors.Join(err, lost)
			}
		}}
	b := newBench(t, having(x), onFiles(map[string]string{
		"extensions/ext.lapsing.yaml": "id: ext.lapsing\ntitle: Lapsing\nhandler: lapsing\nconfig: { dir: \"$VENDOR\" }\n",
		"prices/lapsing.yaml": prices("ext.lapsing", "  - { component: sandbox, unit: sandbox-hour, price: \"1\" }\n"+
			"  - { component: snapshot, unit: snapshot-gib-month, price: \"1\" }\n"),
		"profiles/t.yaml": profile("profile.t", "extension: ext.lapsing\n"),
	}), func(b *bench) { b.profile = "profile.t" })
	b.fund()
	s := b.create(engine.Request{Name: "one"})
	snap, other := b.keep(s, engine.SnapshotRequest{}), b.keep(s, engine.SnapshotRequest{})
	b.end(s)
	from := engine.Request{Profile: "profile.t", Name: "two", FromSnapshot: snap.ID}
	is := func(at time.Duration, left int) {
		t.Helper()
		if err := b.reopen(later(at)).Recover(t.Context(), nil); err != nil || b.keeps() != left {
			t.Errorf("after %s: %v; %d are kept", at, told(err), b.keeps())
		}
	}
	ends = ends.Add(24 * time.Hour)
	if _, err := b.reopen(later(25*time.Hour)).Plan(t.Context(), from); err != nil {
		t.Errorf("a plan from it: %v", told(err))
	}
	if _, err := b.reopen(later(25*time.Hour)).DeleteSnapshot(t.Context(), other, false); err != nil {
		t.Error(told(err))
	}
	u, err := b.Usage(t.Context(), engine.UsageQuery{By: []string{"component"}, Component: "snapshot"})
	if err != nil || len(u.Settled) != 1 || u.Settled[0].Quantity < "90000000" { // 25 hours of 1 MiB
		t.Errorf("one that is deleted then counts %+v, %v", u.Settled, told(err))
	}
	is(25*time.Hour, 1)
	ends = ends.Truncate(time.Microsecond)
	if got, err := b.LookupSnapshot(t.Context(), snap.ID); err != nil || got.State != "ready" || !got.ExpiresAt.Equal(ends) {
		t.Errorf("it is %s until %s, %v; want %s", got.State, got.ExpiresAt, told(err), ends)
	}
	lost = extensions.Errorf(extensions.KindUnreachable, "out of reach")
	is(49*time.Hour, 1)
	lost = extensions.Errorf(extensions.KindNotFound, "gone")
	is(49*time.Hour, 0)
	if _, err := b.LookupSnapshot(t.Context(), snap.ID); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Errorf("the ledger still has it: %v", told(err))
	}
	b.accounted()
	b.clean()
}

// What a dead run was starting from a snapshot goes before it: places keep one that a sandbox runs from.
func TestADeletionOfASnapshotFirstSettlesDeadRuns(t *testing.T) {
	t.Parallel()
	killing(t)
	b := newBench(t)
	s := b.create(engine.Request{Name: "one"})
	snap := b.keep(s, engine.SnapshotRequest{})
	b.killed(order{Do: "create", Profile: "profile.stub", Snapshot: snap.ID, Name: "two"}, "engine.create.handle")
	b.Engine = b.reopen()
	if _, err := b.DeleteSnapshot(t.Context(), snap, false); err != nil {
		t.Error(told(err))
	}
	if live := b.liveOn(b.Engine); len(live) != 1 || len(b.alive()) != 1 {
		t.Errorf("the ledger has %d, the place %v", len(live), b.alive())
	}
	b.end(s)
	b.clean()
}

// A sweep settles what is gone without the ledger: deleted at its place, or by a run that could not record it. What it cannot
// look up, it leaves alone.
func TestASweepSettlesSnapshotsThatAreGone(t *testing.T) {
	t.Parallel()
	b := newBench(t, onLedger("sqlite://"+t.TempDir()+"/ledger.db"))
	b.fund()
	there := b.create(engine.Request{Profile: "profile.quickstart", Name: "two"})
	kept := b.keep(there, engine.SnapshotRequest{})
	if r, err := b.machine().Sweep(t.Context(), false, nil); err != nil || len(r.Snapshots) > 0 {
		t.Errorf("on another machine it settles %v, %v", r.Snapshots, told(err))
	}
	s := b.create(engine.Request{Name: "one"})
	snap, other := b.keep(s, engine.SnapshotRequest{Retention: "30d"}), b.keep(s, engine.SnapshotRequest{Retention: "30d"})
	if _, err := b.elsewhere().DeleteSnapshot(t.Context(), snap, false); err != nil || b.keeps() != 1 {
		t.Fatalf("%v; %d are kept", told(err), b.keeps())
	}
	unheard := b.keep(s, engine.SnapshotRequest{Retention: "30d"})
	b.script(saasstub.Rule{Op: vendor.OpDeleteSnapshot, Do: vendor.DoLoseAnswer})
	if _, err := b.DeleteSnapshot(t.Context(), unheard, false); err == nil || b.keeps() != 1 {
		t.Fatalf("nobody heard of its end: %v; %d are kept", told(err), b.keeps())
	}
	b.script()
	swept := func(dry bool, want ...string) {
		t.Helper()
		r, err := b.reopen().Sweep(t.Context(), dry, nil)
		if err != nil || !slices.Equal(r.Snapshots, want) {
			t.Errorf("dry run %t: it says %v, %v; want %v", dry, r.Snapshots, told(err), want)
		}
	}
	b.script(saasstub.Rule{Op: vendor.OpGetSnapshot, Do: vendor.DoUnreachable})
	swept(false)
	b.script()
	swept(true, snap.ID, unheard.ID)
	swept(false, snap.ID, unheard.ID)
	swept(false)
	if all, err := b.Snapshots(t.Context(), false); err != nil || len(all) != 2 || all[0].ID != kept.ID || all[1].ID != other.ID {
		t.Errorf("listed are %+v, %v", all, told(err))
	}
	if u, err := b.Usage(t.Context(), engine.UsageQuery{By: []string{"component"}, Component: "snapshot"}); err != nil || len(u.Settled) != 1 {
		t.Errorf("settled are %+v, %v", u.Settled, told(err))
	}
	for _, left := range []engine.SnapshotView{other, kept} {
		if _, err := b.DeleteSnapshot(t.Context(), left, false); err != nil {
			t.Error(told(err))
		}
	}
	b.end(s, there)
	b.accounted()
	b.clean()
}
