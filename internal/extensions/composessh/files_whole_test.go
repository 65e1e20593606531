package composessh

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
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
	r := run(t, b, h, extensions.ExecRequest{User: "0", Shell: "mkdir -p /tmp/lacks/d && cd /tmp/lacks && echo 1 >a && echo 2 >d/shut && echo 3 >z && chmod 0 d/shut && chown 4242 . && chmod 0755 . d"})
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
	r := run(t, b, h, extensions.ExecRequest{Shell: fmt.Sprintf("mkdir -p fit/d/empty && cd fit && truncate -s %d d/db && truncate -s 1024G larger && echo 1 >a", size)})
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
	if !errors.As(err, &lacks) || !strings.Contains(err.Error(), "larger") || strings.Contains(err.Error(), "db") {
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

// Where the container has GNU's tar, holes stay holes.
func TestHolesOfAnArchiverThatKnowsThemStayHoles(t *testing.T) {
	t.Parallel()
	if out, err := exec.CommandContext(t.Context(), "tar", "--version").Output(); err != nil || !strings.Contains(string(out), "GNU") {
		t.Skip("needs GNU tar")
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "caf\xe9\n"), []byte("x"), 0o600))
	must(t, os.Truncate(filepath.Join(dir, "caf\xe9\n"), 1<<40))
	must(t, os.Link(filepath.Join(dir, "caf\xe9\n"), filepath.Join(dir, "second")))
	cmd := exec.CommandContext(t.Context(), "tar", "-S", "--format=posix", "--sparse-version=0.1", "-cf", "-", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "LC_ALL=C")
	archive, err := cmd.Output()
	must(t, err)
	var out bytes.Buffer
	taking := newTaking(t.Context(), &out)
	heard := &hearing{first: make(chan said, 1), ended: make(chan struct{})}
	close(heard.ended)
	must(t, taking.read(bytes.NewReader(archive), heard))
	must(t, taking.close())
	if out.Len() > 1<<20 {
		t.Fatalf("%d bytes came", out.Len())
	}
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	want, err := tarstream.Pack(t.Context(), io.Discard, root, tarstream.Options{})
	must(t, err)
	got, err := tarstream.Index(t.Context(), io.NewSectionReader(bytes.NewReader(out.Bytes()), 0, int64(out.Len())), tarstream.Options{})
	must(t, err)
	for i, e := range got.Entries {
		e.Same = ""
		if e != want.Entries[i] {
			t.Errorf("%+v, want %+v", e, want.Entries[i])
		}
	}
	// On the way in they would be written out: too many are refused by name.
	err = refill(t.Context(), bytes.NewReader(out.Bytes()), io.Discard, form{})
	wantKind(t, "a hole that has to be filled", err, extensions.KindInvalid, fmt.Sprintf("%q", "./caf\xe9\n"))
}
