package tarbox_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/tarbox"
)

func TestFilesArePackedAsTheyAreRead(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 1<<19) // more than stays in memory
	packed := tarbox.Packed(execwire.File{Path: "/a/b", Content: strings.NewReader("text")},
		execwire.File{Path: "/c", Content: strings.NewReader(long)})
	defer func() { _ = packed.Close() }()
	zip, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for from := tar.NewReader(zip); ; {
		h, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(from)
		if err != nil || h.Mode != 0o600 {
			t.Errorf("%s: mode %o, %v", h.Name, h.Mode, err)
		}
		got[h.Name] = string(text)
	}
	if !maps.Equal(got, map[string]string{"a/b": "text", "c": long}) {
		t.Errorf("%d files", len(got))
	}
}

// A source that breaks breaks the archive, so that nobody takes half of it for the whole.
func TestABrokenFileBreaksItsArchive(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	packed := tarbox.Packed(execwire.File{Path: "/a", Content: iotest.ErrReader(broken)})
	defer func() { _ = packed.Close() }()
	if _, err := io.ReadAll(packed); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}
