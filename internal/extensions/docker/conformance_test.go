package docker

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ociimage"
)

// testMax is how many sandboxes a check's binding may have.
const testMax = 8

const engineSocket = "/var/run/docker.sock"

// site is one place of a check: the engine behind a socket of the test's own, and an account that nothing else
// uses.
type site struct {
	config extensions.Config
	gate   *gate
}

var (
	sites  sync.Map // socket -> *site
	siteNo atomic.Int64
)

func siteOf(t testing.TB, cfg extensions.Config) *site {
	t.Helper()
	for _, key := range []any{cfg.Values["endpoint"], cfg.Values["socket"]} {
		if s, ok := sites.Load(key); ok {
			return s.(*site)
		}
	}
	t.Fatalf("no site has %v", cfg.Values)
	return nil
}

func newSite(t testing.TB) *site {
	t.Helper()
	return newSiteAt(t, extensions.PlaceMachine)
}

// newSiteAt gives the engine of this machine, directly or as that of a host over SSH.
func newSiteAt(t testing.TB, p extensions.Place) *site {
	t.Helper()
	hosttest.Docker(t)
	dir, err := os.MkdirTemp("", "sbx")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	s := &site{gate: newGate(t, filepath.Join(dir, "s"))}
	no := siteNo.Add(1)
	s.config = extensions.Config{Binding: fmt.Sprintf("ext.docker-%d-%d", os.Getpid(), no),
		Account:  fmt.Sprintf("test-%d/%d", os.Getpid(), no),
		StateDir: t.TempDir(), Values: map[string]any{"endpoint": "unix://" + s.gate.path, "max_sandboxes": testMax}}
	if p == extensions.PlaceHost {
		must(t, os.Chmod(dir, 0o711))
		server := hosttest.SSHD(t)
		s.config.Host = &extensions.Host{Name: "engine", SSH: &extensions.SSH{Address: server.Address, Port: int64(server.Port),
			User: server.User, HostKey: server.HostKeyLine, Identity: &extensions.SSHIdentity{PrivateKeyFile: server.KeyFile}}}
		delete(s.config.Values, "endpoint")
		s.config.Values["socket"] = s.gate.path
		sites.Store(s.gate.path, s)
	}
	sites.Store("unix://"+s.gate.path, s)
	t.Cleanup(func() { s.sweep(t) })
	return s
}

// sweep removes what a failed test left, and fails it.
func (s *site) sweep(t testing.TB) {
	for _, left := range s.residue(t) {
		t.Errorf("left behind: %s", left)
	}
	for _, kind := range kinds {
		for _, id := range strings.Fields(s.list(t, kind, "{{.ID}}")) {
			_ = exec.Command("docker", kind, "rm", "--force", id).Run()
		}
	}
}

// kinds are the kinds of objects that a sandbox has or leaves.
var kinds = []string{"container", "network", "image"}

func (s *site) list(t testing.TB, kind, format string) string {
	args := []string{kind, "ls", "--filter", "label=" + extensions.LabelAccount + "=" + s.config.Account, "--format", format}
	if kind == "container" {
		args = append(args, "--all")
	}
	return docker(t, args...)
}

func (s *site) residue(t testing.TB) []string {
	var all []string
	for _, kind := range kinds {
		format := "{{.ID}} {{.Name}}"
		switch kind {
		case "container":
			format = "{{.ID}} {{.Names}}"
		case "image":
			format = "{{.ID}} {{.Repository}}:{{.Tag}}"
		}
		for _, line := range strings.Split(s.list(t, kind, format), "\n") {
			if line != "" {
				all = append(all, kind+" "+line)
			}
		}
	}
	slices.Sort(all)
	return all
}

