package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// sides holds a folder here, its base, and the sandbox's stream.
type sides struct {
	here   string
	base   *tarstream.Manifest
	stream []byte
	spool  string
}

func newSides(t *testing.T, base, here, there []string) sides {
	t.Helper()
	s := sides{here: grow(t, t.TempDir(), here...), spool: t.TempDir()}
	s.stream, _ = packed(t, grow(t, t.TempDir(), there...))
	if base != nil {
		_, m := packed(t, grow(t, t.TempDir(), base...))
		b, err := EncodeBase(m)
		must(t, err)
		m, err = DecodeBase(b)
		must(t, err)
		s.base = &m
	}
	return s
}

func (s sides) sync(t *testing.T, dry bool) Report {
	t.Helper()
	r, err := SyncBack(t.Context(), s.here, s.base, section(s.stream), SyncOptions{SpoolDir: s.spool, DryRun: dry})
	must(t, err)
	return r
}

func section(b []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b)))
}

func pathsOf(cs []Conflict) []string {
	var out []string
	for _, c := range cs {
		out = append(out, c.Path)
	}
	return out
}

func TestEachSidesChangesMeet(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		base, here, there  []string
		want               []string
		written, deleted   []string
		conflicts, refused []string
	}{
		"nothing changed": {[]string{"a=1"}, []string{"a=1"}, []string{"a=1"}, []string{"a=1"}, nil, nil, nil, nil},
		"changed there": {[]string{"a=1", "d/b=1"}, []string{"a=1", "d/b=1"}, []string{"a=2", "d/b=2"}, []string{"a=2", "d/", "d/b=2"},
			[]string{"a", "d/b"}, nil, nil, nil},
		"new there": {[]string{"a=1"}, []string{"a=1"}, []string{"a=1", "x/y/z!=3", "l->a"},
			[]string{"a=1", "l->a", "x/", "x/y/", "x/y/z!=3"}, []string{"l", "x", "x/y", "x/y/z"}, nil, nil, nil},
		"deleted there": {[]string{"a=1", "d/b=1", "k=1"}, []string{"a=1", "d/b=1", "k=1"}, []string{"k=1"}, []string{"k=1"}, nil,
			[]string{"a", "d", "d/b"}, nil, nil},
		"changed here":    {[]string{"a=1", "b=1"}, []string{"a=9", "n=1"}, []string{"a=1", "b=1"}, []string{"a=9", "n=1"}, nil, nil, nil, nil},
		"made executable": {[]string{"a=1"}, []string{"a=1"}, []string{"a!=1"}, []string{"a!=1"}, []string{"a"}, nil, nil, nil},

		"changed on both sides": {[]string{"a=1"}, []string{"a=2"}, []string{"a=3"}, []string{"a=2"}, nil, nil, []string{"a"}, nil},
		"changed to the same":   {[]string{"a=1"}, []string{"a=2"}, []string{"a=2"}, []string{"a=2"}, nil, nil, nil, nil},
		"new on both sides": {[]string{"k=1"}, []string{"k=1", "a=2", "b=2"}, []string{"k=1", "a=3", "b=2"},
			[]string{"a=2", "b=2", "k=1"}, nil, nil, []string{"a"}, nil},
		"deleted there, changed here": {[]string{"a=1", "k=1"}, []string{"a=2", "k=1"}, []string{"k=1"}, []string{"a=2", "k=1"}, nil, nil,
			[]string{"a"}, nil},
		"changed there, deleted here": {[]string{"a=1", "k=1"}, []string{"k=1"}, []string{"a=2", "k=1"}, []string{"k=1"}, nil, nil,
			[]string{"a"}, nil},
		"folder deleted, filled here": {[]string{"d/a=1", "k=1"}, []string{"d/a=1", "d/n=1", "k=1"}, []string{"k=1"},
			[]string{"d/", "d/n=1", "k=1"}, nil, []string{"d/a"}, nil, nil},
		"everything gone there": {[]string{"a=1"}, []string{"a=1"}, nil, []string{"a=1"}, nil, nil, nil, []string{"."}},
		"file became folder": {[]string{"a=1"}, []string{"a=1"}, []string{"a/b=2"}, []string{"a/", "a/b=2"}, []string{"a", "a/b"},
			nil, nil, nil},
		"folder became file": {[]string{"a/b=1"}, []string{"a/b=1"}, []string{"a=2"}, []string{"a=2"}, []string{"a"}, []string{"a/b"},
			nil, nil},
		"file became link": {[]string{"a=1", "b=1"}, []string{"a=1", "b=1"}, []string{"a->b", "b=1"}, []string{"a->b", "b=1"},
			[]string{"a"}, nil, nil, nil},
		"file became folder, other here": {[]string{"a=1"}, []string{"a=9"}, []string{"a/b=2"}, []string{"a=9"}, nil, nil, []string{"a", "a/b"},
			nil},
		"folder became file, other here": {[]string{"a/b=1"}, []string{"a/b=9"}, []string{"a=2"}, []string{"a/", "a/b=9"}, nil, nil,
			[]string{"a", "a/b"}, nil},
		"link here, folder there": {[]string{"d/b=1"}, []string{"d->elsewhere", "elsewhere/b=1"}, []string{"d/b=2", "d/n=1"},
			[]string{"d->elsewhere", "elsewhere/", "elsewhere/b=1"}, nil, nil, []string{"d/b", "d/n"}, nil},

		"ignored on both sides": {[]string{".sandboxerignore=i\n", "i/b=1", "k=1"}, []string{".sandboxerignore=i\n", "i/b=9"},
			[]string{".sandboxerignore=i\n", "i/c=1", "k=1"},
			[]string{".sandboxerignore=i\n", "i/", "i/b=9"}, nil, nil, nil, nil},
		"links that lead out": {[]string{"k=1"}, []string{"k=1"}, []string{"k=1", "abs->/etc/passwd", "up->../x", "d/up->../..", "d/ok->../k"},
			[]string{"d/", "d/ok->../k", "k=1"}, []string{"d", "d/ok"}, nil, nil, []string{"abs", "d/up", "up"}},
		"a link that led out before": {[]string{"abs->/x", "k=1"}, []string{"abs->/x", "k=1"}, []string{"abs->/x", "k=2"},
			[]string{"abs->/x", "k=2"}, []string{"k"}, nil, nil, nil},
		"git's history and no more": {
			[]string{".git/HEAD=1", ".git/config=1", ".git/objects/aa/b=1"}, []string{".git/HEAD=1", ".git/config=1", ".git/objects/aa/b=1"},
			[]string{".git/HEAD=2", ".git/config=2", ".git/hooks/pre-commit!=x", ".git/objects/cc/d=1", ".git/objects/info/alternates=/x",
				".git/refs/heads/m=1"},
			[]string{".git/", ".git/HEAD=2", ".git/config=1", ".git/objects/", ".git/objects/aa/", ".git/objects/aa/b=1", ".git/objects/cc/",
				".git/objects/cc/d=1", ".git/objects/info/", ".git/refs/", ".git/refs/heads/", ".git/refs/heads/m=1"},
			[]string{".git/HEAD", ".git/objects/cc", ".git/objects/cc/d", ".git/objects/info", ".git/refs", ".git/refs/heads", ".git/refs/heads/m"},
			nil, nil, []string{".git/config", ".git/hooks", ".git/hooks/pre-commit", ".git/objects/info/alternates"}},
		"git led elsewhere": {[]string{"k=1"}, []string{"k=1"},
			[]string{"k=1", "s/.git=gitdir: ../evil", "e/HEAD=1", "e/config=x", "e/objects/o=1", "e/refs/r=1"},
			[]string{"e/", "e/HEAD=1", "e/objects/", "e/objects/o=1", "e/refs/", "e/refs/r=1", "k=1", "s/"},
			[]string{"e", "e/HEAD", "e/objects", "e/objects/o", "e/refs", "e/refs/r", "s"}, nil, nil, []string{"e/config", "s/.git"}},

		"no base": {nil, []string{"a=1", "b=1", "mine=1"}, []string{"a=2", "b=1", "new=1"}, []string{"a=1", "b=1", "mine=1", "new=1"},
			[]string{"new"}, nil, []string{"a"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSides(t, c.base, c.here, c.there)
			before := tree(t, s.here)
			want := Report{Written: c.written, Deleted: c.deleted}
			check := func(when string, r Report) {
				t.Helper()
				if d := cmp.Diff([][]string{want.Written, want.Deleted, c.conflicts, c.refused},
					[][]string{r.Written, r.Deleted, pathsOf(r.Conflicts), pathsOf(r.Refused)}); d != "" {
					t.Errorf("%s: %s", when, d)
				}
				if r.Clean() != (c.conflicts == nil && c.refused == nil) {
					t.Errorf("%s: Clean() = %v", when, r.Clean())
				}
			}
			check("dry run", s.sync(t, true))
			if d := cmp.Diff(before, tree(t, s.here)); d != "" {
				t.Fatalf("a dry run changed: %s", d)
			}
			check("run", s.sync(t, false))
			if d := cmp.Diff(c.want, tree(t, s.here)); d != "" {
				t.Error(d)
			}
			again := s.sync(t, false)
			if len(again.Written)+len(again.Deleted) > 0 {
				t.Errorf("a second run changed %+v", again)
			}
			if d := cmp.Diff(c.want, tree(t, s.here)); d != "" {
				t.Errorf("a second run: %s", d)
			}
		})
	}
}

