//go:build linux

package local

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// Limits of the sandbox that is attacked.
const (
	attackPids   = 100
	attackMemory = 256 * raceScale // MiB
	attackDisk   = 256             // MiB
)

const hostCanary = "canary-of-the-host-5f1c"

// ordinaryUID runs the tests of ordinary users when root tests.
const ordinaryUID = 61_234

func TestEscapeByNamespaces(t *testing.T) { escape(t, launcherNamespaces) }

func TestEscapeByBubblewrap(t *testing.T) {
	needLauncher(t, launcherBubblewrap)
	escape(t, launcherBubblewrap)
}

// needLauncher skips what needs bubblewrap where it is not installed.
func needLauncher(t *testing.T, launcher string) {
	t.Helper()
	if launcher != launcherBubblewrap {
		return
	}
	if _, err := findBubblewrap(); err != nil {
		t.Skip(err)
	}
}

// TestAsAnOrdinaryUser runs the whole package again as one.
func TestAsAnOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this is one already")
	}
	exttest.Undetected(t, "it watches the same code when root tests")
	t.Parallel()
	home, err := os.MkdirTemp("/tmp", "sandboxer-ordinary-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	must(t, os.Chown(home, ordinaryUID, ordinaryUID))
	self, err := os.Readlink("/proc/self/exe")
	must(t, err)
	// Another process copies it: one that is forked here meanwhile would hold the file open for writing, and nobody could run it.
	out, err := exec.Command("cp", self, home+"/local.test").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	must(t, os.Chmod(home+"/local.test", 0o755))
	must(t, os.Chown(home+"/local.test", ordinaryUID, ordinaryUID))
	cmd := exec.Command(home+"/local.test", "-test.parallel=4", "-test.timeout=9m")
	if testing.Short() {
		cmd.Args = append(cmd.Args, "-test.short")
	}
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "TMPDIR=" + home, "PATH=" + os.Getenv("PATH"), launcherEnv + "=" + os.Getenv(launcherEnv)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinaryUID, Gid: ordinaryUID}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("as uid %d: %v\n%s", ordinaryUID, err, out)
	}
}

// target is a sandbox with the attacker in its workspace, and bait outside.
type target struct {
	b    *Backend
	h    extensions.Handle
	bait map[string][]string
}

func newTarget(t *testing.T, launcher string) target {
	state := t.TempDir()
	t.Setenv("SANDBOXER_TEST_HOST_CANARY", hostCanary)
	open, err := os.Create(filepath.Join(state, hostCanary)) // a descriptor that must not be inherited
	must(t, err)
	t.Cleanup(func() { _ = open.Close() })
	must(t, clearCloseOnExec(open))
	secret := filepath.Join(state, "secret")
	must(t, os.WriteFile(secret, []byte("x"), 0o644))
	sock, err := net.Listen("unix", filepath.Join(state, "host.sock"))
	must(t, err)
	abstract, err := net.Listen("unix", fmt.Sprintf("@sandboxer-test-%d-%s", os.Getpid(), launcher))
	must(t, err)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	for _, l := range []net.Listener{sock, abstract, tcp} {
		t.Cleanup(func() { _ = l.Close() })
	}
	victim := exec.Command("/bin/sleep", "300")
	victim.Args[0] = "sleep-" + hostCanary
	must(t, victim.Start())
	t.Cleanup(func() { _ = victim.Process.Kill(); _ = victim.Wait() })

	b := openBackend(t, state, map[string]any{"launcher": launcher})
	spec := testSpec(t)
	pids, memory, disk := int64(attackPids), int64(attackMemory), int64(attackDisk)
	spec.Resources = extensions.Resources{Pids: &pids, MemoryMB: &memory, DiskMB: &disk, BestEffort: true}
	h := provision(t, b, spec)
	must(t, b.Upload(t.Context(), h, ".", attacker(t)))
	pid := fmt.Sprint(victim.Process.Pid)
	addresses := append(hostAddresses(), tcp.Addr().String(), "1.1.1.1:53")
	return target{b, h, map[string][]string{
		"host-sockets":    {sock.Addr().String(), b.settings.box(h.ID).path(socketName), "/run/sandboxer.sock"},
		"abstract-socket": {abstract.Addr().String()}, "host-files": {secret, b.settings.box(h.ID).path(recordName), "/proc/" + pid + "/environ"},
		"host-processes": {hostCanary}, "kill-host": {pid}, "canary": {hostCanary}, "canary-fds": {hostCanary}, "network": addresses,
		"fork-bomb": {fmt.Sprint(attackPids)}, "memory": {fmt.Sprint(attackMemory * 2)},
		"memory-shared": {fmt.Sprint((attackMemory + attackDisk) * 2)},
		"disk":          {fmt.Sprint(attackDisk)},
	}}
}

func clearCloseOnExec(f *os.File) error {
	_, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_SETFD, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// hostAddresses are those of the host's own interfaces, with a port that is
// likely to be open on one.
func hostAddresses() []string {
	var list []string
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			list = append(list, net.JoinHostPort(n.IP.String(), "22"))
		}
	}
	return list
}

// attacker is a tar archive with this test binary.
func attacker(t *testing.T) *bytes.Buffer {
	t.Helper()
	self, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "attacker", Mode: 0o755, Size: int64(len(self))}))
	_, err = w.Write(self)
	must(t, err)
	must(t, w.Close())
	return &buf
}

// gentle attacks go first and side by side, bombs one after the other at the end.
var bombs = []string{"kill-init", "fork-bomb", "memory", "memory-shared", "disk"}

