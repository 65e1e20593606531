//go:build linux

package local

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// standStill keeps an init from noticing anything, as a machine that is very
// busy does. It would stand for ever if this process was killed, so another one
// waits for that.
func standStill(t *testing.T, b *Backend, id extensions.ID) {
	t.Helper()
	rec, err := b.settings.box(id).read()
	must(t, err)
	guard := exec.Command("sh", "-c", "read -r _; kill -KILL "+strconv.Itoa(rec.Init.PID))
	_, err = guard.StdinPipe()
	must(t, err)
	must(t, guard.Start())
	t.Cleanup(func() {
		_ = guard.Process.Kill()
		_ = guard.Wait()
	})
	must(t, syscall.Kill(rec.Init.PID, syscall.SIGSTOP))
}

func observed(t *testing.T, b *Backend, h extensions.Handle) extensions.Observation {
	t.Helper()
	o, err := b.Status(t.Context(), []extensions.Handle{h})
	must(t, err)
	return o[0]
}

// ways to take a sandbox's records away while it runs.
var ways = map[string]func(t *testing.T, b *Backend, id extensions.ID){
	"its folder removed": func(t *testing.T, b *Backend, id extensions.ID) {
		must(t, os.RemoveAll(b.settings.box(id).dir))
	},
	"its folder emptied": func(t *testing.T, b *Backend, id extensions.ID) {
		must(t, b.settings.box(id).empty())
	},
	"its folder moved": func(t *testing.T, b *Backend, id extensions.ID) {
		must(t, os.Rename(b.settings.box(id).dir, filepath.Join(t.TempDir(), "elsewhere")))
	},
	"all folders moved": func(t *testing.T, b *Backend, _ extensions.ID) {
		must(t, os.Rename(b.settings.root, filepath.Join(t.TempDir(), "elsewhere")))
	},
	"all folders removed": func(t *testing.T, b *Backend, _ extensions.ID) {
		must(t, os.RemoveAll(b.settings.root))
	},
}

func TestWhatRunsWithoutItsFolderIsNeitherLostNorUsable(t *testing.T) {
	t.Parallel()
	for way, take := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			b, spec := openBackend(t, t.TempDir(), nil), testSpec(t)
			h := provision(t, b, spec)
			standStill(t, b, spec.ID)
			take(t, b, spec.ID)
			if o := observed(t, b, h); o.Phase != extensions.PhaseFailed || !o.EndedAt.IsZero() || o.Reason == "" {
				t.Errorf("observed: %+v", o)
			}
			for what, err := range map[string]error{
				"exec":     second(b.Exec(t.Context(), h, extensions.ExecRequest{Command: []string{"true"}})),
				"extend":   b.Extend(t.Context(), h, time.Now().Add(time.Hour)),
				"download": b.Download(t.Context(), h, ".", io.Discard),
			} {
				if !extensions.IsKind(err, extensions.KindNotFound) || extensions.RemedyOf(err) == "" {
					t.Errorf("%s: %v, remedy %q", what, err, extensions.RemedyOf(err))
				}
			}
			r, err := b.Teardown(t.Context(), h)
			must(t, err)
			if r.AlreadyGone {
				t.Error("the teardown says that it was gone")
			}
			checkGone(t, b, spec.ID)
			if left := residue(t, extensions.Config{StateDir: filepath.Dir(b.settings.root)}); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

func TestWhatRunsWithoutItsFolderIsFoundListedAndCounted(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"its folder removed", "its folder emptied", "its folder moved"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			b, spec := openBackend(t, t.TempDir(), nil), testSpec(t)
			made := provision(t, b, spec)
			standStill(t, b, spec.ID)
			ways[way](t, b, spec.ID)
			h, err := b.Find(t.Context(), spec.ID)
			must(t, err)
			if h.Encode() != made.Encode() {
				t.Errorf("found %s, made %s", h.Encode(), made.Encode())
			}
			all, err := b.Status(t.Context(), nil)
			must(t, err)
			if len(all) != 1 || all[0].Phase != extensions.PhaseFailed || all[0].ID != spec.ID {
				t.Errorf("listed: %+v", all)
			}
			if c, err := b.Capacity(t.Context()); err != nil || *c.Used != 1 {
				t.Errorf("capacity: %+v, %v", c, err)
			}
		})
	}
}

func TestASandboxThatIsMadeAgainEndsTheOneWithoutAFolder(t *testing.T) {
	t.Parallel()
	b, spec := openBackend(t, t.TempDir(), nil), testSpec(t)
	provision(t, b, spec)
	standStill(t, b, spec.ID)
	must(t, os.RemoveAll(b.settings.box(spec.ID).dir))
	h := provision(t, b, spec)
	shell(t, b, h, "true")
	eventually(t, soon, "there is one init", func() bool { return initCount(spec.ID) == 1 })
}

func TestASandboxEndsWithItsFolderAndTellsWhen(t *testing.T) {
	t.Parallel()
	b, spec := openBackend(t, t.TempDir(), nil), testSpec(t)
	h := provision(t, b, spec)
	shell(t, b, h, "setsid sleep 1005 >/dev/null 2>&1 & true")
	removed := time.Now()
	must(t, os.RemoveAll(b.settings.box(spec.ID).dir))
	eventually(t, soon, "it ends", func() bool { return len(processesOf(spec.ID)) == 0 })
	o := observed(t, b, h)
	if o.Phase != extensions.PhaseAbsent || o.Reason == "" || o.EndedAt.Before(removed) || o.EndedAt.After(time.Now()) {
		t.Errorf("observed: %+v", o)
	}
	if all, err := b.Status(t.Context(), nil); err != nil || len(all) != 0 {
		t.Errorf("listed: %+v, %v", all, err)
	}
	r, err := b.Teardown(t.Context(), h)
	must(t, err)
	if !r.AlreadyGone || !r.EndedAt.Equal(o.EndedAt) || r.Usage == nil || !r.Usage.EndedAt.Equal(o.EndedAt) {
		t.Errorf("report: %+v", r)
	}
	checkGone(t, b, spec.ID)
}

