package composessh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// seedFile has the instructions of a sandbox whose workspace the host restores.
const seedFile = "seed.md"

// restores reports whether the sandbox starts from a snapshot or another sandbox.
func (p *plan) restores() bool { return p.spec.FromSnapshot != nil || p.spec.FromSandbox != "" }

// buildBase is the folder of the sandbox with the contexts of builds: never a workspace that others wrote.
func (p *plan) buildBase() string {
	switch {
	case p.bundled:
		return "bundle"
	case p.restores():
		return "stack"
	}
	return "workspace"
}

// originVars are the variables of sh/restore.sh that the stack decides.
func (p *plan) originVars() map[string]string {
	names := make([]string, 0, len(p.rendered.Services))
	for _, s := range p.rendered.Services {
		names = append(names, s.Name)
	}
	vars := map[string]string{"services": strings.Join(names, " "), "binds": "", "folders": ""}
	if !p.bundled {
		vars["binds"], vars["folders"] = shellWords(p.rendered.Binds), shellWords(p.rendered.Mkdir)
	}
	return vars
}

func shellWords(texts []string) string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = shellText(t)
	}
	return strings.Join(out, " ")
}

// origin is what a create starts from: variables of sh/restore.sh, and what follows the payload.
type origin struct {
	vars   map[string]string
	pieces *pieces
}

func (o origin) close() {
	if o.pieces.from != nil {
		_ = o.pieces.from.Close()
	}
}

// originOf finds out where the files of spec come from.
func (b *Backend) originOf(ctx context.Context, spec extensions.Spec) (origin, error) {
	o := origin{vars: map[string]string{"origin": "", "snapshot": "", "digest_want": "", "from": string(spec.FromSandbox), "origin_kind": ""},
		pieces: &pieces{}}
	ref := spec.FromSnapshot
	switch {
	case spec.FromSandbox != "":
		at, err := b.resolve(spec.Source)
		if err != nil {
			return o, extensions.AtField("from_sandbox", err)
		}
		if at.root != b.settings.root {
			return o, extensions.Errorf(extensions.KindInvalid, "%s is below another root on the host", at.id).At("from_sandbox").
				WithRemedy("use a binding with config.root = %q", at.root)
		}
		o.vars["origin"], o.vars["origin_kind"] = "fork", string(extensions.SnapshotFilesystem)
		return o, nil
	case ref == nil:
		return o, nil
	case ref.Source != nil:
		if err := snapshotSpec(ref.Source.Kind()).CheckKind(snapshots); err != nil {
			return o, err
		}
		from, err := ref.Source.Open(ctx)
		if err != nil {
			return o, err
		}
		o.pieces.from = from
		o.vars["origin"], o.vars["origin_kind"], o.vars["digest_want"] = "sent", string(ref.Source.Kind()), ref.Source.Digest()
	default:
		at, err := b.resolveSnapshot(ref.Handle)
		if err != nil {
			return o, err
		}
		if at.root != b.settings.root {
			return o, extensions.Errorf(extensions.KindInvalid, "the snapshot %s is below another root on the host", ref.ID).
				WithRemedy("use a binding with config.root = %q", at.root)
		}
		o.vars["origin"], o.vars["digest_want"] = "kept", at.digest
	}
	o.vars["snapshot"] = ref.ID
	return o, checkSnapshotID(ref.ID)
}

// pieceSize is how much of a snapshot goes to the host at a time, in bytes.
const pieceSize = 4 << 20

// pieces sends a stream of unknown length in pieces, each after a line with its length; 0 is the end. After an
// error of the stream it sends another word, with which the host gives up.
type pieces struct {
	from io.ReadCloser // nil = nothing
	err  error         // of from
	buf  []byte
	rest []byte
	done bool
}

func (p *pieces) Read(to []byte) (int, error) {
	if p.from == nil {
		return 0, io.EOF
	}
	if len(p.rest) == 0 && !p.done {
		p.next()
	}
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(to, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

func (p *pieces) next() {
	if p.buf == nil {
		p.buf = make([]byte, pieceSize)
	}
	n, err := io.ReadFull(p.from, p.buf)
	if n > 0 {
		p.rest = append(fmt.Appendf(nil, "%d\n", n), p.buf[:n]...)
	}
	switch {
	case err == nil:
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		p.rest, p.done = append(p.rest, "0\n"...), true
	default:
		p.rest, p.err, p.done = []byte("broken\n"), err, true
	}
}
