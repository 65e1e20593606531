package composessh

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// folder is a source of files by name.
type folder struct{ data []byte }

func newFolder(t testing.TB, files map[string]string) folder {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(files[name])), Mode: 0o644}))
		_, err := w.Write([]byte(files[name]))
		must(t, err)
	}
	must(t, w.Close())
	return folder{b.Bytes()}
}

func (f folder) Open(context.Context) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(f.data)), nil
}

func (f folder) Digest() string {
	sum := sha256.Sum256(f.data)
	return hex.EncodeToString(sum[:])
}
func (f folder) Size() int64  { return int64(len(f.data)) }
func (folder) Origin() string { return "a test" }

// stack is a spec that runs a compose file; IMAGE stands for the test image.
func (s *site) stack(t testing.TB, file string, opts ...exttest.Option) extensions.Spec {
	t.Helper()
	file = strings.ReplaceAll(file, "IMAGE", hosttest.Image(t))
	return s.spec(t, append([]exttest.Option{exttest.With(func(sp *extensions.Spec) {
		sp.Compose = &extensions.Compose{Files: []string{"compose.yaml"}, Service: "web"}
		sp.Settle = extensions.Duration(300 * time.Millisecond)
		sp.Workspace.Source = newFolder(t, map[string]string{"compose.yaml": file, "page": "hello"})
	})}, opts...)...)
}

// joined is a spec of one container that is on a network. Without more, it would be alone.
func (s *site) joined(t testing.TB, opts ...exttest.Option) extensions.Spec {
	t.Helper()
	return s.stack(t, `
services:
  web: { image: IMAGE, pull_policy: never, command: [sleep, "86400"], networks: [lan] }
networks: { lan: {} }
`, opts...)
}

const threeServices = `
services:
  web:
    image: IMAGE
    command: [httpd, -f, -p, "80", -h, /workspace]
    depends_on:
      db: {condition: service_healthy}
      setup: {condition: service_completed_successfully}
    healthcheck: {test: [CMD, wget, -q, -O, /dev/null, "http://127.0.0.1/page"], interval: 1s, retries: 30}
    ports: ["80"]
  db:
    image: IMAGE
    command: [nc, -ll, -p, "5432", -e, cat]
    healthcheck: {test: [CMD, sh, -c, "echo | nc -w 1 127.0.0.1 5432"], interval: 1s, retries: 30}
    volumes: ["data:/data"]
  setup:
    image: IMAGE
    command: [sh, -c, "echo prepared"]
volumes: {data: {}}
`

func TestAStackOfThreeServices(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	before := s.residue(t)
	h := s.provision(t, b, s.stack(t, threeServices))
	o := s.observe(t, b, h)
	if o.Phase != extensions.PhaseReady || len(s.containers(t)) != 3 {
		t.Errorf("%s: %s, %d containers", o.Phase, o.Reason, len(s.containers(t)))
	}
	r := o.Reachability
	if r.ComposeProject != string(h.ID) || r.Host != s.config.Host.Name || r.SSH == "" || !strings.HasSuffix(r.RemoteDir, "/workspace") ||
		r.WorkDir != "/workspace" {
		t.Errorf("reachability: %+v", r)
	}
	if len(r.Ports) != 0 {
		t.Errorf("under default deny ports are published: %v", r.Ports)
	}
	if _, err := b.Teardown(t.Context(), h); err != nil {
		t.Error(err)
	}
	if left := s.left(t, before); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestPublishedPortsAreOnTheLoopback(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.provision(t, b, s.stack(t, threeServices,
		exttest.With(func(sp *extensions.Spec) { sp.Network = extensions.Network{Default: "allow"} })))
	r := s.observe(t, b, h).Reachability
	if !strings.HasPrefix(r.Ports["web/80"], "127.0.0.1:") {
		t.Fatalf("ports: %v; docker says %s", r.Ports,
			docker(t, "ps", "--filter", "label="+extensions.LabelID+"="+string(h.ID), "--format", "{{.Names}} {{.Ports}}"))
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.URLs["web"]+"/page", nil)
	must(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	resp, err := client.Do(req)
	must(t, err)
	defer func() { _ = resp.Body.Close() }()
	if body, _ := io.ReadAll(resp.Body); string(body) != "hello" {
		t.Errorf("the page is %q", body)
	}
}

func TestAServiceThatFailsIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file string
		kind extensions.Kind
		want []string
	}{
		"ends with an error": {`
services:
  web: {image: IMAGE, command: [sh, -c, "echo the database is missing >&2; exit 3"]}
`, extensions.KindFailed, []string{"web", "exit code 3", "the database is missing"}},
		"a one-shot fails": {`
services:
  web: {image: IMAGE, command: [sleep, "300"], depends_on: {setup: {condition: service_completed_successfully}}}
  setup: {image: IMAGE, command: [sh, -c, "echo no such table; exit 1"]}
`, extensions.KindFailed, []string{"setup", "no such table"}},
		"unhealthy": {`
services:
  web: {image: IMAGE, command: [sh, -c, "echo starting badly; sleep 300"], healthcheck: {test: [CMD, sh, -c, "echo no quorum; exit 7"], interval: 500ms, retries: 1}}
`, extensions.KindFailed, []string{"web", "unhealthy", "exit code 7", "no quorum", "starting badly"}},
		"no such image": {`
services:
  web: {image: "127.0.0.1:9/no/such:image"}
`, "", []string{"no/such"}},
		"no such program": {`
services:
  web: {image: IMAGE, command: [no-such-program]}
`, extensions.KindInvalid, []string{"no-such-program"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			b := s.open(t)
			before := s.residue(t)
			spec := s.stack(t, c.file, settling(extensions.SettleDefault)) // what ends at once may be seen while it runs
			h, _, err := b.Provision(t.Context(), spec)
			s.tearDownAtEnd(t, spec.ID)
			if err == nil {
				t.Fatal("no error")
			}
			if c.kind != "" && !extensions.IsKind(err, c.kind) {
				t.Errorf("kind %s: %v", extensions.KindOf(err), err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v does not tell %q", err, want)
				}
			}
			if h.IsZero() {
				if left := s.left(t, before); len(left) > 0 {
					t.Errorf("nothing is said to be there, and there is %q", left)
				}
			} else if o := s.observe(t, b, h); o.Phase != extensions.PhaseFailed || name == "unhealthy" && !strings.Contains(o.Reason, "no quorum") {
				t.Errorf("it is %s: %s", o.Phase, o.Reason)
			}
		})
	}
}
