package openshell

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"path"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
)

// contentFile is written last, below the home.
const contentFile = ".sandboxer/sandbox.json"

// content is what a filled sandbox keeps about itself. The variables lie here and not at the gateway, which would keep them in its
// record of the sandbox: they may be secrets.
type content struct {
	ID  extensions.ID     `json:"id"`
	Env map[string]string `json:"env,omitempty"`
}

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

// content reads what a sandbox was filled with; none if it was not.
func (i *inside) content(ctx context.Context) (c content, err error) {
	if known, ok := i.b.filled.Load(i.ref); ok {
		return known.(content), nil
	}
	text, err := i.do(ctx, readFile, path.Join(i.home, contentFile), bytes.NewReader(nil))
	if extensions.IsKind(err, extensions.KindIndeterminate) { // the caller's own command did not begin
		err = extensions.Errorf(extensions.KindUnavailable, "the sandbox was not heard: %w", err).WithRemedy("try again")
	}
	if err != nil {
		return c, err
	}
	if json.Unmarshal(text, &c) != nil || c.ID != i.id { // its user may have changed it
		return content{}, nil
	}
	i.b.filled.Store(i.ref, c)
	return c, nil
}

// fill gives a new sandbox its contents, unless it has them. What was cut short anywhere is done again.
func (i *inside) fill(ctx context.Context, spec extensions.Spec) error {
	c, err := i.content(ctx)
	if err != nil || c.ID == spec.ID {
		return err
	}
	if i.workDir != "" {
		if err := i.fillWorkspace(ctx, spec); err != nil {
			return err
		}
	}
	if spec.Instructions != "" {
		at := i.home
		if i.workDir != "" {
			at = i.workDir
		}
		if _, err := i.do(ctx, writeFile, path.Join(at, extensions.InstructionsPath), bytes.NewReader([]byte(spec.Instructions))); err != nil {
			return err
		}
	}
	c = content{ID: spec.ID, Env: environment(spec)}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if _, err := i.do(ctx, writeFile, path.Join(i.home, contentFile), bytes.NewReader(text)); err != nil {
		return err
	}
	i.b.filled.Store(i.ref, c)
	return nil
}

// fillWorkspace makes the workspace anew. One that may only be read is the image's.
func (i *inside) fillWorkspace(ctx context.Context, spec extensions.Spec) error {
	program := newFolder
	if spec.Workspace.Access == extensions.AccessRO {
		program = isFolder
	}
	if _, err := i.do(ctx, program, i.workDir, bytes.NewReader(nil)); err != nil || spec.Workspace.Source == nil {
		return err
	}
	r, err := spec.Workspace.Source.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	return i.unpack(ctx, i.workDir, r)
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
