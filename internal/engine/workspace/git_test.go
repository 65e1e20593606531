package workspace

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// origin is a repository with two commits on main, a branch, and tags.
func origin(t *testing.T) (dir, first, second string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "repo.git")
	must(t, os.Mkdir(dir, 0o755))
	git(t, dir, "init", "-q", "-b", "main")
	grow(t, dir, "a=one\r\n", ".gitattributes=* text eol=lf\na export-ignore\nlfs filter=evil\n",
		"lfs=version https://git-lfs.github.com/spec/v1\n")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "1")
	first = git(t, dir, "rev-parse", "HEAD")
	git(t, dir, "tag", "-a", "-m", "t", "v1")
	git(t, dir, "branch", "feature/x")
	grow(t, dir, "a=two\n", "bin/run!=#!/bin/sh\n", "l->bin/run", "abs->/etc/passwd", "sp ace/é=u")
	git(t, dir, "add", "-A")
	git(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+first+",sub")
	git(t, dir, "commit", "-q", "-m", "2")
	second = git(t, dir, "rev-parse", "HEAD")
	return dir, first, second
}

func TestAGitRefArrivesByteForByteAsCommitted(t *testing.T) {
	t.Parallel()
	dir, first, second := origin(t)
	url := "file://" + dir
	spoolDir := t.TempDir()
	for ref, want := range map[string]string{
		"": second, "HEAD": second, "main": second, "v1": first, "feature/x": first, "refs/heads/main": second, "refs/tags/v1": first,
		first: first, second: second, first[:8]: first, second[:12]: second,
	} {
		s, err := Open(t.Context(), url, ref, Options{SpoolDir: spoolDir})
		if err != nil {
			t.Errorf("%q: %v", ref, err)
			continue
		}
		if s.commit != want || s.Origin() != url+"@"+want {
			t.Errorf("%q: commit %q, origin %q", ref, s.commit, s.Origin())
		}
		got := tree(t, unpacked(t, s))
		if want == second {
			w := []string{".gitattributes=* text eol=lf\na export-ignore\nlfs filter=evil\n", "a=two\n", "abs->/etc/passwd", "bin/",
				"bin/run!=#!/bin/sh\n", "l->bin/run",
				"lfs=version https://git-lfs.github.com/spec/v1\n", "sp ace/", "sp ace/é=u", "sub/"}
			if d := cmp.Diff(w, got); d != "" {
				t.Errorf("%q: %s", ref, d)
			}
			if skipped := s.Manifest().Skipped; len(skipped) != 1 || skipped[0].Path != "sub" {
				t.Errorf("the submodule is not reported: %v", skipped)
			}
		}
		must(t, s.Close())
		if resolved, err := resolveRef(t.Context(), url, ref); err != nil || resolved != want {
			t.Errorf("resolveRef(%q) = %q, %v", ref, resolved, err)
		}
	}
	if left, _ := os.ReadDir(spoolDir); len(left) != 0 {
		t.Errorf("the spool holds %v", left)
	}
}

func TestANameWithALineBreakIsCarried(t *testing.T) {
	t.Parallel()
	dir, _, _ := origin(t)
	grow(t, dir, "d/Icon\r=1", "x\ny/z=1", "zz=1")
	git(t, dir, "add", "d", "zz", "x\ny")
	git(t, dir, "commit", "-q", "-m", "3")
	s, err := Open(t.Context(), "file://"+dir, "", Options{SpoolDir: t.TempDir()})
	must(t, err)
	defer s.Close()
	// the submodule
	if got := tree(t, unpacked(t, s)); !slices.Contains(got, "d/Icon\r=1") || !slices.Contains(got, "x\ny/z=1") ||
		len(s.Manifest().Skipped) != 1 {
		t.Errorf("%q, skipped %v", got, s.Manifest().Skipped)
	}
}

func TestAnUnadvertisedShortCommitIsFoundInTheHistory(t *testing.T) {
	t.Parallel()
	dir, first, _ := origin(t)
	git(t, dir, "tag", "-d", "v1")
	git(t, dir, "branch", "-D", "feature/x")
	s, err := Open(t.Context(), "file://"+dir, first[:10], Options{SpoolDir: t.TempDir()})
	must(t, err)
	defer s.Close()
	if s.commit != first {
		t.Errorf("commit %q", s.commit)
	}
	if _, err := resolveRef(t.Context(), "file://"+dir, first[:10]); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("ResolveRef: %v", err)
	}
}

func TestHistoryComesWithoutHooksAndCredentials(t *testing.T) {
	t.Parallel()
	dir, first, second := origin(t)
	for ref, branch := range map[string]string{"": "main", "feature/x": "feature/x", "v1": "", first: ""} {
		s, err := Open(t.Context(), "file://"+dir, ref, Options{SpoolDir: t.TempDir(), FullHistory: true})
		must(t, err)
		work := unpacked(t, s)
		must(t, s.Close())
		if got := git(t, work, "rev-parse", "HEAD"); got != s.commit {
			t.Errorf("%q: HEAD is %s", ref, got)
		}
		if got := git(t, work, "branch", "--show-current"); got != branch {
			t.Errorf("%q: on branch %q", ref, got)
		}
		git(t, work, "cat-file", "-e", second)
		git(t, work, "fsck", "--no-dangling")
		if got := git(t, work, "-c", "core.autocrlf=false", "diff", "--name-only", "HEAD"); got != "" && ref == "" {
			t.Errorf("%q: changed at once: %s", ref, got)
		}
		if _, err := os.Stat(filepath.Join(work, ".git/hooks")); err == nil {
			t.Error("hooks came along")
		}
	}
}

