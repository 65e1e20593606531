package composessh

import (
	"bytes"
	"crypto/rand"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// shortTTL leaves a busy machine the time to make a sandbox before it ends.
const shortTTL = 30 * time.Second

// testMax is how many sandboxes the owner of a test's host allows.
const testMax = 20

// sites are the places that the suite's checks use, by the host's root.
var sites sync.Map // root -> *site

func siteOf(t testing.TB, cfg extensions.Config) *site {
	t.Helper()
	s, ok := sites.Load(cfg.Values["root"])
	if !ok {
		t.Fatalf("no site has the root %v", cfg.Values["root"])
	}
	return s.(*site)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	hosttest.Docker(t)
	exttest.Run(t, exttest.Harness{
		New: func(testing.TB) extensions.Extension { return New() },
		Config: func(t testing.TB) extensions.Config {
			s := newSite(t)
			sites.Store(s.root, s)
			return s.config
		},
		Spec: func(t testing.TB, _ extensions.Config, spec extensions.Spec) extensions.Spec {
			return onImage(t, spec)
		},
		Unreachable: func(t testing.TB, cfg extensions.Config) {
			g := siteOf(t, cfg).gate
			g.shut()
			t.Cleanup(g.open)
		},
		NotHere: func(_ testing.TB, _ extensions.Config, spec extensions.Spec) extensions.Spec {
			spec.Resources.GPU = &extensions.GPU{Count: 1}
			return spec
		},
		Exhaust:    exhaust,
		LoseAnswer: loseAnswer,
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
			s := siteOf(t, cfg)
			s.removeObjects(t, h.ID)
			must(t, os.RemoveAll(filepath.Join(s.root, string(h.ID))))
		},
		Relabel: func(t testing.TB, cfg extensions.Config, h extensions.Handle, id extensions.ID) {
			siteOf(t, cfg).edit(t, h.ID, "manifest", "id", string(id))
		},
		RelabelSnapshot: func(t testing.TB, cfg extensions.Config, h extensions.SnapshotHandle, id string) {
			siteOf(t, cfg).edit(t, extensions.ID(filepath.Join("snapshots", h.ID)), "manifest", "id", id)
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
				extensions.ExecRequest{Shell: "nc -ll -p 7777 -e cat </dev/null >/dev/null 2>&1 & " + listens("1E61")})
			must(t, err)
			return "", 7777
		},
		Listen: func(t testing.TB, _ extensions.Config) []exttest.Listener {
			four, _ := hostAddresses(t)
			return []exttest.Listener{exttest.ListenOn(t, four[0], map[string]func(address, port, word string) []string{
				"tcp": func(address, port, word string) []string {
					return []string{"sh", "-c", "printf %s " + word + " | nc -w 2 " + address + " " + port}
				}})}
		},
		OwnEntrypoint: func(t testing.TB, _ extensions.Config, spec extensions.Spec) extensions.Spec {
			exttest.WithWorkspace(extensions.AccessRW, map[string]string{"Dockerfile": "FROM " + hosttest.Image(t) +
				"\nENTRYPOINT [\"sh\", \"-c\", \"printf own >/workspace/ran; sleep 3600\"]\n"})(&spec)
			spec.Image = &extensions.Image{Build: &extensions.BuildStage{Context: "."}}
			return spec
		},
		Knock: func(t testing.TB, cfg extensions.Config, h extensions.Handle, port int) bool {
			address := addressOf(t, containerOf(t, h.ID, extensions.AgentService))
			if address == "" { // it is alone; TestNothingGetsOut knocks at others
				return false
			}
			return echoes(net.JoinHostPort(address, strconv.Itoa(port)))
		},
		Starts: func(t testing.TB, cfg extensions.Config) int {
			entries, _ := os.ReadDir(siteOf(t, cfg).root)
			return len(entries)
		},
		User:     "sandbox",
		ShortTTL: shortTTL,
		Excuse: map[string]string{
			"errors/each-alternative-opens":        "this extension takes no credentials; refused keys are tested with the SSH client",
			"errors/throttled-is-told-not-retried": "a host over SSH limits sessions, not calls; that is tested with the SSH client",
			"errors/poll-tells-a-faltering-answer": "no gateway is between this backend and the host; lost connections are tested with the SSH client",
			"list/has-every-page":                  "a host has no pages",
			"list/a-broken-one-is-an-error":        "a host has no pages",
			"errors/unauthorized":                  "this extension takes no credentials; refused keys are tested with the SSH client",
		},
	})
}

// echoes reports whether an echo service answers there; a gateway may take any connection.
func echoes(address string) bool {
	c, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	word := []byte(rand.Text())
	_, _ = c.Write(word)
	got := make([]byte, len(word))
	_, _ = io.ReadFull(c, got)
	return bytes.Equal(got, word)
}

// exhaust fills a host up to what its owner allows, with sandboxes of others.
func exhaust(t testing.TB, cfg extensions.Config) {
	s := siteOf(t, cfg)
	for range testMax {
		id, err := extensions.NewID(nil)
		must(t, err)
		dir := filepath.Join(s.root, string(id))
		must(t, os.MkdirAll(dir, 0o700))
		must(t, os.WriteFile(filepath.Join(dir, "manifest"), []byte("id="+string(id)+"\naccount=somebody/else\nstate=ready\n"), 0o600))
		t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	}
}

// loseAnswer lets the next create do all of its work, and cuts the line before
// its answer comes through.
func loseAnswer(t testing.TB, cfg extensions.Config) {
	s := siteOf(t, cfg)
	done, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for _, state := range []string{"state=", "state=ready"} {
			for !s.anyManifest(state) {
				select {
				case <-stop:
					return
				case <-time.After(2 * time.Millisecond):
				}
			}
			s.gate.silence()
		}
		s.gate.cut()
		s.gate.open()
	}()
	t.Cleanup(func() {
		close(stop)
		<-done
	})
}

func (s *site) anyManifest(text string) bool {
	found, _ := filepath.Glob(filepath.Join(s.root, "sbx-*", "manifest"))
	return slices.ContainsFunc(found, func(file string) bool {
		b, _ := os.ReadFile(file)
		return strings.Contains(string(b), "\n"+text)
	})
}

// outside reads what a host keeps beside the sandboxes' own environment.
func (s *site) outside(t testing.TB) []string {
	var list []string
	_ = filepath.WalkDir(s.server.HomeDir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			b, _ := os.ReadFile(path)
			list = append(list, path+": "+string(b))
		}
		return nil
	})
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range lines {
		b, _ := os.ReadFile(p)
		list = append(list, string(b))
	}
	for _, p := range s.server.Processes() {
		list = append(list, p.String()+" "+strings.Join(environOf(p.Pid), " "))
	}
	list = append(list, s.server.Log())
	for _, id := range s.containers(t) {
		list = append(list, docker(t, "inspect", "--format",
			"{{.Name}} {{json .Config.Labels}} {{json .Config.Cmd}} {{json .Config.Entrypoint}} {{json .Args}}", id))
	}
	return list
}
