package docker

import (
	"bytes"
	"context"
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

	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ociimage"
)

// testMax is how many sandboxes a check's binding may have.
const testMax = 8

// ground is an engine that tests run on.
type ground struct {
	socket string
	image  func(t testing.TB) string
	// inside runs f in the engine's network.
	inside func(t testing.TB, f func())
}

// here is this machine's own.
var here = &ground{"/var/run/docker.sock", hosttest.Image, func(_ testing.TB, f func()) { f() }}

// site is one place of a check: the engine behind a socket of the test's own, and an account that nothing else
// uses.
type site struct {
	*ground
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
	return here.site(t, extensions.PlaceMachine)
}

// site gives the engine directly, or as that of a host over SSH.
func (g *ground) site(t testing.TB, p extensions.Place) *site {
	t.Helper()
	hosttest.Docker(t)
	dir, err := os.MkdirTemp("", "sbx")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	s := &site{ground: g, gate: newGate(t, filepath.Join(dir, "s"), g.socket)}
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
	s.shareProofs(t)
	t.Cleanup(func() { s.sweep(t) })
	return s
}

// sweep removes what a failed test left, and fails it.
func (s *site) sweep(t testing.TB) {
	for _, left := range s.residue(t) {
		t.Errorf("left behind: %s", left)
	}
	for _, o := range s.list(t, "container", "network", "image") {
		_ = exec.Command("docker", "-H", "unix://"+s.socket, o.kind, "rm", "--force", o.id).Run()
	}
}

// object is a container, a network, or one name of an image.
type object struct{ kind, id, name string }

// list asks the engine itself: starting the command line, as often as tests ask, takes longer than they do.
func (s *site) list(t testing.TB, kinds ...string) (all []object) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	c, err := client.New(client.WithHost("unix://" + s.socket))
	must(t, err)
	defer func() { must(t, c.Close()) }()
	ours := make(client.Filters).Add("label", extensions.LabelAccount+"="+s.config.Account)
	for _, kind := range kinds {
		switch kind {
		case "container":
			r, err := c.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: ours})
			must(t, err)
			for _, o := range r.Items {
				all = append(all, object{kind, o.ID, strings.Join(o.Names, ",")})
			}
		case "network":
			r, err := c.NetworkList(ctx, client.NetworkListOptions{Filters: ours})
			must(t, err)
			for _, o := range r.Items {
				all = append(all, object{kind, o.ID, o.Name})
			}
		case "image":
			r, err := c.ImageList(ctx, client.ImageListOptions{Filters: ours})
			must(t, err)
			for _, o := range r.Items {
				for _, name := range slices.Concat(o.RepoTags, []string{""})[:max(len(o.RepoTags), 1)] {
					all = append(all, object{kind, o.ID, name})
				}
			}
		}
	}
	return all
}

func (s *site) residue(t testing.TB) []string {
	var all []string
	for _, o := range s.list(t, "container", "network", "image") {
		all = append(all, o.kind+" "+o.id+" "+o.name)
	}
	slices.Sort(all)
	return all
}

func docker(t testing.TB, args ...string) string {
	t.Helper()
	return here.docker(t, args...)
}

