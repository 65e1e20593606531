package spool_test

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/spool"
)

func TestWhatIsWrittenIsReadAndNothingIsLeft(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir)
	for _, size := range []int{0, 1, spool.Short, spool.Short + 1, 3*spool.Short + 7} {
		want := bytes.Repeat([]byte("abcdefg"), size/7+1)[:size]
		var s spool.Spool
		if _, err := io.CopyBuffer(&s, struct{ io.Reader }{bytes.NewReader(want)}, make([]byte, 1000)); err != nil || s.Size != int64(size) {
			t.Fatalf("%d of %d: %v", s.Size, size, err)
		}
		r, err := s.Reader()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes of %d: %v", len(got), size, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
}
