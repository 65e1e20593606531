//go:build linux

package local

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const closedEnv = "SANDBOXER_TEST_CLOSED"

// TestWhereNamespacesAreClosed runs its twin in a user namespace that allows
// no further ones, so that neither launcher can build walls.
func TestWhereNamespacesAreClosed(t *testing.T) {
	t.Parallel()
	needSandboxes(t)
	dir, err := os.MkdirTemp("/tmp", "sandboxer-closed-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	uid := os.Getuid()
	if uid == 0 {
		uid = ordinaryUID + 1
		must(t, os.Chown(dir, uid, uid))
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestInsideClosedNamespaces", "-test.v")
	cmd.Env = []string{closedEnv + "=1", "TMPDIR=" + dir, "HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: uid, Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_RESOURCE},
	}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 1000, Gid: 1000, NoSetGroups: true}
	}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestInsideClosedNamespacesAPlainOneWorks")) {
		t.Fatalf("inside: %v", err)
	}
}

func needClosed(t *testing.T) {
	if os.Getenv(closedEnv) == "" {
		t.Skip("runs within TestWhereNamespacesAreClosed")
	}
	must(t, os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0))
}

func TestInsideClosedNamespacesWallsAreRefusedWithARemedy(t *testing.T) {
	needClosed(t)
	for _, launcher := range []string{launcherAuto, launcherNamespaces, launcherBubblewrap} {
		b, spec := openBackend(t, t.TempDir(), map[string]any{"launcher": launcher}), testSpec(t)
		h, _, err := b.Provision(t.Context(), spec)
		if !extensions.IsKind(err, extensions.KindUnsupported) || extensions.RemedyOf(err) == "" || !h.IsZero() {
			t.Errorf("%s: %v, remedy %q", launcher, err, extensions.RemedyOf(err))
		}
		t.Logf("%v; %s", err, extensions.RemedyOf(err))
		checkGone(t, b, spec.ID)
	}
	b := openBackend(t, t.TempDir(), nil)
	found, _, err := b.Probe(t.Context())
	must(t, err)
	f := found.Machine
	if len(f.Isolation) != 1 || f.Isolation[0] != extensions.IsolationNone || len(f.Notes) == 0 {
		t.Errorf("facts: %+v", f)
	}
}

func plainSpec(t *testing.T) extensions.Spec {
	spec := testSpec(t)
	spec.Isolation, spec.Network.Default = extensions.IsolationNone, "allow"
	return spec
}

func TestInsideClosedNamespacesAPlainOneWorks(t *testing.T) {
	needClosed(t)
	b, spec := openBackend(t, t.TempDir(), nil), plainSpec(t)
	spec.Instructions = "read me"
	h := provision(t, b, spec)
	r := shell(t, b, h, "cat "+extensions.InstructionsPath+"; echo \" in $(pwd)\"; echo mine >file; "+leave(0))
	if !strings.HasPrefix(string(r.Stdout), "read me in "+b.settings.root) {
		t.Errorf("%q %q", r.Stdout, r.Stderr)
	}
	_, err := b.Exec(t.Context(), h, extensions.ExecRequest{Shell: leave(1) + "; sleep 60", Timeout: time.Second})
	if !extensions.IsKind(err, extensions.KindTimeout) {
		t.Errorf("timeout: %v", err)
	}
	var buf bytes.Buffer
	must(t, b.Download(t.Context(), h, "file", &buf))
	if !strings.Contains(buf.String(), "mine") {
		t.Error("the file does not come out")
	}
	// A killed init leaves its programs; the teardown finds them.
	rec, err := b.settings.box(spec.ID).read()
	must(t, err)
	must(t, rec.Init.kill(t.Context()))
	if len(sleepers(t, 0)) != 1 || len(sleepers(t, 1)) != 0 {
		t.Errorf("sleepers: %v, %v", sleepers(t, 0), sleepers(t, 1))
	}
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
	if left := sleepers(t, 0); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	checkGone(t, b, spec.ID)
}

func TestInsideClosedNamespacesAPlainOneIsForked(t *testing.T) {
	needClosed(t)
	b, spec := openBackend(t, t.TempDir(), nil), plainSpec(t)
	h := provision(t, b, spec)
	shell(t, b, h, "echo 1 >f; echo 2 >$HOME/f")
	forked := provision(t, b, forkOf(t, spec, h))
	shell(t, b, h, "echo later >>f")
	if r := shell(t, b, forked, "cat f $HOME/f; pwd"); !strings.HasPrefix(string(r.Stdout), "1\n2\n"+b.settings.box(forked.ID).dir) {
		t.Errorf("%q %q", r.Stdout, r.Stderr)
	}
}

