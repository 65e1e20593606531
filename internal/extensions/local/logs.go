package local

import (
	"context"
	"io"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/wire"
)

// Logs implements extensions.LogStreamer: the last MiB that programs printed after the command that started
// them returned.
func (b *Backend) Logs(ctx context.Context, h extensions.Handle, req extensions.LogRequest) (io.ReadCloser, error) {
	if req.Service != "" {
		return nil, failed("logs", h.ID, extensions.Errorf(extensions.KindUnsupported,
			"a sandbox on this machine has no services, so %q does not exist", req.Service).
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

// logReader hangs up on Close.
type logReader struct {
	*io.PipeReader
	c *call
}

func (l *logReader) Close() error {
	l.c.close()
	return l.PipeReader.Close()
}
