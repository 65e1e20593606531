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
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/contents"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
)

// Get implements contents.Reader.
func (t *toolbox) Get(ctx context.Context, at string) ([]byte, error) {
	var raw bytes.Buffer
	err := t.get(ctx, path.Join(t.home, at), &raw)
	return raw.Bytes(), err
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
	c, err := b.filled.Of(ctx, t.sandbox.Id, spec.ID, t)
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
	c = contents.Of(spec)
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	err = t.lay(ctx, append([]byte(spec.Instructions), text...), dir, fresh, path.Join(t.base(), extensions.InstructionsPath),
		strconv.Itoa(len(spec.Instructions)), path.Join(t.home, contents.File))
	if err == nil {
		b.filled.Filled(t.sandbox.Id, c)
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