func TestAStreamThatStopsEarlyDeletesNothing(t *testing.T) {
	t.Parallel()
	s := newSides(t, []string{"a=1", "b=1"}, []string{"a=1", "b=1"}, []string{"a=1", "b=1"})
	for cut := 0; cut < len(s.stream); cut += 512 {
		_, err := SyncBack(t.Context(), s.here, s.base, section(s.stream[:cut]), SyncOptions{SpoolDir: s.spool})
		if cut < 2*1024+1024 && !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("cut at %d: got %v", cut, err)
		}
		if d := cmp.Diff([]string{"a=1", "b=1"}, tree(t, s.here)); d != "" {
			t.Fatalf("cut at %d: %s", cut, d)
		}
	}
}

func TestWhatACrashLeftIsFinished(t *testing.T) {
	t.Parallel()
	s := newSides(t, []string{"a=1", "f=1"}, []string{"a=1", syncTemp("a") + "=half"}, []string{"a=2", "f/x=1"})
	s.sync(t, false) // f was deleted to make room for the folder, then the machine went down
	if d := cmp.Diff([]string{"a=2", "f/", "f/x=1"}, tree(t, s.here)); d != "" {
		t.Error(d)
	}
}

func TestPermissionsHereAreKeptAndNothingStays(t *testing.T) {
	t.Parallel()
	s := newSides(t, []string{"a=1", "b=1"}, []string{"a=1", "b=1"}, []string{"a!=2", "b=2"})
	must(t, os.Chmod(filepath.Join(s.here, "a"), 0o640))
	must(t, os.Chmod(filepath.Join(s.here, "b"), 0o600))
	s.sync(t, false)
	for name, mode := range map[string]os.FileMode{"a": 0o750, "b": 0o600} {
		info, err := os.Stat(filepath.Join(s.here, name))
		must(t, err)
		if info.Mode().Perm() != mode {
			t.Errorf("%s has mode %v, want %v", name, info.Mode().Perm(), mode)
		}
	}
	for _, node := range tree(t, s.spool) {
		if !strings.HasPrefix(node, "sync-") {
			t.Errorf("the spool holds %q", node)
		}
	}
}

