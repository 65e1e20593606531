package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/frames"
)

// Exec implements extensions.Execer.
func (b *backend) Exec(ctx context.Context, h extensions.Handle, req extensions.ExecRequest) (extensions.ExecResult, error) {
	r, err := b.exec(ctx, h, req)
	return r, failed("exec", h.ID, err)
}

func (b *backend) exec(ctx context.Context, h extensions.Handle, req extensions.ExecRequest) (r extensions.ExecResult, err error) {
	unsupported := func(field, what string) error {
		return extensions.Errorf(extensions.KindUnsupported, "a program's sandboxes have %s", what).At(field).WithRemedy("leave %s out", field)
	}
	if err := req.Check(); err != nil {
		return r, err
	}
	switch {
	case req.Service != "":
		return r, unsupported("service", "no services")
	case req.User != "":
		return r, unsupported("user", "one user only")
	case req.TTY != nil:
		return r, unsupported("tty", "no terminals")
	}
	h, d, err := b.whole(ctx, h)
	if err != nil {
		return r, err
	}
	return execwire.Run(ctx, req, execwire.Inside(d.Workdir, b.transport(h)))
}

// transport starts processes in a sandbox, each by one run of the program.
func (b *backend) transport(h extensions.Handle) execwire.Transport {
	return func(ctx context.Context, p execwire.Process) (int, error) {
		running, cancel := context.WithCancel(ctx)
		defer cancel()
		cmd, line, err := b.program(running, request{Verb: verbExec, ID: h.ID, Ref: h.Ref, Argv: p.Argv})
		if err != nil {
			return 0, err
		}
		in, err := cmd.StdinPipe()
		if err != nil {
			return 0, notStarted(err)
		}
		from, to := io.Pipe()
		words := &tail{}
		cmd.Stdout, cmd.Stderr = to, words
		if err := cmd.Start(); err != nil {
			return 0, notStarted(err)
		}
		go feed(in, line, p.Stdin)
		var failed error
		over := make(chan struct{})
		go func() {
			defer close(over)
			failed = ran(cmd)
			_ = to.CloseWithError(io.EOF)
		}()
		exit, err := show(from, p)
		_ = from.Close() // the program has nothing more to say
		if err == nil {
			select {
			case <-over: // however the program ended: its last word was the result
				return exit, nil
			case <-time.After(lingering):
			}
		}
		cancel()
		<-over
		switch known := (&extensions.Error{}); {
		case err == nil, errors.As(err, &known):
			return exit, err
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case failed != nil && errors.Is(err, io.EOF):
			err = fmt.Errorf("the program failed: %w", failed)
		case errors.Is(err, io.EOF):
			err = unknown("it ended without a result")
		}
		return 0, lost(verbExec, err, words.String())
	}
}

// feed gives the program its request and the command its input, until one of them has ended. A command that does not
// read its input is no failure.
func feed(in io.WriteCloser, line []byte, input io.Reader) {
	defer func() { _ = in.Close() }()
	if _, err := in.Write(line); err != nil {
		return
	}
	w := frames.NewWriter(in)
	if input != nil {
		if _, err := io.CopyBuffer(w.Stream(frameInput), struct{ io.Reader }{input}, make([]byte, frames.ChunkSize)); err != nil {
			return
		}
	}
	_ = w.Frame(frameInputEnd, nil)
}

// show passes on what the command prints until its result.
func show(from io.Reader, p execwire.Process) (exit int, err error) {
	for r := frames.NewReader(from); ; {
		kind, payload, err := r.Next()
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return 0, io.EOF
		case errors.Is(err, io.EOF):
			return 0, err
		case err != nil:
			return 0, unknown("%w", err)
		case kind == frameOutput: // both writers keep what they can; neither fails
			_, _ = p.Stdout.Write(payload)
		case kind == frameErrors:
			_, _ = p.Stderr.Write(payload)
		case kind == frameResult:
			return result(payload)
		default:
			return 0, unknown("there is no frame %q", string(rune(kind)))
		}
	}
}

// result reads the last frame.
func result(payload []byte) (exit int, err error) {
	var e ended
	if err := decode(payload, &e); err != nil {
		return 0, unknown("its result: %s", extensions.Clean(err.Error(), 200))
	}
	switch {
	case (e.Exit == nil) == (e.Error == nil):
		return 0, unknown("its result needs exit or error")
	case e.Error != nil:
		return 0, e.Error.err(verbExec)
	case *e.Exit < 0 || *e.Exit > 255:
		return 0, unknown("its exit code is %d", *e.Exit)
	}
	return *e.Exit, nil
}