func escape(t *testing.T, launcher string) {
	x := newTarget(t, launcher)
	tried := 0
	for name := range attacks {
		if strings.HasPrefix(name, "memory-") || name == "foreign-calls" || isBomb(name) {
			continue
		}
		tried++
		t.Run(name, func(t *testing.T) { x.attack(t, name) })
	}
	for _, name := range bombs {
		tried++
		if raceScale > 1 && strings.HasPrefix(name, "memory") {
			continue // the detector's own memory hides the attack's
		}
		t.Run(name, func(t *testing.T) {
			x.attack(t, name)
			shell(t, x.b, x.h, "pkill sleep || true") // what a fork bomb left
		})
	}
	if raceScale == 1 {
		t.Run("memory of many", func(t *testing.T) { x.memoryOfMany(t) })
	}
	if runtime.GOARCH == "amd64" {
		t.Run("foreign calls", func(t *testing.T) {
			r := shell(t, x.b, x.h, "exec ./attacker "+attackArg+" foreign-calls")
			if r.ExitCode != 128+int(syscall.SIGSYS) {
				t.Errorf("exit %d: %s", r.ExitCode, r.Stdout)
			}
		})
	}
	t.Run("log flood", func(t *testing.T) { x.logFlood(t) })
	t.Run("links in the workspace", func(t *testing.T) { x.links(t) })
	if tried < 50 {
		t.Errorf("only %d attacks were tried", tried)
	}
	if got := shell(t, x.b, x.h, "echo still here"); string(got.Stdout) != "still here\n" {
		t.Errorf("after the attacks the sandbox answers %q, %q", got.Stdout, got.Stderr)
	}
}

func isBomb(name string) bool {
	for _, b := range bombs {
		if b == name {
			return true
		}
	}
	return false
}

func (x target) attack(t *testing.T, name string) {
	r, err := x.b.Exec(t.Context(), x.h, extensions.ExecRequest{Command: append([]string{"/workspace/attacker", attackArg, name},
		x.bait[name]...),
		Env: map[string]string{"GORACE": os.Getenv("GORACE")}, Timeout: 45 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("exit %d: %s%s", r.ExitCode, extensions.Clean(string(r.Stdout), 600), extensions.Clean(string(r.Stderr), 300))
	if r.ExitCode == 1 || r.ExitCode != 0 && !isBomb(name) {
		t.Errorf("%s: not refused", name)
	}
}

// memoryOfMany lets several programs, each within its own bound, pass the
// bound together.
func (x target) memoryOfMany(t *testing.T) {
	const each, n = 100 * raceScale, 6
	r := shell(t, x.b, x.h, fmt.Sprintf("for i in $(seq %d); do ./attacker %s memory-hold %d & done; wait; true", n, attackArg, each))
	held := strings.Count(string(r.Stdout), "held")
	if held*each > attackMemory+each {
		t.Errorf("%d programs held %d MiB each, the limit is %d", held, each, attackMemory)
	}
}

func (x target) logFlood(t *testing.T) {
	shell(t, x.b, x.h, "(sleep 0.4; timeout 2 yes 'a line of the flood') & true")
	time.Sleep(3 * time.Second)
	r, err := x.b.Logs(t.Context(), x.h, extensions.LogRequest{})
	must(t, err)
	var buf bytes.Buffer
	_, err = buf.ReadFrom(r)
	must(t, err)
	must(t, r.Close())
	if buf.Len() == 0 || buf.Len() > 2<<20 {
		t.Errorf("the log keeps %d bytes", buf.Len())
	}
}

// links makes links to everything in the workspace; taken out, they are
// links, never what they point to.
func (x target) links(t *testing.T) {
	shell(t, x.b, x.h, `mkdir -p games/deep && cd games && ln -s /etc/passwd abs && ln -s ../../../../etc/passwd up && ln -s / root && ln -s deep dir &&
		echo own >own && ln own hard && ln -s . loop && ln -s /proc/1/environ env`)
	var buf bytes.Buffer
	must(t, x.b.Download(t.Context(), x.h, "games", &buf))
	seen := map[string]byte{}
	for r := tar.NewReader(&buf); ; {
		head, err := r.Next()
		if err != nil {
			break
		}
		seen[head.Name] = head.Typeflag
		// One more name of a file is that of one that came before.
		if head.Typeflag == tar.TypeLink && seen[head.Linkname] != tar.TypeReg || head.Typeflag == tar.TypeReg && head.Size > 4 {
			t.Errorf("%s came out as type %c with %d bytes, to %q", head.Name, head.Typeflag, head.Size, head.Linkname)
		}
	}
	for _, path := range []string{"games/root/etc/passwd", "games/up", "games/env"} {
		var out bytes.Buffer
		err := x.b.Download(t.Context(), x.h, path, &out)
		if err == nil && bytes.Contains(out.Bytes(), []byte("root:")) {
			t.Errorf("%s was followed out of the workspace", path)
		}
	}
	snapshot, err := extensions.NewSnapshotID(nil)
	must(t, err)
	s, err := x.b.Snapshot(t.Context(), x.h, extensions.SnapshotSpec{ID: snapshot, CreatedAt: time.Now()})
	must(t, err)
	t.Cleanup(func() { must(t, x.b.DeleteSnapshot(context.Background(), s.Handle)) })
	spec := testSpec(t)
	spec.FromSnapshot = &extensions.SnapshotRef{ID: snapshot, Handle: s.Handle}
	h := provision(t, x.b, spec)
	if r := shell(t, x.b, h, "readlink games/abs games/up; cat games/hard"); string(r.Stdout) != "/etc/passwd\n../../../../etc/passwd\nown\n" {
		t.Errorf("restored links: %q", r.Stdout)
	}
}
