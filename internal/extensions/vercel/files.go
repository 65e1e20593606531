package vercel

import (
	"context"
	"io"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/tarbox"
)

// Upload implements extensions.FileTransfer.
func (b *backend) Upload(ctx context.Context, h extensions.Handle, dir string, tar io.Reader) error {
	i, err := b.enter(ctx, h)
	if err == nil {
		err = tarbox.Upload(ctx, tar, tarbox.Whole(i.calls().Transport, tarbox.At(i.dir, dir), where))
	}
	return failed("upload", h.ID, err)
}

// Download implements extensions.FileTransfer.
func (b *backend) Download(ctx context.Context, h extensions.Handle, from string, w io.Writer) error {
	i, err := b.enter(ctx, h)
	if err == nil {
		err = tarbox.Download(ctx, w, tarbox.Whole(i.calls().Transport, tarbox.At(i.dir, from), where))
	}
	return failed("download", h.ID, err)
}
