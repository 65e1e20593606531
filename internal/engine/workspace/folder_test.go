package workspace

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestAFolderIsPackedAsItsIgnoreFileSays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ nodes, want []string }{
		"nothing ignored": {[]string{".git/HEAD=x", "a!=1"}, []string{".git/", ".git/HEAD=x", "a!=1"}},
		"docker's file": {[]string{".dockerignore=*.log\n", "a.log=1", "d/b.log=2", "c=3"},
			[]string{".dockerignore=*.log\n", "c=3", "d/", "d/b.log=2"}},
		"ours before docker's": {[]string{".dockerignore=c", ".sandboxerignore=# comment\n.dockerignore\n.sandboxerignore\n**/*.log\n", "a.log=1",
			"d/b.log=2", "c=3"},
			[]string{"c=3", "d/"}},
		"negation below a folder": {[]string{".sandboxerignore=mods\n!mods/keep\n.sandboxerignore", "mods/x/y=1", "mods/keep/z=2", "a=3"},
			[]string{"a=3", "mods/", "mods/keep/", "mods/keep/z=2"}},
		"negation with wildcard": {[]string{".sandboxerignore=*\n!**/*.go", "x/y/a.go=1", "x/y/b.c=2", "empty/"},
			[]string{"x/", "x/y/", "x/y/a.go=1"}},
		"leading slash": {[]string{".sandboxerignore=/a\n.sandboxerignore", "a=1", "d/a=2"}, []string{"d/", "d/a=2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, spoolDir := grow(t, t.TempDir(), c.nodes...), filepath.Join(t.TempDir(), "spool")
			s, err := Open(t.Context(), dir, "main", Options{SpoolDir: spoolDir})
			must(t, err)
			if d := cmp.Diff(c.want, tree(t, unpacked(t, s))); d != "" {
				t.Error(d)
			}
			if s.commit != "" || s.Origin() != dir {
				t.Errorf("origin %q, commit %q", s.Origin(), s.commit)
			}
			must(t, s.Close())
			if left := tree(t, spoolDir); len(left) != 0 {
				t.Errorf("the spool holds %q", left)
			}
		})
	}
}

func TestASourceCanBeReadTwiceAndEndsWithClose(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), grow(t, t.TempDir(), "a=1"), "", Options{SpoolDir: t.TempDir()})
	must(t, err)
	for range 2 {
		r, err := s.Open(t.Context())
		must(t, err)
		b, err := io.ReadAll(r)
		if err != nil || int64(len(b)) != s.Size() {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	}
	r, err := s.Open(t.Context())
	must(t, err)
	must(t, s.Close())
	if _, err := io.ReadAll(r); err == nil {
		t.Error("a closed source can still be read")
	}
}

func TestUnusableSourcesAreNamedWithoutNetwork(t *testing.T) {
	t.Parallel()
	dir := grow(t, t.TempDir(), "file=1", "bad/.sandboxerignore=[", "link/.dockerignore->../file", "ok/a=1")
	for repo, ok := range map[string]bool{
		"": true, filepath.Join(dir, "ok"): true, "https://user:CANARY@example.com/r.git": true, "ssh://git@example.com:22/r": true,
		"git@example.com:o/r.git": true, "example.com:r": true, "file:///srv/r.git": true,

		filepath.Join(dir, "none"): false, filepath.Join(dir, "file"): false, filepath.Join(dir, "bad"): false, filepath.Join(dir, "link"): false,
		"https://": false, "https://host": false, "https:///path": false, "https://user:CANARY@ho st/x": false,
		"https://user:CANARY@host/x?y": false,
		"http://example.com/r":         false, "git://example.com/r": false, "ext::sh -c CANARY": false, "ext::CANARY": false, "ext::sh://x": false,
		"fd::17":             false,
		"-oProxyCommand=x:y": false, "--upload-pack=x": false, "ssh://-oProxyCommand=x/y": false, "ssh://u:CANARY@host/x": false,
		"-x@host:y": false,
		"a\nb":      false, "a\x00b": false, "file://host/x": false, "file://relative": false, "ssh://git@/x": false,
	} {
		err := Check(repo, "main")
		if ok != (err == nil) {
			t.Errorf("%q: got %v", repo, err)
		}
		if err == nil {
			continue
		}
		if !extensions.IsKind(err, extensions.KindInvalid) || extensions.RemedyOf(err) == "" || strings.Contains(err.Error(), "CANARY") ||
			strings.ContainsAny(err.Error(), "\n\x00") {
			t.Errorf("%q: got %v, remedy %q", repo, err, extensions.RemedyOf(err))
		}
	}
	for _, ref := range []string{"-x", "a b", "a..b", "a~1", "a^", "a:b", "a*", "@{u}", "@", "/a", "a/", "a//b", ".a", "a/.b", "a.lock", "a.",
		"a\nb", "a\\b", strings.Repeat("a", 300)} {
		if err := Check("https://example.com/r", ref); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("ref %q: got %v", ref, err)
		}
	}
	for _, ref := range []string{"", "main", "feature/x", "v1.2.3", "refs/heads/x", "HEAD", strings.Repeat("a", 40), "héé"} {
		if err := Check("https://example.com/r", ref); err != nil {
			t.Errorf("ref %q: %v", ref, err)
		}
	}
}

func TestLimitsHoldAndNothingStays(t *testing.T) {
	t.Parallel()
	dir, spoolDir := grow(t, t.TempDir(), "a=12345", "b=12345"), t.TempDir()
	for name, o := range map[string]Options{"bytes": {MaxBytes: 9}, "entries": {MaxEntries: 1}} {
		o.SpoolDir = spoolDir
		if _, err := Open(t.Context(), dir, "", o); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if left, _ := os.ReadDir(spoolDir); len(left) != 0 {
		t.Errorf("the spool holds %v", left)
	}
}
