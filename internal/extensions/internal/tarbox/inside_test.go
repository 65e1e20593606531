//go:build unix

package tarbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire/execwiretest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext/shtexttest"
)

func TestProgramsArePOSIX(t *testing.T) {
	t.Parallel()
	shtexttest.POSIX(t, shtexttest.Programs(t, Scripts))
}

// inEveryShell runs a test with the transport of each shell of this machine, and a folder.
func inEveryShell(t *testing.T, test func(t *testing.T, transport execwire.Transport, dir string)) {
	t.Helper()
	for _, shell := range shtexttest.Shells(t) {
		at, err := exec.LookPath(shell[0])
		must(t, err)
		t.Run(filepath.Base(strings.Join(shell, "-")), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := execwiretest.Place{Shell: append([]string{at}, shell[1:]...), Dir: dir, Env: os.Environ()}
			test(t, p.Transport, dir)
		})
	}
}

func TestFilesGoInsideAndComeBack(t *testing.T) {
	t.Parallel()
	inEveryShell(t, func(t *testing.T, transport execwire.Transport, dir string) {
		at := filepath.Join(dir, "-new", "é 'x\n")
		up := newTar(t, entry{name: "d/", mode: 0o750}, entry{name: "d/-rf", body: "dash", mode: 0o640},
			entry{name: "l", link: "/etc/passwd"}, entry{name: "caf\xe9\n", body: strings.Repeat("x", 1<<20), mode: 0o755})
		must(t, Upload(t.Context(), bytes.NewReader(up), Inside(transport, at, "it")))
		var out bytes.Buffer
		must(t, Download(t.Context(), &out, Inside(transport, at, "it")))
		got := map[string]string{}
		for _, h := range headers(t, bytes.NewReader(out.Bytes())) {
			got[h.Name] = h.Linkname
			if h.Name == "d/-rf" && h.Mode != 0o640 {
				t.Errorf("its mode is %o", h.Mode)
			}
		}
		if len(got) != 4 || got["l"] != "/etc/passwd" {
			t.Errorf("%q came back", got)
		}
		err := Download(t.Context(), io.Discard, Inside(transport, filepath.Join(dir, "none"), "it"))
		wantKind(t, "a path that is not there", err, extensions.KindNotFound, "none", "it")
		err = Upload(t.Context(), bytes.NewReader(newTar(t)), Inside(transport, filepath.Join(at, "d/-rf/below"), "it"))
		wantKind(t, "below a file", err, extensions.KindConflict)
		err = Upload(t.Context(), bytes.NewReader(newTar(t, entry{name: "../up"})), Inside(transport, at, "it"))
		wantKind(t, "what climbs", err, extensions.KindInvalid)
	})
}

// Whoever has another way for such an image still has the whole archive.
func TestAnImageWithoutAnArchiverReadsNothing(t *testing.T) {
	t.Parallel()
	for what, p := range map[string]execwiretest.Place{
		"no tar":   {Shell: []string{"/bin/sh"}, Dir: t.TempDir(), Env: []string{"PATH=/nonexistent"}},
		"no shell": {Shell: []string{"/no/such/shell"}, Dir: t.TempDir()},
	} {
		read := false
		archive := readerFunc(func([]byte) (int, error) { read = true; return 0, io.EOF })
		err := Upload(t.Context(), archive, Inside(p.Transport, "/x", "it"))
		if !errors.Is(err, ErrNoArchiver) || !extensions.IsKind(err, extensions.KindUnsupported) || read {
			t.Errorf("%s: %v, read %t", what, err, read)
		}
		if err := Download(t.Context(), io.Discard, Inside(p.Transport, "/x", "it")); !errors.Is(err, ErrNoArchiver) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A caller's reader may block for ever, and its writer may fail.
func TestATransferEndsWithItsTransport(t *testing.T) {
	t.Parallel()
	blocked, keep := io.Pipe()
	defer func() { _ = keep.Close() }()
	broken := func(_ context.Context, p execwire.Process) (int, error) {
		_, _ = p.Stdout.Write([]byte("ready\n"))
		return 0, extensions.Errorf(extensions.KindIndeterminate, "broken")
	}
	wantKind(t, "upload", Upload(t.Context(), blocked, Inside(broken, "/x", "it")), extensions.KindIndeterminate)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "f"), make([]byte, 1<<20), 0o600))
	p := execwiretest.Place{Shell: []string{"/bin/sh"}, Dir: dir, Env: os.Environ()}
	wantKind(t, "download", Download(t.Context(), writerFunc(func([]byte) (int, error) { return 0, io.ErrClosedPipe }),
		Inside(p.Transport, dir, "it")), extensions.KindInterrupted)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// slurping is a transport that reads all input before it starts the process.
func slurping(transport execwire.Transport) execwire.Transport {
	return func(ctx context.Context, p execwire.Process) (int, error) {
		b, err := io.ReadAll(p.Stdin)
		if err != nil {
			return 0, err
		}
		p.Stdin = bytes.NewReader(b)
		return transport(ctx, p)
	}
}

func TestFilesGoInsideWithoutStreams(t *testing.T) {
	t.Parallel()
	inEveryShell(t, func(t *testing.T, transport execwire.Transport, dir string) {
		at := filepath.Join(dir, "new")
		must(t, Upload(t.Context(), bytes.NewReader(newTar(t, entry{name: "a", body: "b"})), Whole(slurping(transport), at, "it")))
		if b, err := os.ReadFile(filepath.Join(at, "a")); err != nil || string(b) != "b" {
			t.Errorf("%q, %v", b, err)
		}
		lacks := func(context.Context, execwire.Process) (int, error) { return 1, nil }
		if err := Upload(t.Context(), iotest.ErrReader(errors.New("it was read")), Whole(lacks, at, "it")); !errors.Is(err, ErrNoArchiver) {
			t.Errorf("without an archiver: %v", err)
		}
	})
}
