package contents

import (
	"bytes"
	"context"
	"io"
	"strconv"

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
	// Read reads a file, as Get does, and Unpack unpacks a stream of tar, by calls of the place's own; nil = by a program.
	Read   func(ctx context.Context, at string) ([]byte, error)
	Unpack func(ctx context.Context, dir string, tar io.Reader) error
}

// Programs for sh -c. $1 is Home. Then come one path, or paths and the lengths of the files, which come one after the other. All
// that can be read at once is read before anything is written, because a program may read more than it was asked to. A new
// folder is emptied and not removed: its user may not write beside it.
const (
	atHome     = `cd "${1:-${HOME:-/root}}" || exit; shift; `
	readFile   = atHome + `if [ -e "$1" ]; then cat "$1"; fi`
	writeFiles = atHome + `set -e
umask 077
trap 'rm -f .sandboxer-new' EXIT
cat >.sandboxer-new
from=1
while [ "$#" -gt 0 ]; do
mkdir -p "$(dirname "$1")"
tail -c "+$from" .sandboxer-new | head -c "$2" >"$1.new"
mv -f "$1.new" "$1"
from=$((from + $2))
shift 2
done`
	isFolder   = `[ -d "$2" ]`
	makeFolder = `mkdir -p "$2"`
	newFolder  = makeFolder + ` && rm -rf "$2"/* "$2"/.[!.]* "$2"/..?*`
)

// maxWords is how much of a program's complaint is told, in characters.
const maxWords = 300

func (s Shell) do(ctx context.Context, program string, in []byte, args ...string) ([]byte, error) {
	var out, words bytes.Buffer
	exit, err := s.Run(ctx, execwire.Process{Argv: append([]string{"/bin/sh", "-c", program, "sh", s.Home}, args...),
		Stdin: bytes.NewReader(in), Stdout: &out, Stderr: &words})
	if err == nil && exit != 0 {
		err = extensions.Errorf(extensions.KindUnsupported, "%s cannot hold %s: code %d: %s", s.Where, extensions.Clean(args[0], 200), exit,
			extensions.LastLines(words.String(), maxWords)).
			WithRemedy("use an image with /bin/sh and the folder, whose user may write there, or set options.workdir")
	}
	return out.Bytes(), err
}

// Get implements Reader. It can be done again where it was not heard: no command of the caller's began.
func (s Shell) Get(ctx context.Context, at string) ([]byte, error) {
	if s.Read != nil {
		return s.Read(ctx, at)
	}
	text, err := s.do(ctx, readFile, nil, at)
	if extensions.IsKind(err, extensions.KindIndeterminate) {
		err = extensions.Errorf(extensions.KindUnavailable, "no answer from %s: %w", s.Where, err).WithRemedy("try again")
	}
	return text, err
}

// Put implements Inside.
func (s Shell) Put(ctx context.Context, at string, b []byte) error {
	return s.PutAll(ctx, []Written{{Path: at, Text: b}})
}

// PutAll implements Batch.
func (s Shell) PutAll(ctx context.Context, files []Written) error {
	var all []byte
	var args []string
	for _, f := range files {
		all = append(all, f.Text...)
		args = append(args, f.Path, strconv.Itoa(len(f.Text)))
	}
	_, err := s.do(ctx, writeFiles, all, args...)
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
	if _, err := s.do(ctx, program, nil, dir); err != nil || spec.Workspace.Source == nil {
		return err
	}
	r, err := spec.Workspace.Source.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	if s.Unpack != nil {
		return s.Unpack(ctx, dir, r)
	}
	return tarbox.Upload(ctx, r, tarbox.Inside(s.Run, dir, s.Where))
}
