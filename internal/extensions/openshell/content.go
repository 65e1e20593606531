package openshell

import (
	"bytes"
	"context"
	"io"
	"path"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/contents"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
)

// Programs of the adapter's own, for sh -c; $1 is an absolute path.
const (
	readFile  = `if [ -e "$1" ]; then cat "$1"; fi`
	writeFile = `umask 077; mkdir -p "${1%/*}" && cat >"$1.new" && mv -f "$1.new" "$1"`
	newFolder = `mkdir -p "$1" && rm -rf "$1"/* "$1"/.[!.]* "$1"/..?*`
	isFolder  = `[ -d "$1" ]`
)

// do runs a program of the adapter's own, and returns what it printed.
func (i *inside) do(ctx context.Context, program, at string, in io.Reader) ([]byte, error) {
	var out, words bytes.Buffer
	exit, err := i.run(ctx, execwire.Process{Argv: []string{"/bin/sh", "-c", program, "sh", at}, Stdin: in, Stdout: &out, Stderr: &words})
	if err == nil && exit != 0 {
		err = extensions.Errorf(extensions.KindUnsupported, "the image cannot hold %s: code %d: %s", extensions.Clean(at, 200), exit,
			extensions.LastLines(words.String(), maxWords)).
			WithRemedy("use an image with /bin/sh and the folder, or set options.home or options.workdir")
	}
	return out.Bytes(), err
}

// atHome is a path inside: a relative one begins at the home.
func (i *inside) atHome(at string) string {
	if path.IsAbs(at) {
		return at
	}
	return path.Join(i.home, at)
}

// Get implements contents.Inside.
func (i *inside) Get(ctx context.Context, at string) ([]byte, error) {
	text, err := i.do(ctx, readFile, i.atHome(at), bytes.NewReader(nil))
	if extensions.IsKind(err, extensions.KindIndeterminate) { // the caller's own command did not begin
		err = extensions.Errorf(extensions.KindUnavailable, "the sandbox was not heard: %w", err).WithRemedy("try again")
	}
	return text, err
}

// Put implements contents.Inside.
func (i *inside) Put(ctx context.Context, at string, b []byte) error {
	_, err := i.do(ctx, writeFile, i.atHome(at), bytes.NewReader(b))
	return err
}

// Workspace implements contents.Inside. One that may only be read is the image's.
func (i *inside) Workspace(ctx context.Context, dir string, spec extensions.Spec) error {
	program := newFolder
	if spec.Workspace.Access == extensions.AccessRO {
		program = isFolder
	}
	if _, err := i.do(ctx, program, dir, bytes.NewReader(nil)); err != nil || spec.Workspace.Source == nil {
		return err
	}
	r, err := spec.Workspace.Source.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	return i.unpack(ctx, dir, r)
}

var _ contents.Inside = (*inside)(nil)
