package e2b

import (
	"context"
	"io"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/tarbox"
)

// Upload implements extensions.FileTransfer.
func (b *backend) Upload(ctx context.Context, h extensions.Handle, dir string, tar io.Reader) error {
	e, err := b.enter(ctx, h)
	if err == nil {
		err = e.unpack(ctx, tarbox.At(workDir(e.detail.Metadata), dir), tar)
	}
	return failed("upload", h.ID, err)
}

// Download implements extensions.FileTransfer.
func (b *backend) Download(ctx context.Context, h extensions.Handle, from string, w io.Writer) error {
	e, err := b.enter(ctx, h)
	if err == nil {
		err = tarbox.Download(ctx, w, tarbox.Inside(e.run, tarbox.At(workDir(e.detail.Metadata), from), where))
	}
	return failed("download", h.ID, err)
}

// where names a sandbox in messages.
const where = "the sandbox"

func (e *envd) unpack(ctx context.Context, dir string, tar io.Reader) error {
	return tarbox.Upload(ctx, tar, tarbox.Inside(e.run, dir, where))
}
