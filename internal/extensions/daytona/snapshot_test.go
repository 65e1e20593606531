package daytona_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/daytonatest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
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
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Second) // by then the vendor has been asked
	defer stop()
	s := b.(extensions.Snapshotter)
	if _, err := s.Snapshot(ctx, h, extensions.SnapshotSpec{ID: id, Account: cfg.Account}); err == nil {
		t.Fatal("it was taken")
	}
	if _, err := s.FindSnapshot(t.Context(), id); !extensions.IsKind(err, extensions.KindConflict) {
		t.Errorf("while it is taken: %v", err)
	}
}

// A restore has the size that is asked for, whatever its snapshot's is: it gets more cores and memory while it runs; for less of
// them, or more disk, it is stopped.
func TestARestoreHasTheSizeThatIsAskedFor(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) *daytonatest.Vendor{"cloud": daytonatest.Start, "self-hosted": daytonatest.StartSelfHosted} {
		t.Run(name, func(t *testing.T) { t.Parallel(); resizes(t, name, start(t)) })
	}
}

func resizes(t *testing.T, edition string, v *daytonatest.Vendor) {
	t.Helper()
	cfg, b := openFor(t, v, map[string]any{"edition": edition})
	sized := func(cpu extensions.Milli, memory, disk int64) exttest.Option {
		return exttest.With(func(s *extensions.Spec) {
			s.Resources = extensions.Resources{CPU: &cpu, MemoryMB: &memory, DiskMB: &disk}
		})
	}
	_, h := made(t, cfg, b, sized(2000, 2048, 3072))
	sh(t, b, h, "echo kept >f")
	s := kept(t, cfg, b, h)
	for what, x := range map[string]struct {
		cpu          extensions.Milli
		memory, disk int64
		stops        bool
	}{
		"as it was": {2000, 2048, 3072, false},
		"more":      {3000, 4096, 3072, false},
		"less":      {1000, 2048, 3072, true},
		"more disk": {2000, 2048, 10240, true},
		"mixed":     {4000, 1024, 4096, true},
	} {
		_, h := made(t, cfg, b, from(s), sized(x.cpu, x.memory, x.disk))
		all, err := b.Status(t.Context(), []extensions.Handle{h})
		if must(t, err); all[0].Phase != extensions.PhaseReady {
			t.Fatalf("%s: %+v", what, all[0])
		}
		if is := all[0].Allocated; *is.CPU != x.cpu || *is.MemoryMB != x.memory || *is.DiskMB != x.disk {
			t.Errorf("%s: %d milli-vCPU, %d and %d MiB", what, *is.CPU, *is.MemoryMB, *is.DiskMB)
		}
		if got := sh(t, b, h, "cat f"); got != "kept\n" {
			t.Errorf("%s: the file reads %q", what, got)
		}
		stopped := slices.ContainsFunc(v.Requests(), func(q vendortest.Request) bool { return strings.HasSuffix(q.Path, "/"+h.Ref+"/stop") })
		if stopped != x.stops {
			t.Errorf("%s: it was stopped: %v", what, stopped)
		}
		if seen := v.Sandboxes()[h.Ref]; edition == "self-hosted" && seen["autoDeleteInterval"] != 0 {
			t.Errorf("%s: it is deleted after %v", what, seen["autoDeleteInterval"])
		}
	}
}

// A size that the organization has not left is refused as its quota, and the sandbox goes.
func TestASizeBeyondTheQuotaIsExhausted(t *testing.T) {
	t.Parallel()
	v, cfg, b := openAt(t)
	v.SetPlan(daytonatest.Plan{CPU: 4})
	cpu := extensions.Milli(8000)
	spec := exttest.Spec(t, cfg, exttest.With(func(s *extensions.Spec) { s.Resources.CPU = &cpu }))
	h, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	if _, err = b.WaitReady(t.Context(), spec, h); !extensions.IsKind(err, extensions.KindExhausted) {
		t.Errorf("%v", err)
	}
}
