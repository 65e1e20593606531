//go:build unix

package indoors_test

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire/execwiretest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/indoors"
)

// home is a sandbox of this machine, with the door that leads into it.
type home struct {
	indoors.Door
	room   *indoors.Room // nil = it does not run
	handle extensions.Handle
	spec   extensions.Spec
	starts int // of what must run beside
}

func newHome(t *testing.T) *home {
	t.Helper()
	id, err := extensions.NewID(nil)
	must(t, err)
	dir := t.TempDir()
	run := execwiretest.Place{Shell: []string{"/bin/sh"}, Dir: dir, Env: os.Environ()}.Transport
	at := &home{handle: extensions.Handle{Extension: "acme", Version: 1, ID: id, Ref: "a"},
		room: &indoors.Room{Ref: "a", WorkDir: filepath.Join(dir, "work"), Home: dir, Run: run},
		spec: extensions.Spec{ID: id, Generation: 1, Env: map[string]string{"A": "own"},
			Secrets: map[string]extensions.Secret{"B": extensions.NewSecret("secret")}}}
	at.Door = indoors.Door{Vendor: "Acme", Enter: func(context.Context, extensions.Handle) (*indoors.Room, error) {
		if at.room == nil {
			return nil, extensions.Errorf(extensions.KindConflict, "it does not run")
		}
		return at.room, nil
	}, Start: func(context.Context, extensions.Handle) error {
		at.starts++
		return nil
	}}
	return at
}

func (at *home) sh(t *testing.T, req extensions.ExecRequest) (string, error) {
	t.Helper()
	r, err := at.Exec(t.Context(), at.handle, req)
	return string(r.Stdout), err
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wants(t *testing.T, what string, err error, kind extensions.Kind) {
	t.Helper()
	if extensions.KindOf(err) != kind {
		t.Errorf("%s: %v, want %q", what, err, kind)
	}
}

// What a sandbox was filled with, its commands have: in its workspace, with its variables below their own.
func TestAFilledSandboxIsUsed(t *testing.T) {
	t.Parallel()
	at := newHome(t)
	at.spec.Instructions = "read me"
	at.spec.Readiness = &extensions.Probe{Command: []string{"/bin/sh", "-c", `[ "$A$B" = ownsecret ]`},
		Interval: extensions.Duration(10 * time.Millisecond), Timeout: extensions.Duration(10 * time.Second)}
	for range 2 { // each part can be done again
		must(t, at.Furnish(t.Context(), at.spec, at.handle))
	}
	if at.starts != 2 {
		t.Errorf("what runs beside was started %d times", at.starts)
	}
	out, err := at.sh(t, extensions.ExecRequest{Shell: `printf '%s %s ' "$A" "$B"; cat ` + extensions.InstructionsPath,
		Env: map[string]string{"A": "asked"}})
	if err != nil || out != "asked secret read me" {
		t.Errorf("%q, %v", out, err)
	}
	at.Forget("a")
	if out, err = at.sh(t, extensions.ExecRequest{Shell: `printf %s "$B"`}); err != nil || out != "secret" {
		t.Errorf("read again: %q, %v", out, err)
	}
}

// A probe that does not answer in time fails what fills the sandbox; what must run beside is started before it.
func TestAProbeThatDoesNotAnswerFails(t *testing.T) {
	t.Parallel()
	at := newHome(t)
	at.spec.Readiness = &extensions.Probe{Command: []string{"false"}, Interval: extensions.Duration(10 * time.Millisecond),
		Timeout: extensions.Duration(100 * time.Millisecond)}
	wants(t, "its probe", at.Furnish(t.Context(), at.spec, at.handle), extensions.KindTimeout)
	if at.starts != 1 {
		t.Errorf("what runs beside was started %d times", at.starts)
	}
}

// A sandbox that cannot be filled in the caller's time is late, whatever the step said that was cut off.
func TestAFillingThatIsCutOffIsLate(t *testing.T) {
	t.Parallel()
	at := newHome(t)
	at.room.Run = func(ctx context.Context, _ execwire.Process) (int, error) {
		<-ctx.Done()
		return 0, extensions.Errorf(extensions.KindUnavailable, "nothing was started")
	}
	late, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	wants(t, "in its time", at.Furnish(late, at.spec, at.handle), extensions.KindTimeout)
	left, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	wants(t, "once its caller has left", at.Furnish(left, at.spec, at.handle), extensions.KindInterrupted)
}

// Files go in and come back below the folder where relative ones begin.
func TestFilesBeginWhereCommandsDo(t *testing.T) {
	t.Parallel()
	at := newHome(t)
	must(t, at.Furnish(t.Context(), at.spec, at.handle))
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	must(t, w.WriteHeader(&tar.Header{Name: "f", Mode: 0o600, Size: 4}))
	_, err := w.Write([]byte("kept"))
	must(t, err)
	must(t, w.Close())
	must(t, at.Upload(t.Context(), at.handle, "sub", &archive))
	if out, err := at.sh(t, extensions.ExecRequest{Shell: "cat sub/f"}); err != nil || out != "kept" {
		t.Errorf("%q, %v", out, err)
	}
	var back bytes.Buffer
	must(t, at.Download(t.Context(), at.handle, "sub/f", &back))
	r := tar.NewReader(&back)
	if h, err := r.Next(); err != nil || h.Name != "f" {
		t.Fatalf("%+v, %v", h, err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != "kept" {
		t.Errorf("%q, %v", text, err)
	}
	wants(t, "what is not there", at.Download(t.Context(), at.handle, "none", io.Discard), extensions.KindNotFound)
}

// Nothing is run, sent or filled in a sandbox that cannot be entered, as another user, or in a service.
func TestADoorRefuses(t *testing.T) {
	t.Parallel()
	at := newHome(t)
	must(t, at.Furnish(t.Context(), at.spec, at.handle))
	at.starts, at.room.User = 0, "builder"
	_, err := at.sh(t, extensions.ExecRequest{Shell: "true", User: "root"})
	wants(t, "another user", err, extensions.KindUnsupported)
	_, err = at.sh(t, extensions.ExecRequest{Shell: "true", User: "builder"})
	wants(t, "its user", err, "")
	_, err = at.sh(t, extensions.ExecRequest{Shell: "true", Service: "db"})
	wants(t, "a service", err, extensions.KindUnsupported)
	at.room = nil
	_, err = at.sh(t, extensions.ExecRequest{Shell: "true"})
	wants(t, "a command", err, extensions.KindConflict)
	wants(t, "an upload", at.Upload(t.Context(), at.handle, "", &bytes.Buffer{}), extensions.KindConflict)
	wants(t, "a download", at.Download(t.Context(), at.handle, "f", io.Discard), extensions.KindConflict)
	wants(t, "filling it", at.Furnish(t.Context(), at.spec, at.handle), extensions.KindConflict)
	if at.starts > 0 {
		t.Error("something was started in it")
	}
}