func docker(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command("docker", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("docker %s: %v: %s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return strings.TrimSpace(string(out))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// onImage gives a spec the test's image.
func onImage(t testing.TB, spec extensions.Spec) extensions.Spec {
	if spec.Image == nil && spec.Containers == nil && spec.Compose == nil {
		spec.Image = &extensions.Image{Pull: hosttest.Image(t)}
	}
	return spec
}

func TestConformance(t *testing.T) {
	t.Parallel()
	hosttest.Docker(t)
	exttest.Run(t, harness(func(t testing.TB) extensions.Config { return newSite(t).config }))
}

func TestConformanceOverSSH(t *testing.T) {
	t.Parallel()
	hosttest.Docker(t)
	exttest.Run(t, harness(func(t testing.TB) extensions.Config { return newSiteAt(t, extensions.PlaceHost).config }))
}

func harness(config func(testing.TB) extensions.Config) exttest.Harness {
	return exttest.Harness{
		New:    func(testing.TB) extensions.Extension { return New() },
		Config: config,
		Spec: func(t testing.TB, _ extensions.Config, spec extensions.Spec) extensions.Spec {
			return onImage(t, spec)
		},
		Unreachable: func(t testing.TB, cfg extensions.Config) {
			g := siteOf(t, cfg).gate
			g.shut()
			t.Cleanup(g.open)
		},
		NotHere: func(t testing.TB, _ extensions.Config, spec extensions.Spec) extensions.Spec {
			spec.Image = &extensions.Image{Pull: emptyRegistry(t) + "/no/such-image:1"}
			return spec
		},
		At:      func(t testing.TB, p extensions.Place) extensions.Config { return newSiteAt(t, p).config },
		Exhaust: func(t testing.TB, cfg extensions.Config) { exhaust(t, cfg) },
		LoseAnswer: func(t testing.TB, cfg extensions.Config) {
			siteOf(t, cfg).gate.loseAnswerOf("/start")
		},
		CutExec: func(t testing.TB, cfg extensions.Config, _ extensions.Handle, started <-chan struct{}) {
			s, stop := siteOf(t, cfg), make(chan struct{})
			t.Cleanup(func() { close(stop) })
			go func() {
				select {
				case <-started:
					s.gate.cut()
				case <-stop:
				}
			}()
		},
		Vanish: func(t testing.TB, cfg extensions.Config, h extensions.Handle) {
			for _, kind := range []string{"container", "network"} {
				args := []string{kind, "ls", "--quiet", "--filter", "label=" + extensions.LabelID + "=" + string(h.ID)}
				if kind == "container" {
					args = append(args, "--all")
				}
				for _, id := range strings.Fields(docker(t, args...)) {
					docker(t, kind, "rm", "--force", id)
				}
			}
		},
		Relabel: func(t testing.TB, _ extensions.Config, h extensions.Handle, id extensions.ID) {
			relabel(t, h, id)
		},
		Residue: func(t testing.TB, cfg extensions.Config) []string { return siteOf(t, cfg).residue(t) },
		Outside: func(t testing.TB, cfg extensions.Config) []string { return siteOf(t, cfg).outside(t) },
		Log: func(t testing.TB, b extensions.Backend, h extensions.Handle, line string) {
			_, err := b.(extensions.Execer).Exec(t.Context(), h,
				extensions.ExecRequest{Command: []string{"sh", "-c", `printf '%s\n' "$1" >/proc/1/fd/1`, "sh", line}})
			must(t, err)
		},
		Serve: func(t testing.TB, b extensions.Backend, h extensions.Handle) (string, int) {
			_, err := b.(extensions.Execer).Exec(t.Context(), h,
				extensions.ExecRequest{Shell: "nc -ll -p 7777 -e cat </dev/null >/dev/null 2>&1 & sleep 0.3"})
			must(t, err)
			return "", 7777
		},
		Listen: func(t testing.TB, _ extensions.Config) []exttest.Listener {
			return []exttest.Listener{exttest.ListenOn(t, hostAddress(t), map[string]func(address, port, word string) []string{
				"tcp": func(address, port, word string) []string {
					return []string{"sh", "-c", "printf %s " + word + " | nc -w 2 " + address + " " + port}
				}})}
		},
		Knock: func(t testing.TB, _ extensions.Config, h extensions.Handle, port int) bool {
			to := []string{"127.0.0.1"}
			for _, id := range strings.Fields(docker(t, "ps", "--quiet", "--filter", "label="+extensions.LabelID+"="+string(h.ID))) {
				to = append(to, strings.Fields(docker(t, "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}", id))...)
			}
			return slices.ContainsFunc(to, func(at string) bool {
				c, err := net.DialTimeout("tcp", net.JoinHostPort(at, strconv.Itoa(port)), time.Second)
				if err == nil {
					_ = c.Close()
				}
				return err == nil
			})
		},
		Starts: func(t testing.TB, cfg extensions.Config) int {
			return int(siteOf(t, cfg).gate.creates.Load())
		},
		RelabelSnapshot: func(t testing.TB, _ extensions.Config, h extensions.SnapshotHandle, id string) {
			relabelSnapshot(t, h, id)
		},
		User:     "sandbox",
		ShortTTL: 6 * time.Second,
		Excuse: map[string]string{
			"errors/each-alternative-opens":        "this extension has no alternatives of credentials",
			"errors/throttled-is-told-not-retried": "an engine limits no calls",
			"errors/poll-tells-a-faltering-answer": "no gateway is between this backend and the engine; lost connections are tested apart",
			"list/has-every-page":                  "an engine has no pages",
			"list/a-broken-one-is-an-error":        "an engine has no pages",
			"entrypoint/runs-the-image":            "the loop that watches the deadline is the first process; an image's own is refused",
			"errors/unauthorized":                  "a socket takes no credentials; refused certificates are tested with TLS",
		},
	}
}

// emptyRegistry is the address of a registry without images. Engines speak plain HTTP to this machine's own.
func emptyRegistry(t testing.TB) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/" {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}`)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// hostAddress is one of this machine's that a container with a network reaches.
func hostAddress(t testing.TB) string {
	addresses, err := net.InterfaceAddrs()
	must(t, err)
	for _, a := range addresses {
		if ip := a.(*net.IPNet).IP; ip.To4() != nil && !ip.IsLoopback() {
			return ip.String()
		}
	}
	t.Skip("this machine has no address but its loopback")
	return ""
}

// exhaust fills the engine up to what its owner allows.
func exhaust(t testing.TB, cfg extensions.Config) {
	for i := range testMax {
		id, err := extensions.NewID(nil)
		must(t, err)
		name := fmt.Sprintf("%s.g1.%d", id, i)
		docker(t, "run", "--detach", "--name", name, "--network", "none", "--label", extensions.LabelID+"="+string(id), "--label",
			labelHandler+"="+Handler, "--label", labelBinding+"="+cfg.Binding, "--label", labelService+"="+extensions.AgentService,
			hosttest.Image(t), "sleep", "600")
		t.Cleanup(func() { docker(t, "rm", "--force", name) })
	}
}

// relabel gives the agent's container another sandbox's name, since labels cannot change.
func relabel(t testing.TB, h extensions.Handle, id extensions.ID) {
	name := docker(t, "container", "ls", "--all", "--format", "{{.Names}}", "--filter", "label="+extensions.LabelID+"="+string(h.ID),
		"--filter", "label="+labelService+"="+extensions.AgentService)
	_, rest, _ := strings.Cut(name, ".")
	docker(t, "container", "rename", name, string(id)+"."+rest)
}

// relabelSnapshot gives all images of a snapshot another one's names.
func relabelSnapshot(t testing.TB, h extensions.SnapshotHandle, id string) {
	first := strings.Fields(docker(t, "image", "inspect", "--format", "{{join .RepoTags \" \"}}", h.Ref))[0]
	key, _, _ := strings.Cut(strings.TrimPrefix(first, ociimage.Copies+":"), ".")
	for _, name := range strings.Fields(docker(t, "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", ociimage.Copies)) {
		if rest, ok := strings.CutPrefix(name, ociimage.Copies+":"+key); ok {
			docker(t, "image", "tag", name, ociimage.Copies+":"+id+rest)
			docker(t, "image", "rm", name)
		}
	}
}

// outside reads what an engine keeps beside the sandboxes' own memory.
func (s *site) outside(t testing.TB) []string {
	var list []string
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range lines {
		b, _ := os.ReadFile(p)
		list = append(list, string(b))
	}
	for _, id := range strings.Fields(s.list(t, "container", "{{.ID}}")) {
		list = append(list, docker(t, "inspect", id), docker(t, "logs", id))
	}
	for _, id := range strings.Fields(s.list(t, "image", "{{.ID}}")) {
		list = append(list, docker(t, "inspect", id), docker(t, "history", "--no-trunc", id), docker(t, "save", id))
	}
	return list
}

// gate is a socket in front of the engine's, which tests shut and cut.
type gate struct {
	path    string
	creates atomic.Int64

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]bool
	lose   string // the answer to the next request of this path is lost
	asked  string // the next answers to requests of this path are these instead of the engine's
	bodies []string
	hold   string // the next request of this path arrives when later is closed, and its connection ends at once
	later  chan struct{}
	late   chan struct{} // closed once it was answered
}

func newGate(t testing.TB, path string) *gate {
	l, err := net.Listen("unix", path)
	must(t, err)
	g := &gate{path: path, conns: map[net.Conn]bool{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go g.serve(c)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		g.cut()
		<-done
	})
	return g
}

func (g *gate) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	to, err := net.Dial("unix", engineSocket)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return
	}
	g.conns[c] = true
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		delete(g.conns, c)
		g.mu.Unlock()
	}()
	var losing atomic.Bool
	var both sync.WaitGroup
	both.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := c.Read(buf)
			if later, late := g.held(buf[:n]); late != nil {
				deliver(io.MultiReader(bytes.NewReader(buf[:n]), c), c, later)
				close(late)
				return
			}
			if body := g.instead(buf[:n]); body != "" {
				answer(io.MultiReader(bytes.NewReader(buf[:n]), c), c, body)
				_ = to.Close()
				return
			}
			if g.watch(buf[:n]) {
				losing.Store(true)
			}
			if n > 0 {
				if _, err := to.Write(buf[:n]); err != nil {
					return
				}
			}
			if err != nil {
				_ = to.(*net.UnixConn).CloseWrite()
				return
			}
		}
	})
	both.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := to.Read(buf)
			if losing.Load() {
				_ = c.Close()
				return
			}
			if _, bad := c.Write(buf[:n]); bad != nil || err != nil {
				_ = c.(*net.UnixConn).CloseWrite()
				return
			}
		}
	})
	both.Wait()
}

