package contents

import (
	"bytes"
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/tarbox"
)

// Shell is the Inside of a place that starts processes in the sandbox. Its image has /bin/sh, tar and the usual tools.
type Shell struct {
	Run execwire.Transport
	// Where names the sandbox in messages.
	Where string
	// Home is where relative paths begin; "" = the image's user says so.
	Home string
}

// Programs for sh -c; $1 is a path, $2 is Home. A new folder is emptied and not removed: its user may not write beside it.
const (
	atHome     = `cd "${2:-${HOME:-/root}}" || exit; `
	readFile   = atHome + `if [ -e "$1" ]; then cat "$1"; fi`
	writeFile  = atHome + `umask 077; mkdir -p "$(dirname "$1")" && cat >"$1.new" && mv -f "$1.new" "$1"`
	isFolder   = `[ -d "$1" ]`
	makeFolder = `mkdir -p "$1"`
	newFolder  = makeFolder + ` && rm -rf "$1"/* "$1"/.[!.]* "$1"/..?*`
)

// maxWords is how much of a program's complaint is told, in characters.
const maxWords = 300

func (s Shell) do(ctx context.Context, program, at string, in []byte) ([]byte, error) {
	var out, words bytes.Buffer
	exit, err := s.Run(ctx, execwire.Process{Argv: []string{"/bin/sh", "-c", program, "sh", at, s.Home}, Stdin: bytes.NewReader(in),
		Stdout: &out, Stderr: &words})
	if err == nil && exit != 0 {
		err = extensions.Errorf(extensions.KindUnsupported, "%s cannot hold %s: code %d: %s", s.Where, extensions.Clean(at, 200), exit,
			extensions.LastLines(words.String(), maxWords)).
			WithRemedy("use an image with /bin/sh and the folder, whose user may write there, or set options.workdir")
	}
	return out.Bytes(), err
}

// Get implements Reader. It can be done again where it was not heard: no command of the caller's began.
func (s Shell) Get(ctx context.Context, at string) ([]byte, error) {
	text, err := s.do(ctx, readFile, at, nil)
	if extensions.IsKind(err, extensions.KindIndeterminate) {
		err = extensions.Errorf(extensions.KindUnavailable, "%s was not heard: %w", s.Where, err).WithRemedy("try again")
	}
	return text, err
}

// Put implements Inside.
func (s Shell) Put(ctx context.Context, at string, b []byte) error {
	_, err := s.do(ctx, writeFile, at, b)
	return err
}

// Workspace implements Inside. One that may only be read is the image's.
func (s Shell) Workspace(ctx context.Context, dir string, spec extensions.Spec) error {
	program := newFolder
	switch {
	case spec.Workspace.Access == extensions.AccessRO:
		program = isFolder
	case spec.FromSnapshot != nil || spec.FromSandbox != "":
		program = makeFolder
	}
	if _, err := s.do(ctx, program, dir, nil); err != nil || spec.Workspace.Source == nil {
		return err
	}
	r, err := spec.Workspace.Source.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	return tarbox.Upload(ctx, r, tarbox.Inside(s.Run, dir, s.Where))
}
