package docker

import (
	"archive/tar"
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestAStreamComesBackFromItsPieces(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, pieceSize - 1, pieceSize, pieceSize + 1, 2*pieceSize + 7} {
		want := bytes.Repeat([]byte("0123456789abcdef\x00"), size/17+1)[:size]
		var kept bytes.Buffer
		must(t, cut(&kept, func(w io.Writer) error {
			_, err := io.Copy(w, io.MultiReader(bytes.NewReader(want[:size/3]), bytes.NewReader(want[size/3:])))
			return err
		}))
		got, err := io.ReadAll(&joined{in: tar.NewReader(&kept)})
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("of %d bytes %d came back, %v", size, len(got), err)
		}
	}
}

func TestAStreamIsBounded(t *testing.T) {
	t.Parallel()
	c := &cutter{out: tar.NewWriter(io.Discard), size: maxKept - 1}
	if _, err := c.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if _, err := c.Write([]byte("x")); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("%v", err)
	}
}

func TestPiecesOfSomethingElseAreRefused(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{{"pieces/00000001"}, {"pieces/00000000", "pieces/00000002"}, {"pieces/../00000000"}, {"etc/passwd"}} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, n := range names {
			must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: n, Size: 1}))
			_, err := w.Write([]byte("x"))
			must(t, err)
		}
		must(t, w.Close())
		if _, err := io.Copy(io.Discard, &joined{in: tar.NewReader(&b)}); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s: %v", strings.Join(names, " "), err)
		}
	}
}

func TestALabelIsNoInstruction(t *testing.T) {
	t.Parallel()
	const want = `"a\"b\\c\$d RUN x"`
	if got := quoted("a\"b\\c$d\nRUN x"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
