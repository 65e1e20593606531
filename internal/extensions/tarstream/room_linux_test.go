package tarstream

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestManySmallFilesDoNotFillADisk(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root: a small disk of its own")
	}
	disk := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64m,mode=0700", "tmpfs", disk).CombinedOutput(); err != nil {
		t.Skipf("needs a mount of its own: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", disk).Run() })

	var files []header
	for i := range 70 {
		files = append(files, file(fmt.Sprint(i), strings.Repeat("x", 1<<20)))
	}
	b := stream(t, files...)
	c, err := Index(t.Context(), io.NewSectionReader(strings.NewReader(b.String()), 0, int64(b.Len())), Options{})
	must(t, err)
	refused := 0
	for _, e := range c.Entries {
		to, err := os.Create(filepath.Join(disk, e.Path))
		must(t, err)
		err = c.CopyTo(to, e.Path)
		must(t, to.Close())
		if err == nil && refused == 0 {
			continue
		}
		if refused++; !extensions.IsKind(err, extensions.KindExhausted) {
			t.Fatalf("%s: got %v", e.Path, err)
		}
	}
	f, err := os.Open(disk)
	must(t, err)
	defer f.Close()
	if free, total, _ := roomOf(f); refused == 0 || free < total/reservedShare {
		t.Errorf("%d files were refused, and %d of %d bytes are free", refused, free, total)
	}
}
