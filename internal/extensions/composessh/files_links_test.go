package composessh

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// passedOn is what a download makes of an archive that a container sent.
func passedOn(t testing.TB, taking *taking, out *bytes.Buffer, archive []byte) []tar.Header {
	t.Helper()
	heard := &hearing{first: make(chan said, 1), ended: make(chan struct{})}
	close(heard.ended)
	must(t, taking.read(bytes.NewReader(archive), heard))
	must(t, taking.close())
	return headers(t, out)
}

func headers(t testing.TB, in io.Reader) []tar.Header {
	t.Helper()
	var all []tar.Header
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		must(t, err)
		all = append(all, *h)
	}
}

// Archivers write one more name of a symbolic link as a hard link to it.
func TestOneMoreNameOfALinkIsALinkToTheSame(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.Symlink("some/where", filepath.Join(dir, "b")))
	if err := os.Link(filepath.Join(dir, "b"), filepath.Join(dir, "c")); err != nil {
		t.Skipf("no hard links to links here: %v", err)
	}
	must(t, os.Link(filepath.Join(dir, "b"), filepath.Join(dir, "d")))
	cmd := exec.CommandContext(t.Context(), "tar", "-cf", "-", "b", "c", "d")
	cmd.Dir = dir
	archive, err := cmd.Output()
	must(t, err)
	if sent := headers(t, bytes.NewReader(archive)); sent[2].Typeflag != tar.TypeLink {
		t.Skipf("this tar writes it as type %c", sent[2].Typeflag)
	}
	var down, up bytes.Buffer
	ways := map[string][]tar.Header{"out": passedOn(t, newTaking(t.Context(), &down), &down, archive)}
	must(t, refill(t.Context(), bytes.NewReader(archive), &up, form{}))
	ways["in"] = headers(t, &up)
	for way, got := range ways {
		if len(got) != 3 {
			t.Errorf("%s: %d entries", way, len(got))
		}
		for _, h := range got {
			if h.Typeflag != tar.TypeSymlink || h.Linkname != "some/where" {
				t.Errorf("%s: %s is of type %c to %q", way, h.Name, h.Typeflag, h.Linkname)
			}
		}
	}
}
