package tarbox

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantKind wants an error of a kind that says all words.
func wantKind(t testing.TB, what string, err error, kind extensions.Kind, words ...string) {
	t.Helper()
	if !extensions.IsKind(err, kind) {
		t.Errorf("%s: %v, want %s", what, err, kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error()+extensions.RemedyOf(err), w) {
			t.Errorf("%s: %v does not say %q", what, err, w)
		}
	}
}

func notCopied() bool { return false }

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

// A refused entry ends the transfer; a source that fails is told as its own.
func TestRefusedArchives(t *testing.T) {
	t.Parallel()
	good := newTar(t, entry{name: "a", body: "x", mode: 0o644}, entry{name: "l", link: "/x"})
	for what, archive := range map[string][]byte{
		"climbs":           newTar(t, entry{name: "ok"}, entry{name: "../up"}),
		"absolute":         newTar(t, entry{name: "/abs"}),
		"below a link":     newTar(t, entry{name: "l", link: "/tmp"}, entry{name: "l/x"}),
		"below a file":     newTar(t, entry{name: "f"}, entry{name: "f/x"}),
		"twice":            newTar(t, entry{name: "f"}, entry{name: "f"}),
		"dots":             newTar(t, entry{name: "a/./b"}),
		"too long a path":  newTar(t, entry{name: strings.Repeat("d/", 2047) + "f"}),
		"cut off":          good[:1024+100],
		"without its end":  good[:len(good)-1024],
		"with a surprise":  append(bytes.Clone(good), good...),
		"of another kind":  []byte(strings.Repeat("no archive ", 200)),
		"deeper than deep": newTar(t, entry{name: strings.Repeat("d/", tarstream.DefaultMaxDepth) + "f"}),
	} {
		var out bytes.Buffer
		err := refill(context.Background(), bytes.NewReader(archive), &out, Form{})
		wantKind(t, what, err, extensions.KindInvalid)
	}
	var out bytes.Buffer
	must(t, refill(context.Background(), bytes.NewReader(good), &out, Form{Prefix: "in/side", UID: 7, GID: 8, Made: true}))
	r := tar.NewReader(&out)
	for _, want := range []string{"in/side/", "in/side/a", "in/side/l"} {
		e, err := r.Next()
		must(t, err)
		if e.Name != want || e.Uid != 7 || e.Gid != 8 {
			t.Errorf("%s %d:%d, want %s", e.Name, e.Uid, e.Gid, want)
		}
	}
}

func FuzzRefill(f *testing.F) {
	f.Add(newTar(f, entry{name: "a/b", body: "x"}, entry{name: "l", link: "a"}))
	f.Add(newTar(f, entry{name: "../a"}, entry{name: "l", link: "/"}))
	f.Fuzz(func(t *testing.T, archive []byte) {
		var out bytes.Buffer
		if refill(t.Context(), bytes.NewReader(archive), &out, Form{}) != nil {
			return
		}
		links := map[string]bool{}
		for r := tar.NewReader(&out); ; {
			e, err := r.Next()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Fatalf("what was let through is no archive: %v", err)
				}
				return
			}
			name := strings.TrimSuffix(strings.TrimPrefix(e.Name, "./"), "/")
			if !filepath.IsLocal(name) {
				t.Fatalf("%q leaves", e.Name)
			}
			for up := filepath.Dir(name); up != "."; up = filepath.Dir(up) {
				if links[up] {
					t.Fatalf("%q lies below a link", e.Name)
				}
			}
			links[name] = e.Typeflag == tar.TypeSymlink
		}
	})
}

// Where the container has GNU's tar, holes stay holes.
func TestHolesOfAnArchiverThatKnowsThemStayHoles(t *testing.T) {
	t.Parallel()
	if out, err := exec.CommandContext(t.Context(), "tar", "--version").Output(); err != nil || !strings.Contains(string(out), "GNU") {
		t.Skip("needs GNU tar")
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "caf\xe9\n"), []byte("x"), 0o600))
	must(t, os.Truncate(filepath.Join(dir, "caf\xe9\n"), 1<<40))
	must(t, os.Link(filepath.Join(dir, "caf\xe9\n"), filepath.Join(dir, "second")))
	cmd := exec.CommandContext(t.Context(), "tar", "-S", "--format=posix", "--sparse-version=0.1", "--sort=name", "-cf", "-", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "LC_ALL=C")
	archive, err := cmd.Output()
	must(t, err)
	var out bytes.Buffer
	taking := newTaking(t.Context(), &out)
	must(t, taking.read(bytes.NewReader(archive), notCopied))
	must(t, taking.close())
	if out.Len() > 1<<20 {
		t.Fatalf("%d bytes came", out.Len())
	}
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	want, err := tarstream.Pack(t.Context(), io.Discard, root, tarstream.Options{})
	must(t, err)
	got, err := tarstream.Index(t.Context(), io.NewSectionReader(bytes.NewReader(out.Bytes()), 0, int64(out.Len())), tarstream.Options{})
	must(t, err)
	for i, e := range got.Entries {
		e.Same = ""
		if e != want.Entries[i] {
			t.Errorf("%+v, want %+v", e, want.Entries[i])
		}
	}
	// On the way in they would be written out: too many are refused by name.
	err = refill(t.Context(), bytes.NewReader(out.Bytes()), io.Discard, Form{})
	wantKind(t, "a hole that has to be filled", err, extensions.KindInvalid, fmt.Sprintf("%q", "./caf\xe9\n"))
}