func TestAMissingFolderAndACancelledContext(t *testing.T) {
	t.Parallel()
	s := newSides(t, []string{"a=1"}, []string{"a=1"}, []string{"a=2"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := SyncBack(ctx, s.here, s.base, section(s.stream), SyncOptions{SpoolDir: s.spool}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := SyncBack(t.Context(), s.here+"/none", s.base, section(s.stream), SyncOptions{SpoolDir: s.spool}); !extensions.IsKind(err,
		extensions.KindInvalid) {
		t.Errorf("missing: %v", err)
	}
	if d := cmp.Diff([]string{"a=1"}, tree(t, s.here)); d != "" {
		t.Error(d)
	}
}

func TestABaseIsBoundedAndStrict(t *testing.T) {
	t.Parallel()
	var m tarstream.Manifest
	for range 200_000 {
		m.Entries = append(m.Entries, tarstream.Entry{Path: strings.Repeat("p", 60), Type: tarstream.TypeFile, SHA256: strings.Repeat("a", 64)})
	}
	if _, err := EncodeBase(m); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("too large: %v", err)
	}
	if _, err := DecodeBase([]byte("{")); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("damaged: %v", err)
	}
	b, err := EncodeBase(tarstream.Manifest{Entries: m.Entries[:1]})
	if err != nil || !json.Valid(b) {
		t.Errorf("%s, %v", b, err)
	}
}

// Whatever the three sides hold: what this side changed is kept as it is,
// nothing else is lost, and a second run changes nothing.
func TestLocalWorkIsNeverLost(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "d", "d/a", "d/b", "d/e/a"}
	draw := func(rt *rapid.T, label string) []string {
		var nodes []string
		taken := map[string]bool{}
		for _, n := range names {
			content := rapid.SampledFrom([]string{"", "1", "2", "3"}).Draw(rt, label+n)
			if content == "" || taken[filepath.Dir(n)] || taken[filepath.Dir(filepath.Dir(n))] {
				continue
			}
			if n == "d" && content != "3" { // mostly a folder
				continue
			}
			taken[n] = n != "d/e"
			nodes = append(nodes, n+"="+content)
		}
		return nodes
	}
	rapid.Check(t, func(rt *rapid.T) {
		base, here, there := draw(rt, "base"), draw(rt, "here"), draw(rt, "there")
		s := newSides(t, append([]string{}, base...), here, there)
		s.sync(t, false)
		after := tree(t, s.here)
		for _, node := range here {
			if !slices.Contains(base, node) && !slices.Contains(after, node) {
				rt.Fatalf("%q was changed here and is lost: %q", node, after)
			}
		}
		for _, node := range after {
			if !strings.HasSuffix(node, "/") && !slices.Contains(here, node) && !slices.Contains(there, node) {
				rt.Fatalf("%q comes from nowhere", node)
			}
		}
		if r := s.sync(t, false); len(r.Written)+len(r.Deleted) > 0 {
			rt.Fatalf("a second run changed %+v", r)
		}
	})
}

