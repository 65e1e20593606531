package tarstream

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// node is one object of a test tree: "dir/", "file=content" or "link->target".
func makeTree(t *testing.T, nodes ...string) *os.Root {
	t.Helper()
	dir := t.TempDir()
	for _, n := range nodes {
		switch {
		case strings.Contains(n, "->"):
			name, target, _ := strings.Cut(n, "->")
			must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
			must(t, os.Symlink(target, filepath.Join(dir, name)))
		case strings.HasSuffix(n, "/"):
			must(t, os.MkdirAll(filepath.Join(dir, n), 0o755))
		default:
			name, content, _ := strings.Cut(n, "=")
			must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
			must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
		}
	}
	return openRoot(t, dir)
}

func openRoot(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	must(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// listing shows a tree as makeTree takes it, sorted, folders included.
func listing(t *testing.T, root *os.Root) []string {
	t.Helper()
	var out []string
	must(t, filepath.WalkDir(root.Name(), func(p string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root.Name(), p)
		switch {
		case err != nil || rel == ".":
			return err
		case d.IsDir():
			out = append(out, rel+"/")
		case d.Type() == fs.ModeSymlink:
			target, _ := os.Readlink(p)
			out = append(out, rel+"->"+target)
		default:
			b, _ := os.ReadFile(p)
			out = append(out, rel+"="+string(b))
		}
		return nil
	}))
	return out
}

type header struct {
	tar.Header
	body string
}

func file(name, body string) header {
	return header{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(body))}, body}
}

func dir(name string) header {
	return header{Header: tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}}
}

func link(name, target string) header {
	return header{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}}
}

func special(name string, flag byte) header {
	return header{Header: tar.Header{Typeflag: flag, Name: name, Linkname: "a", Mode: 0o600}}
}

func stream(t testing.TB, headers ...header) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if err := w.WriteHeader(&h.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(h.body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}
