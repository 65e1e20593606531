package daytona_test

import (
	"context"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/daytonatest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// kept takes a snapshot.
func kept(t *testing.T, cfg extensions.Config, b extensions.Backend, h extensions.Handle) extensions.Snapshot {
	t.Helper()
	id, err := extensions.NewSnapshotID(nil)
	must(t, err)
	s, err := b.(extensions.Snapshotter).Snapshot(t.Context(), h, extensions.SnapshotSpec{ID: id, Account: cfg.Account})
	must(t, err)
	return s
}

func from(s extensions.Snapshot) exttest.Option {
	return exttest.With(func(x *extensions.Spec) { x.FromSnapshot = &extensions.SnapshotRef{ID: s.Handle.ID, Handle: s.Handle} })
}

// The vendor deactivates what nobody used for weeks. A snapshot has the region of its sandbox, wherever others are made.
func TestASnapshotIsRestoredWhereItIsAndActivatedBefore(t *testing.T) {
	t.Parallel()
	v, cfg, b := openAt(t)
	_, h := made(t, cfg, b, exttest.With(func(s *extensions.Spec) { s.Region = "eu" }))
	sh(t, b, h, "printf kept >f")
	s := kept(t, cfg, b, h)
	v.SetSnapshotState(s.Handle.Ref, "inactive")
	_, restored := made(t, cfg, b, from(s))
	if got := sh(t, b, restored, "cat f"); got != "kept" || v.Sandboxes()[restored.Ref]["target"] != "eu" {
		t.Errorf("%q in %v", got, v.Sandboxes()[restored.Ref]["target"])
	}
	v.SetSnapshotState(s.Handle.Ref, "error")
	if _, _, err := b.Provision(t.Context(), exttest.Spec(t, cfg, from(s))); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Errorf("of one that is broken: %v", err)
	}
}

// An installation of version 0.190 lists no snapshot before it is whole: until then nobody can say that it is absent.
func TestASnapshotThatIsBeingTakenIsNotAbsent(t *testing.T) {
	t.Parallel()
	v := daytonatest.StartSelfHosted(t)
	cfg, b := openFor(t, v, map[string]any{"edition": "self-hosted"})
	_, h := made(t, cfg, b)
	paused(t, b, h)
	v.SetSlow(-1)
	id, err := extensions.NewSnapshotID(nil)
	must(t, err)
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	s := b.(extensions.Snapshotter)
	if _, err := s.Snapshot(ctx, h, extensions.SnapshotSpec{ID: id, Account: cfg.Account}); err == nil {
		t.Fatal("it was taken")
	}
	if _, err := s.FindSnapshot(t.Context(), id); !extensions.IsKind(err, extensions.KindConflict) {
		t.Errorf("while it is taken: %v", err)
	}
}

// A size comes with the snapshot: one that is asked for beside it fits, or is refused before anything is made.
func TestARestoreHasTheSizeOfItsSnapshot(t *testing.T) {
	t.Parallel()
	v, cfg, b := openAt(t)
	image := &extensions.Image{Pull: "docker.io/library/debian:12-slim"}
	cpu, more, memory := extensions.Milli(2000), extensions.Milli(3000), int64(2048)
	_, h := made(t, cfg, b, exttest.With(func(s *extensions.Spec) {
		s.Image, s.Resources = image, extensions.Resources{CPU: &cpu, MemoryMB: &memory}
	}))
	s := kept(t, cfg, b, h)
	for asked, want := range map[*extensions.Milli]extensions.Kind{&cpu: "", &more: extensions.KindUnsupported} {
		made := v.Creates()
		r, _, err := b.Provision(t.Context(), exttest.Spec(t, cfg, from(s), exttest.With(func(s *extensions.Spec) {
			s.Image, s.Resources = image, extensions.Resources{CPU: asked}
		})))
		if extensions.KindOf(err) != want || want != "" && (!r.IsZero() || v.Creates() != made) {
			t.Errorf("%d milli-vCPU: %v, want %q", *asked, err, want)
		}
	}
}