func TestAFileThatChangesAtTheLastMomentIsKept(t *testing.T) {
	t.Parallel()
	dir := grow(t, t.TempDir(), "a=1")
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	s := &syncer{ctx: t.Context(), root: root}
	before, had, err := s.look("a")
	must(t, err)
	err = s.place(root, "a", before, had, func(temp string) error {
		grow(t, dir, "a=saved just now")
		return root.WriteFile(temp, []byte("there"), 0o600)
	})
	if !errors.Is(err, errMoved) {
		t.Errorf("got %v", err)
	}
	if d := cmp.Diff([]string{"a=saved just now"}, tree(t, dir)); d != "" {
		t.Error(d)
	}
}

// What one side's file system does not take stops nothing else.
func TestWhatThisSideDoesNotTakeIsReportedAndTheRestComesBack(t *testing.T) {
	t.Parallel()
	s := newSides(t, []string{"k=1", "gone=1"}, []string{"k=1", "gone=1"}, []string{"k=2", "d/x=1", "z=1"})
	must(t, os.Mkdir(filepath.Join(s.here, syncTemp("z")), 0o755))
	must(t, os.WriteFile(filepath.Join(s.here, syncTemp("z"), "x"), nil, 0o600)) // cannot be removed to make room
	r := s.sync(t, false)
	if d := cmp.Diff([]string{"z"}, pathsOf(r.Refused)); d != "" || r.Clean() {
		t.Errorf("%s, %+v", d, r)
	}
	if d := cmp.Diff([]string{"d", "d/x", "k"}, r.Written); d != "" {
		t.Error(d)
	}
	for _, e := range r.Base.Entries {
		if e.Path == "z" {
			t.Error("what was not brought back is taken for known")
		}
	}
}

