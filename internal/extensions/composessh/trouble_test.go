package composessh

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

func TestAStoppedSSHDIsBoundedAndLosesNothing(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"commit", "step starting"} {
		t.Run(strings.ReplaceAll(step, " ", "-"), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			before := s.residue(t)
			b, spec := s.open(t), s.spec(t)
			ctx := newPatience(t.Context())
			reached := at(t, b, step, func() {
				s.server.Pause()
				ctx.endIn(3 * time.Second)
			})
			h, _, err := b.Provision(ctx, spec)
			s.tearDownAtEnd(t, spec.ID)
			if err == nil || !reached() {
				t.Errorf("a host that stopped: %v", err)
			}
			if kind := extensions.KindOf(err); kind != extensions.KindTimeout && kind != extensions.KindIndeterminate || h.ID != spec.ID {
				t.Errorf("kind %s, handle %s", kind, h.Encode())
			}
			s.gate.shut() // the client is gone for good
			s.server.Resume()
			s.gate.open()
			other := s.open(t)
			_, err = other.Teardown(t.Context(), other.handle(spec.ID))
			must(t, err)
			s.settled(t)
			if left := s.left(t, before); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

func TestAFullDiskIsExhaustedAndNothingIsLeft(t *testing.T) {
	t.Parallel()
	s := newSite(t, hosttest.WithDisk(8))
	b := s.open(t)
	before := s.residue(t)
	filler := filepath.Join(s.server.HomeDir, "filler")
	for _, free := range []int64{0, 8 << 10, 40 << 10} {
		fill(t, filler, free)
		spec := s.spec(t, exttest.WithWorkspace(extensions.AccessRW, map[string]string{"big": strings.Repeat("x", 300<<10)}))
		h, _, err := b.Provision(t.Context(), spec)
		if !h.IsZero() {
			s.tearDownAtEnd(t, spec.ID)
		}
		if !extensions.IsKind(err, extensions.KindExhausted) || !h.IsZero() {
			t.Errorf("with %d bytes free: %v, handle %q", free, err, h.Encode())
		}
		must(t, os.Remove(filler))
		if left := s.left(t, before); len(left) > 0 {
			t.Errorf("with %d bytes free, left behind: %q", free, left)
		}
	}
	h := s.provision(t, b, s.spec(t))
	fill(t, filler, 0)
	if o := s.observe(t, b, h); o.Phase != extensions.PhaseReady {
		t.Errorf("on a full disk it is %s: %s", o.Phase, o.Reason)
	}
	_, err := b.Teardown(t.Context(), h)
	must(t, err)
	must(t, os.Remove(filler))
}

// fill takes all of a small disk but so many bytes.
func fill(t testing.TB, file string, leave int64) {
	t.Helper()
	f, err := os.Create(file)
	must(t, err)
	block := make([]byte, 4<<10)
	for err == nil {
		_, err = f.Write(block)
	}
	at, err := f.Seek(0, 1)
	must(t, err)
	must(t, f.Truncate(max(at-leave, 0)))
	must(t, f.Close())
}

func TestTwoClientsMakeOneSandbox(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	spec := s.spec(t)
	s.tearDownAtEnd(t, spec.ID)
	var wg sync.WaitGroup
	for range 2 {
		b := s.open(t)
		wg.Go(func() {
			h, o, err := b.Provision(t.Context(), spec)
			if err != nil || o.Phase != extensions.PhaseReady || h.ID != spec.ID {
				t.Errorf("%s, %v", o.Phase, err)
			}
		})
	}
	wg.Wait()
	if n := len(s.containers(t)); n != 1 {
		t.Errorf("%d containers, want one", n)
	}
}

func TestAnotherMachineRemovesByIDAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	before := s.residue(t)
	spec := s.spec(t)
	s.provision(t, s.open(t), spec)
	there := *s
	there.config.StateDir = t.TempDir()
	b := there.open(t)
	h, err := b.Find(t.Context(), spec.ID)
	must(t, err)
	r, err := b.Teardown(t.Context(), extensions.Handle{Extension: h.Extension, Version: h.Version, ID: h.ID, Ref: h.Ref})
	must(t, err)
	if r.AlreadyGone {
		t.Error("the report says it was gone")
	}
	if left := s.left(t, before); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestAFolderThatIsGoneIsFoundByLabel(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	before := s.residue(t)
	h := s.provision(t, b, s.spec(t))
	s.endLoop(t) // it would end what has lost its folder
	must(t, os.RemoveAll(s.root))
	if o := s.observe(t, b, h); o.Phase != extensions.PhaseFailed || !strings.Contains(o.Reason, "folder") {
		t.Errorf("it is %s: %s", o.Phase, o.Reason)
	}
	all, err := b.Status(t.Context(), nil)
	must(t, err)
	if len(all) != 1 || all[0].ID != h.ID {
		t.Errorf("the list is %+v", all)
	}
	_, err = b.Find(t.Context(), h.ID)
	must(t, err)
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
	if left := s.left(t, before); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestABusySandboxIsNotAbsent(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b, spec := s.open(t), s.spec(t)
	s.tearDownAtEnd(t, spec.ID)
	other := s.open(t)
	checked := at(t, b, "step starting", func() {
		if _, err := other.Find(t.Context(), spec.ID); !extensions.IsKind(err, extensions.KindConflict) {
			t.Errorf("find of what is being made: %v", err)
		}
		if o := s.observe(t, other, other.handle(spec.ID)); o.Phase != extensions.PhaseProvisioning {
			t.Errorf("status of what is being made: %s %s", o.Phase, o.Reason)
		}
	})
	_, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	if !checked() {
		t.Error("the step was never reached")
	}
}
