//go:build linux

package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const secretCanary = "canary-secret-93ab71"

func TestASecretIsInsideAndNowhereElse(t *testing.T) {
	t.Parallel()
	b := openBackend(t, t.TempDir(), nil)
	spec := testSpec(t)
	spec.Env = map[string]string{"TOKEN": "from env", "KEPT": "yes"}
	spec.Toolchain.Env = map[string]string{"KEPT": "overridden"}
	spec.Secrets = map[string]extensions.Secret{"TOKEN": extensions.NewSecret(secretCanary)}
	h := provision(t, b, spec)
	if r := shell(t, b, h, `printf '%s %s' "$TOKEN" "$KEPT"`); string(r.Stdout) != secretCanary+" yes" {
		t.Errorf("inside: %q", r.Stdout)
	}
	cfg := extensions.Config{StateDir: filepath.Dir(b.settings.root)}
	for _, text := range append(outside(t, cfg), h.Encode()) {
		if strings.Contains(text, secretCanary) {
			t.Errorf("outside: %.200q", text)
		}
	}
	pid := b.initPID(t, spec.ID)
	for _, name := range []string{"environ", "cmdline"} {
		if text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name)); strings.Contains(string(text), secretCanary) {
			t.Errorf("the init's %s shows it", name)
		}
	}
}

func (b *Backend) initPID(t *testing.T, id extensions.ID) int {
	rec, err := b.settings.box(id).read()
	must(t, err)
	return rec.Init.PID
}

func TestTheHostUIDOfASandboxIsNeverRoot(t *testing.T) {
	t.Parallel()
	b := openBackend(t, t.TempDir(), nil)
	uids := map[string]bool{}
	for range 3 {
		spec := testSpec(t)
		provision(t, b, spec)
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.initPID(t, spec.ID)))
		must(t, err)
		_, after, _ := strings.Cut(string(status), "\nUid:")
		uid := strings.Fields(after)[0]
		if uid == "0" {
			t.Error("the init runs as root")
		}
		uids[uid] = true
	}
	if os.Getuid() == 0 && len(uids) != 3 {
		t.Errorf("three sandboxes of root have the uids %v", uids)
	}
}

func TestATimeoutEndsWhatLeftTheGroupToo(t *testing.T) {
	t.Parallel()
	b := openBackend(t, t.TempDir(), nil)
	h := provision(t, b, testSpec(t))
	script := `(setsid sh -c 'trap "" TERM HUP; (while :; do printf x >>/tmp/beat; sleep 0.05; done) & wait' >/dev/null 2>&1 &) ; sleep 60`
	_, err := b.Exec(t.Context(), h, extensions.ExecRequest{Shell: script, Timeout: time.Second})
	if !extensions.IsKind(err, extensions.KindTimeout) {
		t.Fatalf("exec: %v", err)
	}
	first := shell(t, b, h, "cat /tmp/beat")
	time.Sleep(300 * time.Millisecond)
	if second := shell(t, b, h, "cat /tmp/beat"); len(first.Stdout) == 0 || !bytes.Equal(first.Stdout, second.Stdout) {
		t.Errorf("the daemon lives: %d beats, then %d", len(first.Stdout), len(second.Stdout))
	}
}

func TestProgramsInsideGetDefaultSignals(t *testing.T) {
	t.Parallel()
	b := openBackend(t, t.TempDir(), nil)
	h := provision(t, b, testSpec(t))
	if r := shell(t, b, h, "kill -TERM $$; echo survived"); r.ExitCode != 143 {
		t.Errorf("exit %d: %s", r.ExitCode, r.Stdout)
	}
	if r := shell(t, b, h, "grep SigIgn /proc/self/status"); !strings.Contains(string(r.Stdout), "0000000000000000") {
		t.Errorf("%s", r.Stdout)
	}
}

func TestATerminalHasASizeThatChanges(t *testing.T) {
	t.Parallel()
	b := openBackend(t, t.TempDir(), nil)
	h := provision(t, b, testSpec(t))
	sizes := make(chan [2]uint16, 1)
	in, typed := io.Pipe()
	var out safeBuffer
	go func() {
		for !strings.Contains(out.String(), "24 80") && t.Context().Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		sizes <- [2]uint16{50, 132}
		time.Sleep(200 * time.Millisecond)
		_, _ = io.WriteString(typed, "go\n")
		_ = typed.Close()
	}()
	r, err := b.Exec(t.Context(), h, extensions.ExecRequest{Shell: `stty size; read x; stty size; echo "$TERM $x"`, Stdin: in, Stdout: &out,
		TTY: &extensions.TTY{Rows: 24, Cols: 80, Resize: sizes}, Timeout: 20 * time.Second})
	must(t, err)
	for _, want := range []string{"24 80", "50 132", "xterm-256color go"} {
		if !strings.Contains(string(r.Stdout), want) {
			t.Errorf("%q is not in %q", want, r.Stdout)
		}
	}
}

