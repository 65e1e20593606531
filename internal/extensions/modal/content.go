package modal

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
)

// contentFile is written last, relative to the home of the sandbox's user. What comes from a snapshot has that of its
// origin, whose id differs.
const contentFile = ".sandboxer/sandbox.json"

// content is what a filled sandbox keeps about itself. The variables lie here and not at the vendor, which would keep
// them in its record of the sandbox.
type content struct {
	ID  extensions.ID     `json:"id"`
	Env map[string]string `json:"env,omitempty"`
}

// Programs of the adapter's own, for sh -c; $1 is a path, a relative one is below the home.
const (
	atHome     = `cd "${HOME:-/root}" || exit; `
	readFile   = atHome + `if [ -e "$1" ]; then cat "$1"; fi`
	writeFile  = atHome + `umask 077; mkdir -p "$(dirname "$1")" && cat >"$1.new" && mv -f "$1.new" "$1"`
	makeFolder = `mkdir -p "$1"`
	newFolder  = `rm -rf "$1" && mkdir -p "$1"`
)

// do runs a program of the adapter's own, and returns what it printed.
func (i *inside) do(ctx context.Context, program, at string, in io.Reader) ([]byte, error) {
	var out, words bytes.Buffer
	exit, err := i.run(ctx, execwire.Process{Argv: []string{"/bin/sh", "-c", program, "sh", at}, Stdin: in, Stdout: &out, Stderr: &words})
	if err == nil && exit != 0 {
		err = extensions.Errorf(extensions.KindUnsupported, "the image cannot hold %s: code %d: %s", extensions.Clean(at, 200), exit,
			extensions.LastLines(words.String(), maxWords)).
			WithRemedy("use an image with /bin/sh whose user may write there, or set options.workdir")
	}
	return out.Bytes(), err
}

// contentOf reads what a sandbox was filled with; none if it was not, or is from another one.
func (b *backend) contentOf(ctx context.Context, i *inside) (c content, err error) {
	if known, ok := b.filled.Load(i.ref); ok {
		return known.(content), nil
	}
	text, err := i.do(ctx, readFile, contentFile, bytes.NewReader(nil))
	if err != nil {
		return c, notBegun(err)
	}
	if json.Unmarshal(text, &c) != nil || c.ID != i.id { // its user may have changed it
		return content{}, nil
	}
	b.filled.Store(i.ref, c)
	return c, nil
}

// notBegun is the error of a preparation that can be done again: the caller's own command did not begin.
func notBegun(err error) error {
	if extensions.IsKind(err, extensions.KindIndeterminate) {
		return extensions.Errorf(extensions.KindUnavailable, "the sandbox was not heard: %w", err).WithRemedy("try again")
	}
	return err
}

// fill gives a new sandbox its contents, unless it has them. What was cut short anywhere is done again.
func (b *backend) fill(ctx context.Context, spec extensions.Spec, i *inside) error {
	c, err := b.contentOf(ctx, i)
	if err != nil || c.ID == spec.ID {
		return err
	}
	dir := workDirOf(spec)
	if dir != "" {
		if err := i.fillWorkspace(ctx, dir, spec); err != nil {
			return err
		}
	}
	if spec.Instructions != "" {
		at := extensions.InstructionsPath
		if dir != "" {
			at = dir + "/" + at
		}
		if _, err := i.do(ctx, writeFile, at, bytes.NewReader([]byte(spec.Instructions))); err != nil {
			return err
		}
	}
	c = content{ID: spec.ID, Env: environment(spec)}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if _, err := i.do(ctx, writeFile, contentFile, bytes.NewReader(text)); err != nil {
		return err
	}
	b.filled.Store(i.ref, c)
	return nil
}

// fillWorkspace makes the workspace anew, or over what a snapshot has of it.
func (i *inside) fillWorkspace(ctx context.Context, dir string, spec extensions.Spec) error {
	make := newFolder
	if spec.FromSnapshot != nil {
		make = makeFolder
	}
	if _, err := i.do(ctx, make, dir, bytes.NewReader(nil)); err != nil || spec.Workspace.Source == nil {
		return err
	}
	r, err := spec.Workspace.Source.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	return i.unpack(ctx, dir, r)
}

func environment(spec extensions.Spec) map[string]string {
	env := map[string]string{}
	for _, from := range []map[string]string{spec.Toolchain.Env, spec.Env} {
		for name, v := range from {
			env[name] = v
		}
	}
	for name, s := range spec.Secrets {
		env[name] = s.Reveal()
	}
	return env
}
