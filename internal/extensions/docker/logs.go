package docker

import (
	"context"
	"io"
	"strconv"
	"sync"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Logs implements extensions.LogStreamer: what the first processes of the containers print, and what others
// inside write to /proc/1/fd/1.
func (b *Backend) Logs(ctx context.Context, h extensions.Handle, req extensions.LogRequest) (io.ReadCloser, error) {
	r, err := b.logs(ctx, h, req)
	return r, failed("logs", h.ID, err)
}

func (b *Backend) logs(ctx context.Context, h extensions.Handle, req extensions.LogRequest) (io.ReadCloser, error) {
	if err := b.resolve(ctx, h); err != nil {
		return nil, err
	}
	found, err := b.look(ctx, h.ID)
	if err != nil {
		return nil, err
	}
	if found.none() {
		return nil, extensions.Errorf(extensions.KindNotFound, "%s does not exist", h.ID)
	}
	of := found.containers
	if req.Service != "" {
		c, ok := found.service(req.Service)
		if !ok {
			return nil, noService(found, req.Service)
		}
		of = []container.Summary{c}
	}
	ctx, cancel := context.WithCancel(ctx)
	r, w := io.Pipe()
	out := &lines{w: w}
	var all sync.WaitGroup
	var mu sync.Mutex
	var first error
	for _, c := range of {
		all.Go(func() {
			if err := b.logsOf(ctx, c, req, out); err != nil && ctx.Err() == nil {
				mu.Lock()
				defer mu.Unlock()
				if first == nil {
					first = err
				}
			}
		})
	}
	go func() {
		all.Wait()
		if first == nil && ctx.Err() != nil {
			first = ctx.Err()
		}
		_ = w.CloseWithError(failed("logs", h.ID, first))
	}()
	return &logReader{r, cancel}, nil
}

func (b *Backend) logsOf(ctx context.Context, c container.Summary, req extensions.LogRequest, w io.Writer) error {
	o := client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Follow: req.Follow}
	if req.Tail > 0 {
		o.Tail = strconv.Itoa(req.Tail)
	}
	r, err := b.engine.ContainerLogs(ctx, c.ID, o)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	_, err = stdcopy.StdCopy(w, w, r)
	return err
}

// lines passes on the pieces of several containers, each whole: an engine sends lines.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

type logReader struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (l *logReader) Close() error {
	l.cancel()
	return l.PipeReader.Close()
}
