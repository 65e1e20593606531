package tarbox

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// passedOn is what a download makes of an archive that a container sent.
func passedOn(t testing.TB, taking *taking, out *bytes.Buffer, archive []byte) []tar.Header {
	t.Helper()
	must(t, taking.read(bytes.NewReader(archive), notCopied))
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
	must(t, refill(t.Context(), bytes.NewReader(archive), &up, Form{}))
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

// What lies deeper than a path may be long here, and one more name of it, are
// named; the rest is passed on.
func TestWhatLiesTooDeepIsNamedAndTheRestComes(t *testing.T) {
	t.Parallel()
	edge := strings.Repeat("d/", tarstream.DefaultMaxDepth)
	long := strings.Repeat("n", tarstream.MaxNameBytes+1)
	var archive, out bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeDir, Name: edge, Mode: 0o755}, {Typeflag: tar.TypeDir, Name: edge + "e/"},
		{Typeflag: tar.TypeReg, Name: edge + "e/f"}, {Typeflag: tar.TypeReg, Name: edge + "g/h"}, {Typeflag: tar.TypeReg, Name: long},
		{Typeflag: tar.TypeLink, Name: "second", Linkname: edge + "e/f"}, {Typeflag: tar.TypeReg, Name: "z"},
	} {
		must(t, w.WriteHeader(&h))
	}
	must(t, w.Close())
	taking := newTaking(t.Context(), &out)
	got := passedOn(t, taking, &out, archive.Bytes())
	if len(got) != 2 || got[0].Name != edge || got[1].Name != "z" {
		t.Errorf("%d entries came", len(got))
	}
	var lacks *extensions.Incomplete
	if err := taking.incomplete(); !errors.As(err, &lacks) || lacks.More ||
		!slices.Equal(lacks.Paths, []string{edge + "e", edge + "g", long, "second"}) {
		t.Errorf("it says %.300v", err)
	}
}
