package docker

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// rootless starts an engine as an ordinary user, by RootlessKit, in a network of its own.
func rootless(t *testing.T) *ground {
	t.Helper()
	const name = "sbxrootless"
	dir, script := engineFolder(t, name, "dockerd", "unshare", "mount", "setpriv", "rootlesskit", "newuidmap")
	for _, sub := range []string{"run", "home", "data"} {
		must(t, os.Mkdir(filepath.Join(dir, sub), 0o711))
		must(t, os.Chown(filepath.Join(dir, sub), engineUser, engineUser))
	}
	socket, pidfile := filepath.Join(dir, "run/s"), filepath.Join(dir, "run/pid")
	inner := fmt.Sprintf("rm -f /run/docker /run/containerd /run/xtables.lock; exec unshare --net sh -c 'ip link set lo up; exec dockerd "+
		"--rootless --host unix://%[1]s --pidfile %[2]s --data-root %[3]s/data --exec-root %[3]s/run/exec'", socket, pidfile, dir)
	must(t, os.WriteFile(filepath.Join(dir, "inner"), []byte(inner), 0o644))
	script += fmt.Sprintf("export XDG_RUNTIME_DIR=%[1]s/run HOME=%[1]s/home PATH=$PATH:/usr/sbin:/sbin; cd /\n"+
		"exec setpriv --reuid %[2]d --regid %[2]d --clear-groups rootlesskit --net=host --copy-up=/etc --copy-up=/run --propagation=rslave "+
		"--state-dir=%[1]s/run/kit sh %[1]s/inner", dir, engineUser)
	startEngine(t, exec.Command("unshare", "--mount", "sh", "-c", script), socket)
	pid, err := os.ReadFile(pidfile)
	must(t, err)
	image := load(t, socket)
	return &ground{socket, func(testing.TB) string { return image }, func(t testing.TB, f func()) {
		t.Helper()
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // for good: a thread that has changed its network ends with its goroutine
			ns, err := os.Open("/proc/" + strings.TrimSpace(string(pid)) + "/ns/net")
			if err == nil {
				defer func() { _ = ns.Close() }()
				err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
			}
			if err == nil {
				f()
			}
			done <- err
		}()
		must(t, <-done)
	}}
}

// narrowed declares for every binding what was found at one engine, so that the suite holds it to that.
type narrowed struct {
	extensions.Extension
	found extensions.Facts
}

func (n narrowed) Declare(map[string]any) (extensions.Declaration, error) {
	return extensions.Declaration{Narrowing: n.found.Narrowing, Powers: n.found.Powers}, nil
}

func TestConformanceRootless(t *testing.T) {
	t.Parallel()
	g := rootless(t)
	at := g.site(t, extensions.PlaceMachine)
	found, _, err := at.open(t).Probe(t.Context())
	must(t, err)
	if found.Powers != nil {
		t.Run("without cgroups", func(t *testing.T) { withoutCgroups(t, g) })
	}
	h := g.harness(extensions.PlaceMachine)
	h.New = func(testing.TB) extensions.Extension { return narrowed{New(), found} }
	exttest.Run(t, h)
}

// Nothing can be frozen there, and what an engine measures is the whole machine.
func withoutCgroups(t *testing.T, g *ground) {
	t.Parallel()
	s := g.site(t, extensions.PlaceMachine)
	b := s.open(t)
	h, _, err := b.Provision(t.Context(), g.onImage(t, exttest.Spec(t, s.config)))
	must(t, err)
	defer func() { _, err := b.Teardown(t.Context(), h); must(t, err) }()
	_, paused := b.Pause(t.Context(), h)
	id, err := extensions.NewSnapshotID(nil)
	must(t, err)
	kept := extensions.SnapshotSpec{ID: id, Account: s.config.Account, CreatedAt: time.Now()}
	_, still := b.Snapshot(t.Context(), h, kept)
	for what, err := range map[string]error{"a pause": paused, "a snapshot of one moment": still, "a fork": b.CanFork(t.Context(), h)} {
		if !extensions.IsKind(err, extensions.KindUnsupported) || !strings.Contains(extensions.RemedyOf(err), "cgroup v2") {
			t.Errorf("%s: %v; remedy %q", what, err, extensions.RemedyOf(err))
		}
	}
	kept.Live = true
	snapshot, err := b.Snapshot(t.Context(), h, kept)
	must(t, err)
	must(t, b.DeleteSnapshot(t.Context(), snapshot.Handle))
	if u, err := b.Usage(t.Context(), h); err != nil || u.CPUMillis != nil || u.Running <= 0 {
		t.Errorf("usage %+v, %v", u, err)
	}
}
