package composessh

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestAnyNameGoesInAndComesOut(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.several(t, b, "web")
	names := []string{"line\nbreak", "caf\xe9", "\xff\xfe", "\x01", "back\\slash", "*?["}
	var up []entry
	want := map[string]string{}
	for _, n := range names {
		up = append(up, entry{name: n, body: n, mode: 0o644}, entry{name: "l" + n, link: "to " + n})
		want[n], want["l"+n] = n, "-> to "+n
	}
	must(t, b.Upload(t.Context(), h, "odd", bytes.NewReader(newTar(t, up...))))
	wantFiles(t, "what came back", taken(t, b, h, "odd"), want)
}

// What the archiver in the container cannot read is told, and the rest comes.
func TestADownloadTellsWhatItLacks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.several(t, b, "web")
	r := run(t, b, h, extensions.ExecRequest{User: "0",
		Shell: "mkdir -p /tmp/lacks/d && cd /tmp/lacks && echo 1 >a && echo 2 >d/shut && echo 3 >z && chmod 0 d/shut && chown 4242 . && chmod " +
			"0755 . d"})
	if r.ExitCode != 0 {
		t.Fatalf("%s", r.Stderr)
	}
	who := run(t, b, h, extensions.ExecRequest{Shell: "cat /tmp/lacks/d/shut"})
	var out bytes.Buffer
	err := b.Download(t.Context(), h, "/tmp/lacks", &out)
	if who.ExitCode == 0 {
		must(t, err) // the container's user reads all
		return
	}
	var lacks *extensions.Incomplete
	if !errors.As(err, &lacks) || !lacks.More || !strings.Contains(err.Error(), "shut") {
		t.Fatalf("got %v", err)
	}
	names := map[string]bool{}
	for tr := tar.NewReader(&out); ; {
		e, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		names[e.Name] = true
	}
	if !names["a"] || !names["z"] || names["d/shut"] {
		t.Errorf("it holds %v", names)
	}
}

// An archiver without sparse files would write a hole out, zero by zero.
func TestHolesDoNotComeOutAsZeros(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.several(t, b, "web")
	r := run(t, b, h, extensions.ExecRequest{Shell: "mkdir -p holes/d && cd holes && echo 1 >a && truncate -s 1024G 'd/h *'"})
	if r.ExitCode != 0 {
		t.Fatalf("%s", r.Stderr)
	}
	var out bytes.Buffer
	err := b.Download(t.Context(), h, "holes", &out)
	var lacks *extensions.Incomplete
	if !errors.As(err, &lacks) || !lacks.More || !strings.Contains(err.Error(), "h *") {
		t.Fatalf("got %v", err)
	}
	if out.Len() > 1<<20 {
		t.Errorf("%d bytes came", out.Len())
	}
}

// As many holes as may go in come out, as zeros.
func TestHolesThatFitComeOutAsZeros(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.several(t, b, "web")
	const size = 513 << 20
	r := run(t, b, h, extensions.ExecRequest{Shell: fmt.Sprintf("mkdir -p fit/d/empty && cd fit && truncate -s %d d/db && truncate -s 1024G "+
		"larger && echo 1 >a", size)})
	if r.ExitCode != 0 {
		t.Fatalf("%s", r.Stderr)
	}
	in, out := io.Pipe()
	defer in.Close()
	ended := make(chan error, 1)
	go func() {
		ended <- b.Download(t.Context(), h, "fit", out)
		_ = out.Close()
	}()
	got := headers(t, in)
	_, _ = io.Copy(io.Discard, in)
	err := <-ended
	var lacks *extensions.Incomplete
	if !errors.As(err, &lacks) || !strings.Contains(err.Error(), "larger") || strings.Contains(err.Error(), "d/db") {
		t.Errorf("it says %v", err)
	}
	sizes := map[string]int64{}
	for _, h := range got {
		sizes[h.Name] = h.Size
	}
	if sizes["d/db"] != size || sizes["a"] != 2 || sizes["larger"] != 0 {
		t.Errorf("it holds %v", sizes)
	}
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
