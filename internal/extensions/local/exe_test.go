//go:build linux

package local

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// The executable of an init is on a mount that cannot be written or, under bubblewrap, in sealed memory.
func TestTheExecutableOfAnInitCannotBeChanged(t *testing.T) {
	t.Parallel()
	for _, launcher := range []string{launcherNamespaces, launcherBubblewrap} {
		t.Run(launcher, func(t *testing.T) {
			t.Parallel()
			if _, err := findBubblewrap(); err != nil && launcher == launcherBubblewrap {
				t.Skip(err)
			}
			b, spec := openBackend(t, t.TempDir(), map[string]any{"launcher": launcher}), testSpec(t)
			provision(t, b, spec)
			rec, err := b.settings.box(spec.ID).read()
			must(t, err)
			exe := "/proc/" + strconv.Itoa(rec.Init.PID) + "/exe"
			var at unix.Statfs_t
			if err := unix.Statfs(exe, &at); errors.Is(err, unix.EACCES) {
				t.Skip("an ordinary user may not look at it either")
			} else {
				must(t, err)
			}
			name, err := os.Readlink(exe)
			must(t, err)
			sealed := strings.HasPrefix(name, "/memfd:")
			if sealed != (launcher == launcherBubblewrap) || !sealed && at.Flags&unix.ST_RDONLY == 0 {
				t.Errorf("%s is %s, with the mount flags %#x", exe, name, at.Flags)
			}
			if f, err := os.OpenFile(exe, os.O_WRONLY, 0); err == nil {
				_ = f.Close()
				t.Error("it can be written")
			}
		})
	}
}

// An update of sandboxer replaces its file while a run goes on.
func TestARunWhoseExecutableWasReplacedStillStartsSandboxes(t *testing.T) {
	t.Parallel()
	b, id := openBackend(t, t.TempDir(), nil), testSpec(t).ID
	old := filepath.Join(t.TempDir(), "sandboxer")
	// By another process: what this one writes, its other children may hold open, and then it cannot be run.
	must(t, exec.CommandContext(t.Context(), "cp", fmt.Sprintf("/proc/%d/exe", os.Getpid()), old).Run())
	cmd := exec.Command(old)
	cmd.Env = []string{driverEnv + "=replaced", driverStateEnv + "=" + filepath.Dir(b.settings.root), driverIDEnv + "=" + string(id),
		driverLifeEnv + "=" + time.Minute.String(), launcherEnv + "=" + testLauncher()}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	h, err := b.Find(t.Context(), id)
	must(t, err)
	if r := shell(t, b, h, "echo works"); string(r.Stdout) != "works\n" {
		t.Errorf("it printed %q", r.Stdout)
	}
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
	checkGone(t, b, id)
}

// A power cut may leave records empty; nothing of a sandbox outlives it.
func TestASandboxWhoseRecordsWereCutOffHasEnded(t *testing.T) {
	t.Parallel()
	b, spec := openBackend(t, t.TempDir(), nil), testSpec(t)
	h := provision(t, b, spec)
	bx := b.settings.box(spec.ID)
	rec, err := bx.read()
	must(t, err)
	must(t, errors.Join(rec.Keeper.kill(t.Context()), rec.Init.kill(t.Context()), removeCgroups(rec.Cgroups)))
	for _, name := range []string{bx.path(recordName), bx.beside(copySuffix)} {
		must(t, os.Truncate(name, 0))
	}
	if o := observed(t, b, h); o.Phase != extensions.PhaseFailed || o.EndedAt.IsZero() || o.Reason != "the machine was restarted" {
		t.Errorf("observed: %+v", o)
	}
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
	checkGone(t, b, spec.ID)
}