func TestASandboxEndsWithTheWholeStateFolder(t *testing.T) {
	t.Parallel()
	b, spec := openBackend(t, t.TempDir(), nil), testSpec(t)
	h := provision(t, b, spec)
	must(t, os.RemoveAll(b.settings.root))
	eventually(t, soon, "it ends", func() bool { return len(processesOf(spec.ID)) == 0 })
	if o := observed(t, b, h); o.Phase != extensions.PhaseAbsent {
		t.Errorf("observed: %+v", o)
	}
}

func TestAMovedFolderDoesNotMoveTheDeadline(t *testing.T) {
	t.Parallel()
	b, spec := openBackend(t, t.TempDir(), nil), testSpec(t)
	spec.Deadline = time.Now().Add(life)
	h := provision(t, b, spec)
	ways["its folder moved"](t, b, spec.ID)
	eventually(t, soon, "it ends", func() bool { return len(processesOf(spec.ID)) == 0 })
	o := observed(t, b, h)
	if late := o.EndedAt.Sub(spec.Deadline); o.Phase != extensions.PhaseExpired || late < -time.Millisecond || late > 5*time.Second {
		t.Errorf("observed %s after the deadline: %+v", late, o)
	}
}

func TestAnEmptiedLeaseDoesNotMoveTheDeadline(t *testing.T) {
	t.Parallel()
	b, spec := openBackend(t, t.TempDir(), nil), testSpec(t)
	spec.Deadline = time.Now().Add(life)
	h := provision(t, b, spec)
	must(t, os.Truncate(b.settings.box(spec.ID).path(leaseName), 0))
	shell(t, b, h, "true")
	eventually(t, soon, "it ends", func() bool { return len(processesOf(spec.ID)) == 0 })
	if o := observed(t, b, h); o.Phase != extensions.PhaseExpired || o.EndedAt.Before(spec.Deadline.Add(-time.Millisecond)) {
		t.Errorf("observed: %+v", o)
	}
}

func TestWithoutTheSecondCopyNothingChanges(t *testing.T) {
	t.Parallel()
	b, spec := openBackend(t, t.TempDir(), nil), testSpec(t)
	h := provision(t, b, spec)
	must(t, os.RemoveAll(filepath.Join(b.settings.root, recordsName)))
	if o := observed(t, b, h); o.Phase != extensions.PhaseReady {
		t.Errorf("observed: %+v", o)
	}
	shell(t, b, h, "true")
	must(t, b.Extend(t.Context(), h, time.Now().Add(time.Minute)))
	_, err := b.Teardown(t.Context(), h)
	must(t, err)
	checkGone(t, b, spec.ID)
}

// A process is recognised by when it started and in which boot, not by its
// number: that is given to others.
func TestAnotherProcessOfTheSameNumberIsNotTheSandbox(t *testing.T) {
	t.Parallel()
	self, err := identify(os.Getpid())
	must(t, err)
	earlier, otherBoot := *self, *self
	earlier.Start--
	otherBoot.BootID = "another boot"
	for what, p := range map[string]*process{"an earlier process": &earlier, "another boot": &otherBoot} {
		b, spec := openBackend(t, t.TempDir(), nil), testSpec(t)
		bx := b.settings.box(spec.ID)
		must(t, os.MkdirAll(bx.dir, 0o700))
		must(t, bx.write(record{Account: "acme/web", State: stateReady, Init: p, Deadline: time.Now().Add(time.Hour)}))
		must(t, os.RemoveAll(bx.dir))
		h, err := b.Find(t.Context(), spec.ID)
		must(t, err)
		if o := observed(t, b, h); o.Phase != extensions.PhaseAbsent {
			t.Errorf("%s: %+v", what, o)
		}
		r, err := b.Teardown(t.Context(), h)
		must(t, err)
		if !r.AlreadyGone {
			t.Errorf("%s: %+v", what, r)
		}
		checkGone(t, b, spec.ID)
	}
}

func TestAHandleAloneEndsNoOtherProcess(t *testing.T) {
	t.Parallel()
	b := openBackend(t, t.TempDir(), nil)
	self, err := identify(os.Getpid())
	must(t, err)
	h := b.settings.handle(record{ID: testSpec(t).ID, Init: self})
	if o := observed(t, b, h); o.Phase != extensions.PhaseAbsent {
		t.Errorf("observed: %+v", o)
	}
	r, err := b.Teardown(t.Context(), h)
	must(t, err) // and this process still runs
	if !r.AlreadyGone {
		t.Errorf("report: %+v", r)
	}
}

func TestKilledAtAnyStepOfCreateNothingIsLeftAlsoWithoutTheFolder(t *testing.T) {
	t.Parallel()
	for _, step := range createSteps {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			b, id := openBackend(t, t.TempDir(), nil), testSpec(t).ID
			if err := driver(t, "provision", filepath.Dir(b.settings.root), id, time.Minute, step); err == nil {
				t.Fatal("the driver was not killed")
			}
			must(t, os.RemoveAll(b.settings.box(id).dir))
			h, err := b.Find(t.Context(), id)
			must(t, err)
			_, err = b.Teardown(t.Context(), h)
			must(t, err)
			checkGone(t, b, id)
			if left := residue(t, extensions.Config{StateDir: filepath.Dir(b.settings.root)}); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}