// watch counts creates, and reports a request whose answer is to be lost once the engine has acted.
func (g *gate) watch(head []byte) bool {
	line, _, _ := bytes.Cut(head, []byte("\r\n"))
	if !bytes.HasPrefix(line, []byte("POST ")) && !bytes.HasPrefix(line, []byte("PUT ")) {
		return false
	}
	if bytes.Contains(line, []byte("/containers/create")) {
		g.creates.Add(1)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lose == "" || !bytes.Contains(line, []byte(g.lose)) {
		return false
	}
	g.lose = ""
	return true
}

// answerInstead makes the next requests of a path get these answers, and never arrive. A body that begins with the line of
// a status, "500 …", is sent with that.
func (g *gate) answerInstead(path string, bodies ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked, g.bodies = path, bodies
}

func (g *gate) instead(head []byte) (body string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	line, _, _ := bytes.Cut(head, []byte("\r\n"))
	if len(g.bodies) == 0 || !bytes.HasPrefix(line, []byte("POST ")) || !bytes.Contains(line, []byte(g.asked)) {
		return ""
	}
	body, g.bodies = g.bodies[0], g.bodies[1:]
	return body
}

// answer reads a request, answers it, and ends its connection.
func answer(from io.Reader, to io.WriteCloser, body string) {
	if r, err := http.ReadRequest(bufio.NewReader(from)); err == nil {
		_, _ = io.Copy(io.Discard, r.Body)
		status := "200 OK"
		if line, rest, cut := strings.Cut(body, "\n"); cut && strings.HasPrefix(line, "500 ") {
			status, body = line, rest
		}
		_, _ = fmt.Fprintf(to, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n%s", status, body)
	}
	_ = to.Close()
}

func (g *gate) loseAnswerOf(path string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lose = path
}

// holdBack makes the next request of a path arrive only when the returned function is called, which waits for its
// answer. Whoever sent it is cut off at once.
func (g *gate) holdBack(path string) func() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hold, g.later, g.late = path, make(chan struct{}), make(chan struct{})
	return sync.OnceFunc(func() {
		close(g.later)
		<-g.late
	})
}

// deliver reads a request, ends its connection, and sends it on later.
func deliver(from io.Reader, c io.Closer, later <-chan struct{}) {
	r, err := http.ReadRequest(bufio.NewReader(from))
	if err != nil {
		return
	}
	body, _ := io.ReadAll(r.Body)
	_ = c.Close()
	<-later
	to, err := net.Dial("unix", engineSocket)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	r.Body, r.Close = io.NopCloser(bytes.NewReader(body)), true
	_ = r.Write(to)
	_, _ = io.Copy(io.Discard, to)
}

func (g *gate) held(head []byte) (later, late chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	line, _, _ := bytes.Cut(head, []byte("\r\n"))
	if g.hold == "" || !bytes.Contains(line, []byte(g.hold)) {
		return nil, nil
	}
	g.hold = ""
	return g.later, g.late
}

func (g *gate) shut() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cut()
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
}

func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.conns {
		_ = c.Close()
	}
}