func (g *ground) docker(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command("docker", append([]string{"-H", "unix://" + g.socket}, args...)...)
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
func onImage(t testing.TB, spec extensions.Spec) extensions.Spec { return here.onImage(t, spec) }

func (g *ground) onImage(t testing.TB, spec extensions.Spec) extensions.Spec {
	if spec.Image == nil && spec.Containers == nil && spec.Compose == nil {
		spec.Image = &extensions.Image{Pull: g.image(t)}
	}
	return spec
}

func TestConformance(t *testing.T) {
	t.Parallel()
	hosttest.Docker(t)
	exttest.Run(t, here.harness(extensions.PlaceMachine))
}

func TestConformanceOverSSH(t *testing.T) {
	t.Parallel()
	hosttest.Docker(t)
	exttest.Run(t, here.harness(extensions.PlaceHost))
}

func (g *ground) harness(p extensions.Place) exttest.Harness {
	return exttest.Harness{
		New:    func(testing.TB) extensions.Extension { return New() },
		Config: func(t testing.TB) extensions.Config { return g.site(t, p).config },
		Spec: func(t testing.TB, _ extensions.Config, spec extensions.Spec) extensions.Spec {
			return g.onImage(t, spec)
		},
		Unreachable: func(t testing.TB, cfg extensions.Config) {
			g := siteOf(t, cfg).gate
			g.shut()
			t.Cleanup(g.open)
		},
		NotHere: func(t testing.TB, _ extensions.Config, spec extensions.Spec) extensions.Spec {
			g.inside(t, func() { spec.Image = &extensions.Image{Pull: emptyRegistry(t) + "/no/such-image:1"} })
			return spec
		},
		At:      func(t testing.TB, p extensions.Place) extensions.Config { return g.site(t, p).config },
		Exhaust: func(t testing.TB, cfg extensions.Config) { g.exhaust(t, cfg) },
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
				for _, id := range strings.Fields(g.docker(t, args...)) {
					g.docker(t, kind, "rm", "--force", id)
				}
			}
		},
		Relabel: func(t testing.TB, _ extensions.Config, h extensions.Handle, id extensions.ID) {
			g.relabel(t, h, id)
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
		Listen: func(t testing.TB, _ extensions.Config) (all []exttest.Listener) {
			g.inside(t, func() {
				all = []exttest.Listener{exttest.ListenOn(t, hostAddress(t), map[string]func(address, port, word string) []string{
					"tcp": func(address, port, word string) []string {
						return []string{"sh", "-c", "printf %s " + word + " | nc -w 2 " + address + " " + port}
					}})}
			})
			return all
		},
		Knock: func(t testing.TB, _ extensions.Config, h extensions.Handle, port int) (open bool) {
			to := []string{"127.0.0.1"}
			for _, id := range strings.Fields(g.docker(t, "ps", "--quiet", "--filter", "label="+extensions.LabelID+"="+string(h.ID))) {
				to = append(to, strings.Fields(g.docker(t, "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}", id))...)
			}
			g.inside(t, func() {
				open = slices.ContainsFunc(to, func(at string) bool {
					c, err := net.DialTimeout("tcp", net.JoinHostPort(at, strconv.Itoa(port)), time.Second)
					if err == nil {
						_ = c.Close()
					}
					return err == nil
				})
			})
			return open
		},
		Starts: func(t testing.TB, cfg extensions.Config) int {
			return int(siteOf(t, cfg).gate.creates.Load())
		},
		OwnEntrypoint: func(t testing.TB, _ extensions.Config, spec extensions.Spec) extensions.Spec {
			name := fmt.Sprintf("sandboxer-test-entry-%d-%d:1", os.Getpid(), siteNo.Add(1))
			made := g.docker(t, "create", "--network", "none", g.image(t), "true")
			g.docker(t, "commit", "--change", `ENTRYPOINT ["sh","-c"]`, "--change", `CMD ["cd /workspace && printf own >ran; exec sleep 3600"]`, made, name)
			g.docker(t, "rm", made)
			t.Cleanup(func() { g.docker(t, "image", "rm", name) })
			spec.Image = &extensions.Image{Pull: name}
			return spec
		},
		RelabelSnapshot: func(t testing.TB, _ extensions.Config, h extensions.SnapshotHandle, id string) {
			g.relabelSnapshot(t, h, id)
		},
		User:     "sandbox",
		ShortTTL: 6 * time.Second,
		Excuse: map[string]string{
			"errors/each-alternative-opens":        "this extension has no alternatives of credentials",
			"errors/throttled-is-told-not-retried": "an engine limits no calls",
			"errors/poll-tells-a-faltering-answer": "no gateway is between this backend and the engine; lost connections are tested apart",
			"list/has-every-page":                  "an engine has no pages",
			"list/a-broken-one-is-an-error":        "an engine has no pages",
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
func (g *ground) exhaust(t testing.TB, cfg extensions.Config) {
	for i := range testMax {
		id, err := extensions.NewID(nil)
		must(t, err)
		name := fmt.Sprintf("%s.g1.%d", id, i)
		g.docker(t, "run", "--detach", "--name", name, "--network", "none", "--label", extensions.LabelID+"="+string(id), "--label",
			labelHandler+"="+Handler, "--label", labelBinding+"="+cfg.Binding, "--label", labelService+"="+extensions.AgentService,
			g.image(t), "sleep", "600")
		t.Cleanup(func() { g.docker(t, "rm", "--force", name) })
	}
}

// relabel gives the agent's container another sandbox's name, since labels cannot change.
func (g *ground) relabel(t testing.TB, h extensions.Handle, id extensions.ID) {
	name := g.docker(t, "container", "ls", "--all", "--format", "{{.Names}}", "--filter", "label="+extensions.LabelID+"="+string(h.ID),
		"--filter", "label="+labelService+"="+extensions.AgentService)
	_, rest, _ := strings.Cut(name, ".")
	g.docker(t, "container", "rename", name, string(id)+"."+rest)
}

// relabelSnapshot gives all images of a snapshot another one's names.
func (g *ground) relabelSnapshot(t testing.TB, h extensions.SnapshotHandle, id string) {
	first := strings.Fields(g.docker(t, "image", "inspect", "--format", "{{join .RepoTags \" \"}}", h.Ref))[0]
	key, _, _ := strings.Cut(strings.TrimPrefix(first, ociimage.Copies+":"), ".")
	for _, name := range strings.Fields(g.docker(t, "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", ociimage.Copies)) {
		if rest, ok := strings.CutPrefix(name, ociimage.Copies+":"+key); ok {
			g.docker(t, "image", "tag", name, ociimage.Copies+":"+id+rest)
			g.docker(t, "image", "rm", name)
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
	for _, o := range s.list(t, "container") {
		list = append(list, s.docker(t, "inspect", o.id), s.docker(t, "logs", o.id))
	}
	for _, o := range s.list(t, "image") {
		list = append(list, s.docker(t, "inspect", o.id), s.docker(t, "history", "--no-trunc", o.id), s.docker(t, "save", o.id))
	}
	return list
}
