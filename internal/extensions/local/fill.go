package local

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"path"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/wire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// fill puts the workspace and the instructions into a sandbox that has just started. The init extracts them
// inside the walls.
func (b *Backend) fill(ctx context.Context, bx box, spec extensions.Spec) error {
	fill := b.fillWorkspace
	if spec.FromSandbox != "" {
		fill = b.fork
	}
	if err := fill(ctx, bx, spec); err != nil {
		return err
	}
	if spec.Instructions == "" {
		return nil
	}
	op, dir := wire.OpSeed, "."
	if access(spec) == extensions.AccessNone {
		op = wire.OpUpload // relative to the home there
	}
	archive, err := instructions(spec.Instructions)
	if err != nil {
		return err
	}
	return bx.upload(ctx, op, dir, bytes.NewReader(archive))
}

func (b *Backend) fillWorkspace(ctx context.Context, bx box, spec extensions.Spec) error {
	if access(spec) == extensions.AccessNone {
		return nil
	}
	var (
		source io.ReadCloser
		digest string
		err    error
	)
	switch {
	case spec.FromSnapshot != nil:
		source, digest, err = b.settings.openSnapshot(ctx, *spec.FromSnapshot)
	case spec.Workspace.Source != nil:
		source, err = spec.Workspace.Source.Open(ctx)
		digest = spec.Workspace.Source.Digest()
	default:
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	err = bx.upload(ctx, wire.OpSeed, ".", tarstream.VerifyReader(source, digest))
	if spec.FromSnapshot != nil && extensions.IsKind(err, extensions.KindInvalid) {
		return extensions.Errorf(extensions.KindInvalid, "the snapshot %s is damaged: %w", spec.FromSnapshot.ID, err).
			WithRemedy("restore from another snapshot; this one cannot be repaired")
	}
	return err
}

func instructions(text string) ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: path.Dir(extensions.InstructionsPath) + "/", Mode: 0o755}); err != nil {
		return nil, err
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: extensions.InstructionsPath, Mode: 0o644,
		Size: int64(len(text))}); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(w, text); err != nil {
		return nil, err
	}
	err := w.Close()
	return buf.Bytes(), err
}