func TestInsideClosedNamespacesAPlainOneExpires(t *testing.T) {
	needClosed(t)
	b, spec := openBackend(t, t.TempDir(), nil), plainSpec(t)
	spec.Deadline = time.Now().Add(life)
	h := provision(t, b, spec)
	shell(t, b, h, leave(2))
	eventually(t, soon, "it is gone", func() bool {
		return len(processesOf(spec.ID)) == 0 && len(sleepers(t, 2)) == 0
	})
	if _, err := os.Stat(filepath.Join(b.settings.box(spec.ID).dir, filesName)); !os.IsNotExist(err) {
		t.Errorf("its files are left: %v", err)
	}
	o, err := b.Status(t.Context(), []extensions.Handle{h})
	must(t, err)
	if o[0].Phase != extensions.PhaseExpired {
		t.Errorf("observed %+v", o[0])
	}
}

func TestInsideClosedNamespacesAPlainOneEndsWithItsFolder(t *testing.T) {
	needClosed(t)
	b, spec := openBackend(t, t.TempDir(), nil), plainSpec(t)
	h := provision(t, b, spec)
	shell(t, b, h, leave(3))
	must(t, os.RemoveAll(b.settings.box(spec.ID).dir))
	eventually(t, soon, "it is gone", func() bool {
		return len(processesOf(spec.ID)) == 0 && len(sleepers(t, 3)) == 0
	})
	if o := observed(t, b, h); o.Phase != extensions.PhaseAbsent || o.EndedAt.IsZero() {
		t.Errorf("observed %+v", o)
	}
}

func TestInsideClosedNamespacesAPlainOneIsEndedByItsHandleAlone(t *testing.T) {
	needClosed(t)
	b, spec := openBackend(t, t.TempDir(), nil), plainSpec(t)
	h := provision(t, b, spec)
	shell(t, b, h, leave(4))
	ways["all folders moved"](t, b, spec.ID)
	_, err := b.Teardown(t.Context(), h)
	must(t, err)
	if left := sleepers(t, 4); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	checkGone(t, b, spec.ID)
}

func TestInsideClosedNamespacesAPlainOneRefusesWhatTakesWalls(t *testing.T) {
	needClosed(t)
	b := openBackend(t, t.TempDir(), nil)
	n := int64(10)
	for what, change := range map[string]func(*extensions.Spec){
		"a shut network":        func(s *extensions.Spec) { s.Network.Default = "deny" },
		"a read-only workspace": func(s *extensions.Spec) { s.Workspace.Access = extensions.AccessRO },
		"a limit":               func(s *extensions.Spec) { s.Resources.Pids = &n },
	} {
		spec := plainSpec(t)
		change(&spec)
		if _, _, err := b.Provision(t.Context(), spec); !extensions.IsKind(err, extensions.KindUnsupported) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// nap tells how long the nth sleeper of this process sleeps: longer than any test, and as no other process's, because
// TestAsAnOrdinaryUser runs these tests beside themselves.
func nap(n int) string { return strconv.Itoa(100_000_000 + 10*os.Getpid() + n) }

// leave is a command that leaves the nth sleeper.
func leave(n int) string { return "(setsid sleep " + nap(n) + " >/dev/null 2>&1 &)" }

func sleepers(t *testing.T, n int) []string {
	t.Helper()
	var found []string
	for _, p := range mustGlob("/proc/[0-9]*/cmdline") {
		if b, _ := os.ReadFile(p); string(b) == "sleep\x00"+nap(n)+"\x00" {
			found = append(found, p)
		}
	}
	return found
}

func TestInsideClosedNamespacesSecretsAreNoFiles(t *testing.T) {
	needClosed(t)
	b, spec := openBackend(t, t.TempDir(), nil), plainSpec(t)
	spec.SecretsAs = extensions.SecretsFile
	_, _, err := b.Provision(t.Context(), spec)
	if !extensions.IsKind(err, extensions.KindUnsupported) || !strings.Contains(extensions.RemedyOf(err), "secrets_as: env") {
		t.Errorf("%v, remedy %q", err, extensions.RemedyOf(err))
	}
	checkGone(t, b, spec.ID)
}
