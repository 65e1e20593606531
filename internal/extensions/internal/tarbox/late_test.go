package tarbox

import (
	"archive/tar"
	"bytes"
	"testing"
	"time"
)

// What the script says and what it sends come by two streams: the archive's
// beginning may be there first.
func TestWhatIsSaidOfAnArchiveMayComeAfterIt(t *testing.T) {
	t.Parallel()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "side/", Mode: 0o755}))
	must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "side/f", Mode: 0o644}))
	must(t, w.Close())
	for what, late := range map[string]bool{"in time": false, "late": true} {
		var out bytes.Buffer
		taking := newTaking(t.Context(), &out)
		heard := newBeginning()
		if !late {
			offer(heard.first, true)
		}
		read := make(chan error, 1)
		go func() { read <- taking.read(bytes.NewReader(archive.Bytes()), heard.copied) }()
		if late {
			time.Sleep(50 * time.Millisecond)
			offer(heard.first, true)
		}
		close(heard.ended)
		must(t, <-read)
		must(t, taking.close())
		h, err := tar.NewReader(&out).Next()
		must(t, err)
		if h.Name != "f" {
			t.Errorf("%s: the archive holds %q", what, h.Name)
		}
	}
}

// A script that ends without a word is not waited for.
func TestAnArchiveOfAScriptThatSaysNothingIsRead(t *testing.T) {
	t.Parallel()
	taking := newTaking(t.Context(), &bytes.Buffer{})
	heard := newBeginning()
	close(heard.ended)
	must(t, taking.read(bytes.NewReader(newTar(t, entry{name: "f", body: "x", mode: 0o644})), heard.copied))
}
