package composessh

import (
	"context"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/remote"
)

// logGrace is how long the host gets to end a log that nobody reads any more.
const logGrace = 3 * time.Second

// Logs implements extensions.LogStreamer: what services print on both streams.
// Of several services each line begins with "service | ", and what there is
// comes in the order of time. A slow reader slows the host's side; nothing is
// kept here.
func (b *Backend) Logs(ctx context.Context, h extensions.Handle, req extensions.LogRequest) (io.ReadCloser, error) {
	r, err := b.logs(ctx, h, req)
	if err != nil {
		return nil, failed("logs", h.ID, err)
	}
	return r, nil
}

func (b *Backend) logs(ctx context.Context, h extensions.Handle, req extensions.LogRequest) (io.ReadCloser, error) {
	if req.Tail < 0 {
		return nil, extensions.Errorf(extensions.KindInvalid, "the number of lines %d is negative", req.Tail).At("tail")
	}
	call, err := b.enter(ctx, h, req.Service)
	if err != nil {
		return nil, err
	}
	call.vars["follow"], call.vars["tail"] = flag(req.Follow), ""
	if req.Tail > 0 {
		call.vars["tail"] = strconv.Itoa(req.Tail)
	}
	running, cancel := context.WithCancel(ctx)
	l := &logReader{cancel: cancel, ended: make(chan struct{})}
	var out *io.PipeWriter
	l.PipeReader, out = io.Pipe()
	stay, hangUp := io.Pipe() // the host's side lives as long as its stdin
	l.hangUp = hangUp
	heard := &hearing{first: make(chan said, 1)}
	go func() {
		defer close(l.ended)
		_, err := b.client.Run(running, remote.Command{Script: script("toolbox", "inside", "logs"), Vars: call.vars, Stdin: stay,
			Stdout: out, Stderr: newChannel(call.vars["channel"], nil, heard.hear)})
		_ = stay.Close()
		l.err = heard.outcome(err)
		_ = out.CloseWithError(failed("logs", h.ID, l.err))
	}()
	select {
	case <-heard.first:
		return l, nil
	case <-l.ended:
	}
	select {
	case <-heard.first: // it began, and there was little to tell
		return l, nil
	default:
		cancel()
		return nil, l.err
	}
}

// logReader hangs up when it is closed.
type logReader struct {
	*io.PipeReader
	hangUp *io.PipeWriter
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // after ended
	once   sync.Once
}

// Close ends the log and waits for the host to have ended its side.
func (l *logReader) Close() error {
	l.once.Do(func() {
		_ = l.PipeReader.Close()
		_ = l.hangUp.Close()
		select {
		case <-l.ended:
		case <-time.After(logGrace):
		}
		l.cancel()
		<-l.ended
	})
	return nil
}
