package saasstub

import (
	"context"
	"io"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// Upload implements extensions.FileTransfer.
func (b *backend) Upload(ctx context.Context, h extensions.Handle, dir string, tar io.Reader) error {
	ref, err := b.ref(ctx, h)
	if err == nil {
		err = b.owned(ctx, h, ref)
	}
	if err == nil {
		err = b.client.Upload(ctx, ref, dir, tar)
	}
	return failed("upload", h.ID, err)
}

// Download implements extensions.FileTransfer.
func (b *backend) Download(ctx context.Context, h extensions.Handle, path string, w io.Writer) error {
	ref, err := b.ref(ctx, h)
	if err == nil {
		err = b.owned(ctx, h, ref)
	}
	var left []tarstream.LeftOut
	if err == nil {
		left, err = b.client.Download(ctx, ref, path, w)
	}
	if err == nil && len(left) > 0 {
		lacks := &extensions.Incomplete{Why: tarstream.List(left)}
		for _, l := range left {
			lacks.Paths = append(lacks.Paths, l.Path)
		}
		err = extensions.Errorf(extensions.KindInvalid, "the rest arrived, but %w", lacks)
	}
	return failed("download", h.ID, err)
}
