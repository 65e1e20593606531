package modal

import (
	"context"
	"io"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/contents"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/tarbox"
)

// called is how messages name a sandbox.
const called = "the sandbox"

func (i *inside) shell() contents.Shell { return contents.Shell{Run: i.run, Where: called} }

// Upload implements extensions.FileTransfer.
func (b *backend) Upload(ctx context.Context, h extensions.Handle, dir string, tar io.Reader) error {
	i, err := b.inside(ctx, h)
	if err == nil {
		err = tarbox.Upload(ctx, tar, tarbox.Inside(i.run, tarbox.At(i.workDir, dir), called))
	}
	return failed("upload", h.ID, err)
}

// Download implements extensions.FileTransfer.
func (b *backend) Download(ctx context.Context, h extensions.Handle, from string, w io.Writer) error {
	i, err := b.inside(ctx, h)
	if err == nil {
		err = tarbox.Download(ctx, w, tarbox.Inside(i.run, tarbox.At(i.workDir, from), called))
	}
	return failed("download", h.ID, err)
}
