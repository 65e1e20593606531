package workspace

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// linksTo is a stream of the file first and further names of it.
func linksTo(t *testing.T, first string, names ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: first, Mode: 0o644, Size: 5}))
	_, err := w.Write([]byte("there"))
	must(t, err)
	for _, n := range names {
		must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeLink, Name: n, Linkname: first}))
	}
	must(t, w.Close())
	return b.Bytes()
}

// Whatever becomes of a file's first name, its other names take the room of one.
func TestNamesOfOneFileComeBackAsOneFile(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprint("f", i))
	}
	slices.Sort(names)
	for name, c := range map[string]struct {
		first string
		here  []string
		files int
	}{
		"brought back":               {"a", nil, 1},
		"refused":                    {".git/hooks/a", nil, 1},
		"ignored":                    {"ignored", []string{".sandboxerignore=ignored\n"}, 1},
		"in conflict":                {"a", []string{"a=here"}, 1},
		"after its links":            {"z", nil, 1},
		"some are here":              {".git/hooks/a", []string{"f3=there"}, 2},
		"below what is not a folder": {"d/a", []string{"d=here"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sides{here: grow(t, t.TempDir(), c.here...), base: &tarstream.Manifest{}, stream: linksTo(t, c.first, names...), spool: t.TempDir()}
			s.sync(t, false)
			var files []os.FileInfo // one of each
			for _, n := range names {
				info, err := os.Lstat(filepath.Join(s.here, n))
				must(t, err)
				if b, err := os.ReadFile(filepath.Join(s.here, n)); string(b) != "there" {
					t.Errorf("%s: %q, %v", n, b, err)
				}
				if !slices.ContainsFunc(files, func(f os.FileInfo) bool { return os.SameFile(f, info) }) {
					files = append(files, info)
				}
			}
			if len(files) != c.files {
				t.Errorf("%d names became %d files", len(names), len(files))
			}
			if c.first != "z" {
				return
			}
			if z, err := os.Lstat(filepath.Join(s.here, "z")); err != nil || !os.SameFile(z, files[0]) {
				t.Errorf("the first name is a file of its own: %v", err)
			}
		})
	}
}
