package command

import (
	"context"
	"io"
	"path"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/tarbox"
)

// where names a sandbox in messages.
const where = "the sandbox"

// Upload implements extensions.FileTransfer.
func (b *backend) Upload(ctx context.Context, h extensions.Handle, dir string, tar io.Reader) error {
	way, err := b.way(ctx, h, dir)
	if err == nil {
		err = tarbox.Upload(ctx, tar, way)
	}
	return failed("upload", h.ID, err)
}

// Download implements extensions.FileTransfer.
func (b *backend) Download(ctx context.Context, h extensions.Handle, from string, w io.Writer) error {
	way, err := b.way(ctx, h, from)
	if err == nil {
		err = tarbox.Download(ctx, w, way)
	}
	return failed("download", h.ID, err)
}

// way is how files go to and from a path inside: a relative one begins at the workspace.
func (b *backend) way(ctx context.Context, h extensions.Handle, at string) (tarbox.Way, error) {
	h, d, err := b.whole(ctx, h)
	if !path.IsAbs(at) {
		at = path.Join(d.Workdir, at)
	}
	return tarbox.Inside(b.transport(h), path.Clean(at), where), err
}
