package local

import (
	"context"
	"io"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/wire"
)

// Upload implements extensions.FileTransfer. The init extracts the archive inside the walls, with the
// sandbox's own rights.
func (b *Backend) Upload(ctx context.Context, h extensions.Handle, dir string, archive io.Reader) error {
	bx, err := b.transfer(h, dir)
	if err == nil {
		err = bx.upload(ctx, wire.OpUpload, dir, archive)
	}
	return failed("upload", h.ID, err)
}

// Download implements extensions.FileTransfer.
func (b *Backend) Download(ctx context.Context, h extensions.Handle, path string, w io.Writer) error {
	bx, err := b.transfer(h, path)
	var r wire.Result
	if err == nil {
		r, err = bx.simple(ctx, wire.Request{Op: wire.OpDownload, Path: []byte(path)}, w)
	}
	if err == nil && (len(r.Left) > 0 || r.LeftMore) {
		err = incomplete(r)
	}
	return failed("download", h.ID, err)
}

func incomplete(r wire.Result) error {
	left := &extensions.Incomplete{More: r.LeftMore, Why: extensions.Clean(r.Message, maxMessage)}
	for _, p := range r.Left {
		left.Paths = append(left.Paths, string(p))
	}
	return extensions.Errorf(extensions.KindInvalid, "the rest arrived, but %w", left)
}

func (b *Backend) transfer(h extensions.Handle, path string) (box, error) {
	if strings.ContainsRune(path, 0) {
		return box{}, extensions.Errorf(extensions.KindInvalid, "the path contains a NUL byte")
	}
	return b.settings.resolve(h)
}
