package openshell

import (
	"context"
	"io"
	"path"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/tarbox"
)

// called is how messages name a sandbox.
const called = "the sandbox"

// Upload implements extensions.FileTransfer.
func (b *backend) Upload(ctx context.Context, h extensions.Handle, dir string, tar io.Reader) error {
	i, err := b.inside(ctx, h)
	if err == nil {
		err = i.unpack(ctx, i.absolute(dir), tar)
	}
	return failed("upload", h.ID, err)
}

// Download implements extensions.FileTransfer.
func (b *backend) Download(ctx context.Context, h extensions.Handle, from string, w io.Writer) error {
	i, err := b.inside(ctx, h)
	if err == nil {
		err = tarbox.Download(ctx, w, tarbox.Inside(i.run, i.absolute(from), called))
	}
	return failed("download", h.ID, err)
}

func (i *inside) unpack(ctx context.Context, dir string, tar io.Reader) error {
	return tarbox.Upload(ctx, tar, tarbox.Inside(i.run, dir, called))
}

// absolute is a path inside: a relative one begins at the workspace, without one at the root.
func (i *inside) absolute(at string) string {
	if path.IsAbs(at) {
		return path.Clean(at)
	}
	return path.Join("/", i.workDir, at)
}