func TestWhatGitCannotGiveIsClassified(t *testing.T) {
	t.Parallel()
	dir, _, _ := origin(t)
	spoolDir := t.TempDir()
	for name, c := range map[string]struct {
		repo, ref string
		kind      extensions.Kind
	}{
		"no repository": {"file://" + t.TempDir(), "", extensions.KindInvalid},
		"no branch":     {"file://" + dir, "nope", extensions.KindInvalid},
		"no commit":     {"file://" + dir, strings.Repeat("ab", 20), extensions.KindInvalid},
		"no short one":  {"file://" + dir, "abcdef12", extensions.KindInvalid},
		"no host":       {"https://127.0.0.1:1/r.git", "", extensions.KindUnreachable},
	} {
		_, err := Open(t.Context(), c.repo, c.ref, Options{SpoolDir: spoolDir})
		if !extensions.IsKind(err, c.kind) || extensions.RemedyOf(err) == "" {
			t.Errorf("%s: got %v (%s)", name, err, extensions.KindOf(err))
		}
	}
	for name, o := range map[string]Options{"entries": {MaxEntries: 2}, "bytes": {MaxBytes: 10}} {
		o.SpoolDir = spoolDir
		if _, err := Open(t.Context(), "file://"+dir, "", o); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if left, _ := os.ReadDir(spoolDir); len(left) != 0 {
		t.Errorf("the spool holds %v", left)
	}
}

func TestATreeThatPosesAsGitIsRefused(t *testing.T) {
	t.Parallel()
	dir, _, _ := origin(t)
	blob := git(t, dir, "hash-object", "-w", "a")
	list := filepath.Join(t.TempDir(), "list")
	for _, name := range []string{".git", ".GIT", "git~1", ".git ", ".g\u200cit"} {
		must(t, os.WriteFile(list, fmt.Appendf(nil, "100644 blob %s\t%s\n", blob, name), 0o600))
		tree := git(t, dir, "-c", "core.protectNTFS=false", "-c", "core.protectHFS=false", "hash-object", "-t", "tree", "-w", "--literally",
			rawTree(t, blob, name))
		git(t, dir, "update-ref", "refs/heads/evil", git(t, dir, "commit-tree", "-m", "e", tree))
		_, err := Open(t.Context(), "file://"+dir, "evil", Options{SpoolDir: t.TempDir()})
		if !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

// rawTree writes a tree object's content that git's own commands refuse to make.
func rawTree(t *testing.T, blob, name string) string {
	t.Helper()
	var raw []byte
	_, err := fmt.Sscanf(blob, "%x", &raw)
	must(t, err)
	at := filepath.Join(t.TempDir(), "tree")
	must(t, os.WriteFile(at, append([]byte("100644 "+name+"\x00"), raw...), 0o600))
	return at
}

// Over TLS with a password: it reaches the server, and no argument list,
// message, or stream.
func TestCredentialsReachTheServerAndNothingElse(t *testing.T) {
	dir, _, second := origin(t)
	const canary = "CANARY-p%40ss"
	backend := &cgi.Handler{
		Path: filepath.Join(git(t, dir, "--exec-path"), "git-http-backend"), Root: "/",
		Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(dir), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=" + os.DevNull},
	}
	if _, err := os.Stat(backend.Path); err != nil {
		t.Skip("git has no http-backend here")
	}
	var leaks []string
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, pass, _ := r.BasicAuth(); user != "me" || pass != "CANARY-p@ss" {
			w.Header().Set("WWW-Authenticate", `Basic realm="r"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, p := range all {
			if b, _ := os.ReadFile(p); strings.Contains(string(b), "CANARY-p") {
				leaks = append(leaks, p)
			}
		}
		backend.ServeHTTP(w, r)
	}))
	defer srv.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate(srv.Certificate())}), 0o600))
	t.Setenv("GIT_SSL_CAINFO", ca)
	host := strings.TrimPrefix(srv.URL, "https://")
	s, err := Open(t.Context(), "https://me:"+canary+"@"+host+"/repo.git", "main", Options{SpoolDir: t.TempDir(), FullHistory: true})
	must(t, err)
	defer s.Close()
	if s.commit != second || s.Origin() != srv.URL+"/repo.git@"+second || len(leaks) > 0 {
		t.Errorf("commit %q, origin %q, leaked into %v", s.commit, s.Origin(), leaks)
	}
	for _, node := range tree(t, unpacked(t, s)) {
		if strings.Contains(node, "CANARY-p") {
			t.Errorf("the stream carries the password in %.80q", node)
		}
	}
	for _, repo := range []string{"https://me:CANARY-wrong@" + host + "/repo.git", "https://CANARY-token@" + host + "/repo.git", srv.URL +
		"/repo.git"} {
		_, err = Open(t.Context(), repo, "main", Options{SpoolDir: t.TempDir()})
		if !extensions.IsKind(err, extensions.KindUnauthorized) || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("without the password: %v", err)
		}
	}
}

func certificate(c *x509.Certificate) []byte { return c.Raw }

// resolveRef returns the full commit that ref of a git repository stands for
// now, and "" for a folder. A name costs one ls-remote; a full commit costs
// nothing and is not proved to exist; a short commit that no branch or tag
// points at is KindInvalid here, while Open finds it by fetching the history.
func resolveRef(ctx context.Context, repo, ref string) (string, error) {
	loc, err := parse(repo, ref)
	if err != nil || loc.folder != "" {
		return "", err
	}
	res, err := resolve(ctx, loc, ref)
	if err == nil && res.commit == "" {
		return "", noSuchRef(loc, ref)
	}
	return res.commit, err
}
