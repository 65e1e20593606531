package composessh

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// entry is one of an archive; link makes it a symbolic one.
type entry struct {
	name, body, link string
	mode             int64
}

func newTar(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Size: int64(len(e.body)), Mode: e.mode}
		switch {
		case e.link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		case strings.HasSuffix(e.name, "/"):
			h.Typeflag = tar.TypeDir
		}
		must(t, w.WriteHeader(h))
		_, err := io.WriteString(w, e.body)
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

// taken downloads a path: names to content, "-> target" for links.
func taken(t testing.TB, b *Backend, h extensions.Handle, name string) map[string]string {
	t.Helper()
	var buf bytes.Buffer
	if err := b.Download(t.Context(), h, name, &buf); err != nil {
		t.Fatalf("download of %s: %v", name, err)
	}
	got := map[string]string{}
	for r := tar.NewReader(&buf); ; {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return got
		}
		must(t, err)
		body, err := io.ReadAll(r)
		must(t, err)
		got[e.Name] = string(body)
		switch e.Typeflag {
		case tar.TypeSymlink:
			got[e.Name] = "-> " + e.Linkname
		case tar.TypeLink:
			got[e.Name] = got[e.Linkname]
		}
	}
}

func wantFiles(t testing.TB, what string, got, want map[string]string) {
	t.Helper()
	for name, body := range want {
		if got[name] != body {
			t.Errorf("%s: %s is %.80q, want %.80q", what, name, got[name], body)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d entries, want %d: %.300q", what, len(got), len(want), got)
	}
}

// checkFiles takes files in and out of the default service.
func checkFiles(t testing.TB, b *Backend, h extensions.Handle) {
	t.Helper()
	long := strings.Repeat("n", 200)
	up := newTar(t, entry{name: "d/", mode: 0o750}, entry{name: "d/" + long, body: "long", mode: 0o640},
		entry{name: "-rf", body: "dash", mode: 0o644},
		entry{name: "d/é \t'\"$x", body: "odd", mode: 0o755}, entry{name: "d/abs", link: "/etc/passwd"},
		entry{name: "d/up", link: "../../../../etc"})
	if err := b.Upload(t.Context(), h, "files/new", bytes.NewReader(up)); err != nil {
		t.Fatalf("upload: %v", err)
	}
	wantFiles(t, "what came back", taken(t, b, h, "files/new"),
		map[string]string{"d/": "", "d/" + long: "long", "-rf": "dash", "d/é \t'\"$x": "odd",
			"d/abs": "-> /etc/passwd", "d/up": "-> ../../../../etc"})
	wantFiles(t, "a link", taken(t, b, h, "files/new/d/abs"), map[string]string{"abs": "-> /etc/passwd"})
	r := run(t, b, h, extensions.ExecRequest{Shell: "cd files/new; ln d/" + long +
		" d/second; ln d/second third; mkfifo p; ls -l -- -rf | cut -c 1-10"})
	if got := strings.TrimSpace(string(r.Stdout)); got != "-rw-r--r--" {
		t.Errorf("the mode is %q, %q", got, r.Stderr)
	}
	got := taken(t, b, h, "files/new")
	for _, name := range []string{"d/" + long, "d/second", "third"} {
		if got[name] != "long" {
			t.Errorf("of a file with three names, %.20s holds %q", name, got[name])
		}
	}
	wantKind(t, "a path that is not there", b.Download(t.Context(), h, "not/there", io.Discard), extensions.KindNotFound, "not/there")
	wantKind(t, "below a file", b.Upload(t.Context(), h, "files/new/third/x", bytes.NewReader(newTar(t))), extensions.KindConflict)
}

func TestFilesGoInAndOutOfAnImageWithoutTar(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.several(t, b, "bare")
	up := newTar(t, entry{name: "d/f", body: "x", mode: 0o600}, entry{name: "l", link: "/etc/passwd"})
	if err := b.Upload(t.Context(), h, "/in/side", bytes.NewReader(up)); err != nil {
		t.Fatalf("upload: %v", err)
	}
	wantFiles(t, "what came back", taken(t, b, h, "/in/side"), map[string]string{"d/": "", "d/f": "x", "l": "-> /etc/passwd"})
	wantFiles(t, "one file", taken(t, b, h, "/in/side/d/f"), map[string]string{"f": "x"})
	r := run(t, b, h, extensions.ExecRequest{Command: []string{"/busybox", "stat", "-c", "%u:%g %a", "/in/side", "/in/side/d/f"}})
	if string(r.Stdout) != "4711:4712 755\n4711:4712 600\n" {
		t.Errorf("owners and modes: %q, %q", r.Stdout, r.Stderr)
	}
	wantKind(t, "a path that is not there", b.Download(t.Context(), h, "/not/there", io.Discard), extensions.KindNotFound)
	if state := docker(t, "inspect", "-f", "{{.State.Status}}", string(h.ID)+"-bare-1"); state != "running" {
		t.Errorf("the container is %s", state)
	}
}

func TestFilesOfAnotherUserAreThatUsers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.several(t, b, "db")
	must(t, b.Upload(t.Context(), h, "/tmp/mine", bytes.NewReader(newTar(t, entry{name: "f", body: "x", mode: 0o600}))))
	r := run(t, b, h, extensions.ExecRequest{Command: []string{"stat", "-c", "%U", "/tmp/mine", "/tmp/mine/f"}})
	if string(r.Stdout) != "sandbox\nsandbox\n" {
		t.Errorf("owners: %q", r.Stdout)
	}
	wantKind(t, "a folder of root's", b.Upload(t.Context(), h, "/etc/mine", bytes.NewReader(newTar(t))), extensions.KindUnauthorized)
}

// Links made inside lead somewhere inside, whatever they say, also for docker's
// own copying.
func TestLinksInsideDoNotReachTheHost(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	target := t.TempDir()
	must(t, os.WriteFile(filepath.Join(target, "secret"), []byte("the host's"), 0o600))
	for _, service := range []string{"web", "bare"} {
		h := s.several(t, b, service)
		program := map[string][]string{"web": {"busybox"}, "bare": {"/busybox"}}[service]
		tool := func(words ...string) {
			if r := run(t, b, h, extensions.ExecRequest{Command: append(append([]string{}, program...), words...), User: "0"}); r.ExitCode != 0 {
				t.Fatalf("%q in %s: %s", words, service, r.Stderr)
			}
		}
		tool("mkdir", "-p", "/trap", target)
		tool("ln", "-s", target, "/trap/abs")
		tool("ln", "-s", "../../../../../../../../../.."+target, "/trap/up")
		for _, link := range []string{"abs", "up"} {
			err := b.Download(t.Context(), h, "/trap/"+link+"/secret", io.Discard)
			wantKind(t, service+": a file of the host's by "+link, err, extensions.KindNotFound)
			_ = b.Upload(t.Context(), h, "/trap/"+link, bytes.NewReader(newTar(t, entry{name: "planted", body: "x", mode: 0o644})))
		}
		if left, _ := os.ReadDir(target); len(left) != 1 {
			t.Errorf("%s: the host's folder holds %v", service, left)
		}
	}
}

func TestAReadOnlyWorkspaceTakesNoFiles(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.provision(t, b, s.spec(t, exttest.WithWorkspace(extensions.AccessRO, map[string]string{"f": "1"})))
	err := b.Upload(t.Context(), h, "", bytes.NewReader(newTar(t, entry{name: "g", body: "x", mode: 0o644})))
	wantKind(t, "upload into it", err, extensions.KindConflict, "read-only")
	wantFiles(t, "it", taken(t, b, h, ""), map[string]string{"f": "1"})
}
