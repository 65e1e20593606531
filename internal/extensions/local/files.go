package local

import (
	"context"
	"io"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/wire"
)

// Upload implements extensions.FileTransfer. The init extracts the archive,
// inside the walls and with the sandbox's own rights.
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

// Logs implements extensions.LogStreamer: what programs printed after the
// command that started them had returned, the last MiB of it.
func (b *Backend) Logs(ctx context.Context, h extensions.Handle, req extensions.LogRequest) (io.ReadCloser, error) {
	if req.Service != "" {
		return nil, failed("logs", h.ID, extensions.Errorf(extensions.KindUnsupported, "a sandbox on this machine has no services, so none called %q", req.Service).
			WithRemedy("leave service empty"))
	}
	bx, err := b.settings.resolve(h)
	if err != nil {
		return nil, failed("logs", h.ID, err)
	}
	c, err := bx.open(ctx, wire.Request{Op: wire.OpLogs, Follow: req.Follow, Tail: req.Tail})
	if err != nil {
		return nil, failed("logs", h.ID, err)
	}
	r, w := io.Pipe()
	go func() {
		defer c.close()
		result, err := c.receive(w, io.Discard)
		if req.Follow && err != nil && ctx.Err() == nil {
			err = nil // the sandbox ended, and the log with it
		}
		_ = w.CloseWithError(failed("logs", h.ID, bx.explain(ctx, result, err)))
	}()
	return &logReader{r, c}, nil
}

// logReader hangs up when it is closed.
type logReader struct {
	*io.PipeReader
	c *call
}

func (l *logReader) Close() error {
	l.c.close()
	return l.PipeReader.Close()
}
