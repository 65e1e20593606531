package composessh

import (
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

func TestMain(m *testing.M) {
	code := hosttest.Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// docker runs the command line of this machine, behind the adapter's back.
func docker(t testing.TB, args ...string) string {
	t.Helper()
	hosttest.Docker(t)
	out, err := exec.CommandContext(context.Background(), "docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// site is a host of one test: a throwaway sshd on this machine behind a gate,
// with a root, an account and a state folder of its own.
type site struct {
	server *hosttest.Server
	gate   *gate
	root   string
	config extensions.Config
	opened *Backend // the last one, open until the test's later cleanups have run
}

func newSite(t testing.TB, opts ...hosttest.Option) *site {
	t.Helper()
	hosttest.Docker(t)
	server := hosttest.SSHD(t, opts...)
	s := &site{server: server, gate: newGate(t, server.Addr), root: filepath.Join(server.HomeDir, "boxes")}
	host := server.Host()
	host.SSH.Address, host.SSH.Port = s.gate.address, s.gate.port
	host.Capacity = &extensions.HostCapacity{MaxSandboxes: testMax}
	s.config = extensions.Config{Binding: "ext.compose-ssh", Account: "acme/" + strings.ToLower(rand.Text()[:10]), Host: &host,
		StateDir: t.TempDir(),
		Values:   map[string]any{"root": s.root, "subnet_size": 28, "subnets": []any{ownRange()}}}
	proofs.Lock()
	proofOf(s.config.StateDir, host).Keep(proofs.line)
	if len(opts) == 0 { // it has the machine's own docker command
		engineOf(s.config.StateDir, host).Keep(proofs.engine)
	}
	proofs.Unlock()
	t.Cleanup(func() { // what was proved on this machine holds for the next site on it
		proofs.Lock()
		defer proofs.Unlock()
		if line := proofOf(s.config.StateDir, host).Read(); line != "" {
			proofs.line = line
		}
		if len(opts) == 0 {
			proofs.engine = engineOf(s.config.StateDir, host).Read()
		}
	})
	return s
}

// ownRange is a range that no other site of this process has, and hardly one of
// another: sites of one engine with separate roots know of each other only what
// the engine shows.
func ownRange() string {
	n := (firstRange + int(ranges.Add(1))) % 2048
	return fmt.Sprintf("10.%d.%d.0/20", 120+n/16, n%16*16)
}

var (
	ranges     atomic.Int64
	firstRange = os.Getpid() * 131
)

var proofs struct {
	sync.Mutex
	line, engine string
}

// open opens the extension there, as another process would.
func (s *site) open(t testing.TB) *Backend {
	t.Helper()
	b, err := New().Open(t.Context(), s.config)
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	s.opened = b.(*Backend)
	return s.opened
}

// spec is a spec that runs the test image.
func (s *site) spec(t testing.TB, opts ...exttest.Option) extensions.Spec {
	t.Helper()
	return onImage(t, exttest.Spec(t, s.config, opts...))
}

func onImage(t testing.TB, spec extensions.Spec) extensions.Spec {
	t.Helper()
	if spec.Image == nil && spec.Compose == nil && spec.Containers == nil {
		spec.Image = &extensions.Image{Pull: hosttest.Image(t)}
	}
	spec.Labels = exttest.Labels(spec)
	return spec
}

// provision makes a sandbox that is gone after the test.
func (s *site) provision(t testing.TB, b *Backend, spec extensions.Spec) extensions.Handle {
	t.Helper()
	h, o, err := b.Provision(t.Context(), spec)
	s.tearDownAtEnd(t, spec.ID)
	must(t, err)
	if o.Phase != extensions.PhaseReady {
		t.Fatalf("provisioned, and it is %s: %s", o.Phase, o.Reason)
	}
	return h
}

// tearDownAtEnd removes a sandbox by its id alone when the test ends, unless nothing of it is there any more.
func (s *site) tearDownAtEnd(t testing.TB, id extensions.ID) {
	t.Helper()
	opened := s.opened
	t.Cleanup(func() {
		s.gate.open()
		if _, err := os.Stat(filepath.Join(s.root, string(id))); os.IsNotExist(err) && !t.Failed() && gone(t, id) && len(devices(t, id)) == 0 {
			return
		}
		defer func() {
			if left := devices(t, id); len(left) > 0 {
				t.Errorf("devices left behind: %q", left)
			}
		}()
		if opened != nil {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if _, err := opened.Teardown(ctx, opened.handle(id)); err == nil {
				return
			}
		}
		b, err := New().Open(context.Background(), s.config)
		must(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := b.Teardown(ctx, b.(*Backend).handle(id)); err != nil {
			t.Errorf("removing %s after the test: %v", id, err)
		}
		must(t, b.Close())
	})
}

// devices are those on the host that a sandbox's denied networks lead to.
func devices(t testing.TB, id extensions.ID) []string {
	t.Helper()
	paths, err := filepath.Glob("/sys/class/net/sp" + strings.TrimPrefix(string(id), "sbx-")[:11] + "*")
	must(t, err)
	return paths
}

// observe looks at one sandbox.
func (s *site) observe(t testing.TB, b extensions.Backend, h extensions.Handle) extensions.Observation {
	t.Helper()
	all, err := b.Status(t.Context(), []extensions.Handle{h})
	must(t, err)
	return all[0]
}

// containers, networks and volumes are those of the site's account.
func (s *site) containers(t testing.TB) []string {
	return strings.Fields(docker(t, "ps", "-aq", "--filter", "label="+extensions.LabelAccount+"="+s.config.Account))
}

func (s *site) removeObjects(t testing.TB, id extensions.ID) {
	filter := "label=" + extensions.LabelID + "=" + string(id)
	for _, kind := range [][]string{{"ps", "-aq", "rm", "-f", "-v"}, {"network", "ls", "-q", "network", "rm"},
		{"volume", "ls", "-q", "volume", "rm"}} {
		list := kind[:2]
		remove := kind[2:]
		if kind[0] != "ps" {
			list, remove = kind[:3], kind[3:]
		}
		ids := strings.Fields(docker(t, append(slices.Clone(list), "--filter", filter)...))
		if len(ids) > 0 {
			docker(t, append(slices.Clone(remove), ids...)...)
		}
	}
}

// passing matches the files that scripts make only to rename them.
var passing = regexp.MustCompile(`/(manifest\.\d+|lease\.new|reaper\.new2?|late)$`)

// residue lists what is at the site: files, processes, what docker holds. It leaves out what changes while a sandbox lives:
// the sleeps and tasks of the host's loop, process ids, and the order of docker's labels.
func (s *site) residue(t testing.TB) []string {
	t.Helper()
	var list []string
	_ = filepath.WalkDir(s.root, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && !passing.MatchString(path) {
			list = append(list, path)
		}
		return nil
	})
	kept, err := filepath.Glob(s.memory(t) + "*")
	must(t, err)
	list = append(list, kept...)
	for kind, lines := range hosttest.Snapshot(t, s.config.Account, s.server.HomeDir) {
		for _, line := range lines {
			words := strings.FieldsFunc(line, func(c rune) bool { return c == ' ' || c == ',' })
			switch {
			case kind != "process":
				slices.Sort(words)
			case slices.Contains(words, "sleep"):
				continue
			case strings.Contains(line, "reaper.sh"):
				words = []string{"the loop"}
			default:
				words = words[1:]
			}
			list = append(list, kind+": "+strings.Join(words, " "))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// left lists how the site differs from before, "+ LINE" or "- LINE". What the loop looks at meanwhile has the time to end.
func (s *site) left(t testing.TB, before []string) (diff []string) {
	t.Helper()
	waitFor(func() bool {
		now := s.residue(t)
		diff = nil
		for _, line := range now {
			if !slices.Contains(before, line) {
				diff = append(diff, "+ "+line)
			}
		}
		for _, line := range before {
			if !slices.Contains(now, line) && (!strings.HasPrefix(line, "process: ") || strings.HasSuffix(line, "the loop")) {
				diff = append(diff, "- "+line)
			}
		}
		return !slices.ContainsFunc(diff, func(line string) bool { return strings.HasPrefix(line[2:], "process: ") })
	})
	return diff
}

// memory is what the names of this site's folders for the files of secrets begin
// with.
func (s *site) memory(t testing.TB) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "cksum")
	cmd.Stdin = strings.NewReader(s.root)
	sum, err := cmd.Output()
	must(t, err)
	return "/dev/shm/sandboxer-*-" + strings.Fields(string(sum))[0] + "-"
}

// edit changes one line of a sandbox's record.
func (s *site) edit(t testing.TB, id extensions.ID, file, key, value string) {
	t.Helper()
	path := filepath.Join(s.root, string(id), file)
	b, err := os.ReadFile(path)
	must(t, err)
	lines := strings.Split(string(b), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, key+"=") {
			lines[i] = key + "=" + value
		}
	}
	must(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
}

func environOf(pid int) []string {
	b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	return strings.Split(string(b), "\x00")
}