func TestAllowedNetworkIsTheHostsButItsAbstractSocketsAreNot(t *testing.T) {
	t.Parallel()
	b := openBackend(t, t.TempDir(), nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = l.Close() }()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "hello")
			_ = c.Close()
		}
	}()
	abstract, err := net.Listen("unix", fmt.Sprintf("@sandboxer-test-allow-%d", os.Getpid()))
	must(t, err)
	defer func() { _ = abstract.Close() }()
	spec := testSpec(t)
	spec.Network.Default = "allow"
	h := provision(t, b, spec)
	must(t, b.Upload(t.Context(), h, ".", attacker(t)))
	run := func(args ...string) int {
		r, err := b.Exec(t.Context(), h, extensions.ExecRequest{Command: append([]string{"./attacker", attackArg}, args...)})
		must(t, err)
		t.Logf("%v: %s", args, r.Stdout)
		return r.ExitCode
	}
	if run("network", l.Addr().String()) != 1 {
		t.Error("the host's loopback is not reached")
	}
	if run("abstract-socket", abstract.Addr().String()) != 0 {
		t.Error("an abstract socket of the host is reached")
	}
}

// vsock has no namespace: only the filter keeps a sandbox from the machine's
// hypervisor and its guests, whatever its network and whoever builds the walls.
func TestNoSandboxHasVsock(t *testing.T) {
	t.Parallel()
	for _, launcher := range []string{launcherNamespaces, launcherBubblewrap} {
		for _, network := range []string{"deny", "allow"} {
			t.Run(launcher+", "+network, func(t *testing.T) {
				needLauncher(t, launcher)
				b, spec := openBackend(t, t.TempDir(), map[string]any{"launcher": launcher}), testSpec(t)
				spec.Network.Default = network
				h := provision(t, b, spec)
				must(t, b.Upload(t.Context(), h, ".", attacker(t)))
				r, err := b.Exec(t.Context(), h, extensions.ExecRequest{Command: []string{"./attacker", attackArg, "vsock"}})
				must(t, err)
				if r.ExitCode != 0 {
					t.Errorf("vsock is open: %s", r.Stdout)
				}
			})
		}
	}
}

func TestLimitsThatCannotHoldAreRefused(t *testing.T) {
	t.Parallel()
	b := openBackend(t, t.TempDir(), nil)
	memory, gpu := int64(64), &extensions.GPU{Count: 1}
	spec := testSpec(t)
	spec.Resources = extensions.Resources{GPU: gpu}
	if _, _, err := b.Provision(t.Context(), spec); !extensions.IsKind(err, extensions.KindUnsupported) {
		t.Errorf("a GPU: %v", err)
	}
	spec = testSpec(t)
	spec.Resources = extensions.Resources{MemoryMB: &memory}
	h, _, err := b.Provision(t.Context(), spec)
	if len(planCgroups(string(spec.ID)).dirs) == 0 {
		if !extensions.IsKind(err, extensions.KindUnsupported) || !strings.Contains(err.Error(), "memory_mb") || extensions.RemedyOf(err) == "" {
			t.Errorf("memory without a cgroup: %v", err)
		}
		checkGone(t, b, spec.ID)
		return
	}
	must(t, err)
	defer func() { _, _ = b.Teardown(context.Background(), h) }()
	if r := shell(t, b, h, "head -c 200M /dev/zero | tail -c 190M | wc -c"); strings.TrimSpace(string(r.Stdout)) == "199229440" {
		t.Errorf("a program had more than its 64 MiB: %s", r.Stdout)
	}
}

