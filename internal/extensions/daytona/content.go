package daytona

import (
	"bytes"
	"context"
	"encoding/json"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
)

// contentFile is written last, relative to the home of the sandbox's user.
const contentFile = ".sandboxer/sandbox.json"

// content is what a filled sandbox keeps about itself. The variables lie here and not in the vendor's record of the sandbox, which
// everybody of the organization reads: they may be secrets.
type content struct {
	ID  extensions.ID     `json:"id"`
	Env map[string]string `json:"env,omitempty"`
}

// contentOf reads what a sandbox was filled with; none if it was not, or is from another one.
func (b *backend) contentOf(ctx context.Context, t *toolbox, id extensions.ID) (c content, err error) {
	if known, ok := b.filled.Load(t.sandbox.Id); ok {
		return known.(content), nil
	}
	var raw bytes.Buffer
	err = t.get(ctx, path.Join(t.home, contentFile), &raw)
	switch {
	case extensions.IsKind(err, extensions.KindNotFound):
		return content{}, nil
	case err != nil:
		return content{}, err
	}
	if json.Unmarshal(raw.Bytes(), &c) != nil || c.ID != id {
		return content{}, nil
	}
	b.filled.Store(t.sandbox.Id, c)
	return c, nil
}

// layOut makes the folder $1, empties it first if $2 says so, and writes the first $4 bytes of its input to $3 and the rest to $5,
// which is there as a whole or not at all.
const layOut = `set -e
[ -z "$2" ] || rm -rf -- "$1"
[ -z "$1" ] || mkdir -p -- "$1"
[ -n "$5" ] || exit 0
umask 077
mkdir -p -- "${5%/*}"
cat >"$5.all"
if [ "$4" != 0 ]; then
(umask 022; mkdir -p -- "${3%/*}"; head -c "$4" "$5.all" >"$3")
fi
tail -c "+$(($4 + 1))" "$5.all" >"$5.new"
rm -f -- "$5.all"
mv -- "$5.new" "$5"`

// fill gives a new sandbox its contents, unless it has them. What was cut short anywhere is done again.
func (b *backend) fill(ctx context.Context, spec extensions.Spec, t *toolbox) error {
	c, err := b.contentOf(ctx, t, spec.ID)
	if err != nil || c.ID == spec.ID {
		return err
	}
	dir, fresh := workDirOf(spec), "fresh"
	if dir == "" {
		fresh = ""
	}
	if spec.Workspace.Source != nil && dir != "" {
		if err := t.lay(ctx, nil, dir, fresh, "", "0", ""); err != nil {
			return err
		}
		fresh = ""
		r, err := spec.Workspace.Source.Open(ctx)
		if err != nil {
			return err
		}
		err = t.unpack(ctx, dir, r)
		_ = r.Close()
		if err != nil {
			return err
		}
	}
	c = content{ID: spec.ID, Env: environment(spec)}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	err = t.lay(ctx, append([]byte(spec.Instructions), text...), dir, fresh, path.Join(t.base(), extensions.InstructionsPath),
		strconv.Itoa(len(spec.Instructions)), path.Join(t.home, contentFile))
	if err == nil {
		b.filled.Store(t.sandbox.Id, c)
	}
	return err
}

// lay runs layOut.
func (t *toolbox) lay(ctx context.Context, in []byte, args ...string) error {
	r, err := execwire.Run(ctx, extensions.ExecRequest{Command: append([]string{"/bin/sh", "-c", layOut, "sh"}, args...),
		Stdin: bytes.NewReader(in), Dir: "/", Timeout: 5 * time.Minute}, execwire.Inside("/", t.calls(0).Transport))
	if err == nil && r.ExitCode != 0 {
		err = extensions.Errorf(extensions.KindUnsupported, "the workspace %s cannot be made: %s", args[0],
			extensions.LastLines(strings.TrimSpace(string(r.Stderr)), 300)).At("options.workdir").
			WithRemedy("name a folder in options.workdir that the sandbox's user may make")
	}
	return err
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