func TestWhatCouldNotBeReadThereIsNotDeletedHere(t *testing.T) {
	t.Parallel()
	before := []string{"a=1", "d/b=1", "gone=1", "k=1"}
	s := newSides(t, before, before, []string{"k=2"})
	r, err := SyncBack(t.Context(), s.here, s.base, section(s.stream), SyncOptions{SpoolDir: s.spool, Missing: []string{"a", "d"}})
	must(t, err)
	if d := cmp.Diff([]string{"a=1", "d/", "d/b=1", "k=2"}, tree(t, s.here)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"a", "d"}, pathsOf(r.Refused)); d != "" {
		t.Error(d)
	}
	s = newSides(t, before, before, []string{"k=2"})
	r, err = SyncBack(t.Context(), s.here, s.base, section(s.stream), SyncOptions{SpoolDir: s.spool, Incomplete: true})
	must(t, err)
	if d := cmp.Diff([]string{"a=1", "d/", "d/b=1", "gone=1", "k=2"}, tree(t, s.here)); d != "" {
		t.Error(d)
	}
	// The next transfer has all again, and what was deleted there is known for it.
	s.base = &r.Base
	s.stream, _ = packed(t, grow(t, t.TempDir(), "a=2", "d/b=1", "k=2"))
	if r = s.sync(t, false); !r.Clean() {
		t.Errorf("%+v", r)
	}
	if d := cmp.Diff([]string{"a=2", "d/", "d/b=1", "k=2"}, tree(t, s.here)); d != "" {
		t.Error(d)
	}
}

func TestOddNamesHolesAndFurtherNamesComeBack(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux: names of any bytes, and holes")
	}
	there := grow(t, t.TempDir(), "l\nb=1", "caf\xe9=2", "\xff/\x01=3", "to->caf\xe9", "big="+strings.Repeat("x", 100))
	must(t, os.Truncate(filepath.Join(there, "l\nb"), 1<<40))
	for i := range 5 {
		must(t, os.Link(filepath.Join(there, "big"), filepath.Join(there, fmt.Sprint("big", i))))
	}
	root, err := os.OpenRoot(there)
	must(t, err)
	defer root.Close()
	var b bytes.Buffer
	want, err := tarstream.Pack(t.Context(), &b, root, tarstream.Options{HardLinks: true})
	must(t, err)
	s := sides{here: t.TempDir(), stream: b.Bytes(), spool: t.TempDir(), base: &tarstream.Manifest{}}
	if r := s.sync(t, false); !r.Clean() {
		t.Errorf("%+v", r)
	}
	here, err := os.OpenRoot(s.here)
	must(t, err)
	defer here.Close()
	got, err := tarstream.Pack(t.Context(), io.Discard, here, tarstream.Options{HardLinks: true})
	must(t, err)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if r := s.sync(t, false); len(r.Written) > 0 {
		t.Errorf("a second run wrote %q", r.Written)
	}
}