func TestADamagedSnapshotIsNotRestored(t *testing.T) {
	t.Parallel()
	b := openBackend(t, t.TempDir(), nil)
	h := provision(t, b, testSpec(t))
	shell(t, b, h, "echo content >file")
	id, err := extensions.NewSnapshotID(nil)
	must(t, err)
	s, err := b.Snapshot(t.Context(), h, extensions.SnapshotSpec{ID: id, CreatedAt: time.Now()})
	must(t, err)
	path := filepath.Join(b.settings.snapshotDir(id), archiveName)
	raw, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, bytes.Replace(raw, []byte("content"), []byte("changed"), 1), 0o600))
	spec := testSpec(t)
	spec.FromSnapshot = &extensions.SnapshotRef{ID: id, Handle: s.Handle}
	_, _, err = b.Provision(t.Context(), spec)
	if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), id+" is damaged") {
		t.Errorf("restoring a damaged snapshot: %v", err)
	}
	checkGone(t, b, spec.ID)
	must(t, b.DeleteSnapshot(t.Context(), s.Handle))
}

func TestAHandleOfAnotherMachineIsUnreachableNotAbsent(t *testing.T) {
	t.Parallel()
	b := openBackend(t, t.TempDir(), nil)
	h := b.settings.handle(record{ID: testSpec(t).ID})
	h.Data = []byte(`{"machine":"0123456789abcdef","root":"` + b.settings.root + `"}`)
	o, err := b.Status(t.Context(), []extensions.Handle{h})
	must(t, err)
	if o[0].Phase != extensions.PhaseUnreachable || !extensions.IsKind(o[0].Err, extensions.KindUnreachable) {
		t.Errorf("observed %+v", o[0])
	}
	if _, err := b.Teardown(t.Context(), h); !extensions.IsKind(err, extensions.KindUnreachable) {
		t.Errorf("teardown: %v", err)
	}
}

func TestALongStateFolderIsNoObstacle(t *testing.T) {
	t.Parallel()
	b := openBackend(t, filepath.Join(t.TempDir(), strings.Repeat("long/", 40)), nil)
	h := provision(t, b, testSpec(t))
	shell(t, b, h, "true")
}

func TestProbeProvesWhatItSays(t *testing.T) {
	t.Parallel()
	b := openBackend(t, t.TempDir(), nil)
	found, _, err := b.Probe(t.Context())
	must(t, err)
	f := found.Machine
	if len(f.Isolation) != 2 || f.CPUs == 0 || f.MemoryMB == 0 {
		t.Errorf("facts: %+v", f)
	}
	if !slices.ContainsFunc(f.Notes, func(n string) bool { return strings.Contains(n, "memory_mb") }) {
		t.Errorf("nothing says what bounds memory: %q", f.Notes)
	}
	if ids, err := b.settings.ids(); err != nil || len(ids) != 0 {
		t.Errorf("the probe left %v, %v", ids, err)
	}
}

func TestBubblewrapRefusesAReadOnlyWorkspace(t *testing.T) {
	t.Parallel()
	needLauncher(t, launcherBubblewrap)
	b, spec := openBackend(t, t.TempDir(), map[string]any{"launcher": launcherBubblewrap}), testSpec(t)
	spec.Workspace.Access = extensions.AccessRO
	if _, _, err := b.Provision(t.Context(), spec); !extensions.IsKind(err, extensions.KindUnsupported) || extensions.RemedyOf(err) == "" {
		t.Errorf("provision: %v", err)
	}
	checkGone(t, b, spec.ID)
}

func TestSecretsAsFilesAreInMemoryAndForTheSandboxAlone(t *testing.T) {
	t.Parallel()
	b := openBackend(t, t.TempDir(), nil)
	spec := testSpec(t)
	spec.SecretsAs, spec.SecretNames = extensions.SecretsFile, []string{"TOKEN"}
	spec.Secrets = map[string]extensions.Secret{"TOKEN": extensions.NewSecret("canary-in-memory")}
	h := provision(t, b, spec)
	r := shell(t, b, h, `cd /run/secrets && stat -c '%a %u %n' . TOKEN && stat -f -c %T . && cat TOKEN; grep -lz canary-in /proc/[0-9]*/environ`)
	if got, want := string(r.Stdout), "700 1000 .\n400 1000 TOKEN\ntmpfs\ncanary-in-memory"; got != want {
		t.Errorf("inside: %q, want %q", got, want)
	}
	pid := b.initPID(t, spec.ID)
	for _, file := range []string{"environ", "cmdline"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		// even its owner may not look into the init
		if err != nil && !errors.Is(err, fs.ErrPermission) || bytes.Contains(text, []byte("canary-in")) {
			t.Errorf("%s of the init: %v, or it has the secret", file, err)
		}
	}
}
