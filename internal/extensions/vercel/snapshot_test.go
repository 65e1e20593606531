package vercel_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/vercel/verceltest"
)

func newSnapshot(t *testing.T) extensions.SnapshotSpec {
	t.Helper()
	id, err := extensions.NewSnapshotID(nil)
	must(t, err)
	return extensions.SnapshotSpec{ID: id, Account: "acme/web", CreatedAt: time.Now()}
}

// Whoever did not hear of a snapshot finds it by the sandbox that it ended, once the vendor lists both, and nothing twice.
func TestASnapshotThatNobodyHeardOfIsFoundByWhatItEnded(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	v := vendorOf(cfg)
	v.SetLag(verceltest.Lag{Stop: time.Second, List: 20 * time.Second})
	b := opened(t, cfg)
	p := b.(extensions.Snapshotter)
	h := ready(t, cfg, b, exttest.WithWorkspace(extensions.AccessRW, map[string]string{"file": "content"}))
	spec := newSnapshot(t)
	v.Inject(verceltest.Fault{On: "POST /v2/sandboxes/sessions/{sessionId}/snapshot", When: verceltest.After})
	if _, err := p.Snapshot(t.Context(), h, spec); !extensions.IsKind(err, extensions.KindIndeterminate) || len(v.Snapshots()) != 1 {
		t.Fatalf("%v, %d snapshots", err, len(v.Snapshots()))
	}
	if _, err := p.FindSnapshot(t.Context(), spec.ID); !extensions.IsKind(err, extensions.KindIndeterminate) {
		t.Errorf("before it is listed: %v", err)
	}
	v.Clock().Advance(30 * time.Second)
	found, err := p.FindSnapshot(t.Context(), spec.ID)
	must(t, err)
	again, err := p.Snapshot(t.Context(), h, spec)
	must(t, err)
	if again.Handle.Ref != found.Handle.Ref || found.SandboxID != h.ID || !slices.Equal(v.Snapshots(), []string{found.Handle.Ref}) {
		t.Errorf("%+v, %+v, %v", found, again, v.Snapshots())
	}
	if _, err := p.Snapshot(t.Context(), h, newSnapshot(t)); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Errorf("another of what has ended: %v", err)
	}
	all, err := b.Status(t.Context(), []extensions.Handle{h})
	if must(t, err); all[0].Phase != extensions.PhaseFailed || all[0].Reason == "" {
		t.Errorf("what it ended is %+v", all[0])
	}
	must1(b.Teardown(t.Context(), h))
	restored := ready(t, cfg, b, exttest.With(func(s *extensions.Spec) {
		s.FromSnapshot = &extensions.SnapshotRef{ID: spec.ID, Handle: found.Handle}
		s.Options = map[string]any{"runtime": "node24"}
	}))
	if r, err := b.(extensions.Execer).Exec(t.Context(), restored, extensions.ExecRequest{Shell: "cat file"}); err != nil || string(r.Stdout) != "content" {
		t.Errorf("%q, %v", r.Stdout, err)
	}
	must(t, p.DeleteSnapshot(t.Context(), found.Handle))
	if left := v.Snapshots(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// What the vendor refuses leaves the sandbox running, and the next snapshot of it is found by its own id.
func TestARefusedSnapshotLeavesItsSandboxRunning(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	v := vendorOf(cfg)
	b := opened(t, cfg)
	p := b.(extensions.Snapshotter)
	h := ready(t, cfg, b)
	first, second := newSnapshot(t), newSnapshot(t)
	v.Inject(verceltest.Fault{On: "POST /v2/sandboxes/sessions/{sessionId}/snapshot", Status: 402, Body: `{"error":{"code":"payment","message":"no"}}`})
	if _, err := p.Snapshot(t.Context(), h, first); !extensions.IsKind(err, extensions.KindExhausted) {
		t.Fatal(err)
	}
	all, err := b.Status(t.Context(), []extensions.Handle{h})
	if must(t, err); all[0].Phase != extensions.PhaseReady {
		t.Errorf("%+v", all[0])
	}
	s, err := p.Snapshot(t.Context(), h, second)
	must(t, err)
	if _, err := p.FindSnapshot(t.Context(), first.ID); !extensions.IsKind(err, extensions.KindIndeterminate) {
		t.Errorf("the one that was refused: %v", err)
	}
	if found, err := p.FindSnapshot(t.Context(), second.ID); err != nil || found.Handle.Ref != s.Handle.Ref {
		t.Errorf("%+v, %v", found, err)
	}
}

// The vendor keeps a snapshot since its last use, not since it was taken.
func TestASnapshotLivesOnWhileSandboxesStartFromIt(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	v := vendorOf(cfg)
	b := opened(t, cfg)
	p := b.(extensions.Snapshotter)
	h := ready(t, cfg, b)
	spec := newSnapshot(t)
	kept, err := p.Snapshot(t.Context(), h, spec)
	must(t, err)
	must1(b.Teardown(t.Context(), h))
	v.Clock().Advance(20 * 24 * time.Hour)
	used := ready(t, cfg, b, exttest.With(func(s *extensions.Spec) {
		s.FromSnapshot = &extensions.SnapshotRef{ID: spec.ID, Handle: kept.Handle}
	}))
	must1(b.Teardown(t.Context(), used))
	v.Clock().Advance(20 * 24 * time.Hour)
	later, err := p.StatSnapshot(t.Context(), kept.Handle)
	if err != nil || later.ExpiresAt.Sub(kept.ExpiresAt) < 20*24*time.Hour {
		t.Errorf("it ends at %s, before at %s: %v", later.ExpiresAt, kept.ExpiresAt, err)
	}
	v.Clock().Advance(20 * 24 * time.Hour)
	if _, err := p.StatSnapshot(t.Context(), kept.Handle); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Errorf("30 days after its last use: %v", err)
	}
}
