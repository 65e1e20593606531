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

// logsFiles are those of a log.
var logsFiles = []string{"toolbox", "frame", "inside", "logs"}

// logGrace is how long the host gets to end a log that nobody reads any more.
const logGrace = 3 * time.Second

// Logs implements extensions.LogStreamer: what services print on both streams. With several services, each
// line starts with "service | ", and existing lines come in order of time. A slow reader slows the host's
// side; nothing is buffered here.
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
	began := make(chan struct{})
	heard := &hearing{first: func(said) { close(began) }}
	go func() {
		defer close(l.ended)
		_, err := b.client.Run(running, remote.Command{Script: script(logsFiles...), Vars: call.vars, Stdin: stay,
			Stdout: out, Stderr: channel(call.vars["sbx_channel"], nil, heard.hear)})
		_ = stay.Close()
		l.err = heard.outcome(err)
		_ = out.CloseWithError(failed("logs", h.ID, l.err))
	}()
	select {
	case <-began:
		return l, nil
	case <-l.ended:
	}
	select {
	case <-began: // it began, and there was little to report
		return l, nil
	default:
		cancel()
		return nil, l.err
	}
}

// logReader hangs up on Close.
type logReader struct {
	*io.PipeReader
	hangUp *io.PipeWriter
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // valid after ended
	once   sync.Once
}

// Close ends the log and waits until the host has ended its side.
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
