package modal

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/google/uuid"
	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/grpcline"
)

const (
	chunk     = 256 << 10        // of a command's input in one call, in bytes, as the vendor's SDK sends it
	waitTime  = 55 * time.Second // of one call that waits for a command's end; the vendor ends longer ones
	endOfText = 4                // ends the input of a terminal
)

// process is one command under way.
type process struct {
	*inside
	id string
}

// run is the execwire.Transport of a sandbox.
func (i *inside) run(ctx context.Context, p execwire.Process) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if p.User != "" {
		return 0, extensions.Errorf(extensions.KindUnsupported, "%s runs commands as the image's own user", vendor).At("user").
			WithRemedy("drop user, or change it inside by a program of the image")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	q := process{i, uuid.NewString()}
	if err := q.start(ctx, p); err != nil {
		return 0, err
	}
	go q.feed(ctx, p)
	var streams sync.WaitGroup
	broken := make(chan error, 2)
	follow := func(fd pb.TaskExecStdioFileDescriptor, w io.Writer) {
		streams.Go(func() {
			if err := q.copy(ctx, fd, w); err != nil {
				broken <- err
				cancel() // nothing more is certain
			}
		})
	}
	follow(pb.TaskExecStdioFileDescriptor_TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDOUT, p.Stdout)
	if p.TTY == nil {
		follow(pb.TaskExecStdioFileDescriptor_TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDERR, p.Stderr)
	}
	exit, err := q.wait(ctx)
	if err != nil {
		cancel()
	}
	streams.Wait()
	select {
	case lost := <-broken:
		return 0, lost
	default:
	}
	return exit, err
}

func (q process) start(ctx context.Context, p execwire.Process) error {
	in := pb.TaskExecStartRequest_builder{TaskId: q.task, ExecId: q.id, CommandArgs: p.Argv,
		StdoutConfig: pb.TaskExecStdoutConfig_TASK_EXEC_STDOUT_CONFIG_PIPE, StderrConfig: pb.TaskExecStderrConfig_TASK_EXEC_STDERR_CONFIG_PIPE}
	if t := p.TTY; t != nil {
		in.PtyInfo = pb.PTYInfo_builder{Enabled: true, WinszRows: uint32(t.Rows), WinszCols: uint32(t.Cols), EnvTerm: "xterm-256color",
			PtyType: pb.PTYInfo_PTY_TYPE_SHELL, NoTerminateOnIdleStdin: true}.Build()
	}
	return q.ask(ctx, grpcline.CallTime, pb.TaskCommandRouter_TaskExecStart_FullMethodName, func(ctx context.Context) error {
		_, err := q.router.TaskExecStart(ctx, in.Build())
		return err
	})
}

// copy follows one stream to its end.
func (q process) copy(ctx context.Context, fd pb.TaskExecStdioFileDescriptor, w io.Writer) error {
	s, err := q.router.TaskExecStdioRead(q.as(ctx),
		pb.TaskExecStdioReadRequest_builder{TaskId: q.task, ExecId: q.id, FileDescriptor: fd}.Build())
	for err == nil {
		var piece *pb.TaskExecStdioReadResponse
		if piece, err = s.Recv(); err == nil {
			_, _ = w.Write(piece.GetData()) // it keeps what it can, and does not fail
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return q.cut(err)
}

// cut is the error of a command that runs on, or does not.
func (q process) cut(err error) error {
	why := q.b.line.Words(status.Convert(err).Message())
	return extensions.Errorf(extensions.KindIndeterminate, "the connection to the command broke: %s", why).
		WithRemedy("look whether it ran before you run it again")
}

// feed gives the command its input. One that has ended does not read, which is no failure.
func (q process) feed(ctx context.Context, p execwire.Process) {
	offset, buf := uint64(0), make([]byte, chunk)
	send := func(data []byte, last bool) error {
		_, err := q.router.TaskExecStdinWrite(q.as(ctx), pb.TaskExecStdinWriteRequest_builder{TaskId: q.task, ExecId: q.id, Offset: offset,
			Data: data, Eof: last}.Build())
		offset += uint64(len(data))
		return err
	}
	for {
		n, err := p.Stdin.Read(buf)
		if n > 0 && send(buf[:n], false) != nil {
			return
		}
		if err == nil {
			continue
		}
		if p.TTY != nil {
			_ = send([]byte{endOfText}, false)
		} else if errors.Is(err, io.EOF) {
			_ = send(nil, true)
		}
		return
	}
}

// wait waits for the command's end, by calls that each end before the vendor ends them.
func (q process) wait(ctx context.Context) (int, error) {
	in := pb.TaskExecWaitRequest_builder{TaskId: q.task, ExecId: q.id}.Build()
	for {
		one, cancel := context.WithTimeout(ctx, waitTime)
		out, err := q.router.TaskExecWait(q.as(one), in)
		cancel()
		switch {
		case err == nil && out.HasSignal():
			return 128 + int(out.GetSignal()), nil
		case err == nil:
			return int(out.GetCode()), nil
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case status.Code(err) != codes.DeadlineExceeded:
			return 0, q.cut(err)
		}
	}
}
