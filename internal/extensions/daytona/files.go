package daytona

import (
	"context"
	"io"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/tarbox"
)

const (
	// where names a sandbox in messages.
	where = "the sandbox"
	// maxArchive is the longest archive that is sent, in bytes: it lies beside what is unpacked from it for a while.
	maxArchive = 64 << 30
)

// Upload implements extensions.FileTransfer.
func (b *backend) Upload(ctx context.Context, h extensions.Handle, dir string, tar io.Reader) error {
	t, err := b.enter(ctx, h)
	if err == nil {
		err = t.unpack(ctx, tarbox.At(t.base(), dir), tar)
	}
	return failed("upload", h.ID, err)
}

// Download implements extensions.FileTransfer.
func (b *backend) Download(ctx context.Context, h extensions.Handle, from string, w io.Writer) error {
	t, err := b.enter(ctx, h)
	if err == nil {
		err = tarbox.Download(ctx, w, tarbox.Whole(t.calls(0).Transport, tarbox.At(t.base(), from), where))
	}
	return failed("download", h.ID, err)
}

func (t *toolbox) unpack(ctx context.Context, dir string, tar io.Reader) error {
	return tarbox.Upload(ctx, tar, tarbox.Whole(t.calls(maxArchive).Transport, dir, where))
}
