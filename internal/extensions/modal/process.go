package modal

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/google/uuid"
	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/grpcline"
)

const (
	chunk    = 256 << 10        // of a command's input in one call, in bytes, as the vendor's SDK sends it
	waitTime = 55 * time.Second // of one call that waits for a command's end; the vendor ends longer ones
)

// process is one command under way.
type process struct {
	*inside
	execwire.Process
	id string
}

// run is the execwire.Transport of a sandbox.
func (i *inside) run(ctx context.Context, p execwire.Process) (exit int, err error) {
	if p.User != "" {
		return 0, extensions.Errorf(extensions.KindUnsupported, "%s runs commands as the image's own user", vendor).At("user").
			WithRemedy("drop user, or switch users inside with a program of the image")
	}
	ctx, cancel := context.WithCancel(i.as(ctx))
	defer cancel()
	q := process{i, p, uuid.NewString()}
	if err := i.fresh(q.start(ctx)); err != nil {
		return 0, err
	}
	go q.feed(ctx)
	all, together := errgroup.WithContext(ctx) // after the first failure nothing more is certain
	all.Go(func() error {
		return q.copy(together, pb.TaskExecStdioFileDescriptor_TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDOUT, p.Stdout)
	})
	if p.TTY == nil {
		all.Go(func() error {
			return q.copy(together, pb.TaskExecStdioFileDescriptor_TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDERR, p.Stderr)
		})
	}
	all.Go(func() (err error) {
		exit, err = q.wait(together)
		return err
	})
	return exit, all.Wait()
}

func (q process) start(ctx context.Context) error {
	in := pb.TaskExecStartRequest_builder{TaskId: q.task, ExecId: q.id, CommandArgs: q.Argv,
		StdoutConfig: pb.TaskExecStdoutConfig_TASK_EXEC_STDOUT_CONFIG_PIPE, StderrConfig: pb.TaskExecStderrConfig_TASK_EXEC_STDERR_CONFIG_PIPE}
	if t := q.TTY; t != nil {
		in.PtyInfo = pb.PTYInfo_builder{Enabled: true, WinszRows: uint32(t.Rows), WinszCols: uint32(t.Cols), EnvTerm: "xterm-256color",
			PtyType: pb.PTYInfo_PTY_TYPE_SHELL, NoTerminateOnIdleStdin: true}.Build()
	}
	_, err := q.router.TaskExecStart(ctx, in.Build())
	return err
}

// copy follows one stream to its end.
func (q process) copy(ctx context.Context, fd pb.TaskExecStdioFileDescriptor, w io.Writer) error {
	s, err := q.router.TaskExecStdioRead(ctx, pb.TaskExecStdioReadRequest_builder{TaskId: q.task, ExecId: q.id, FileDescriptor: fd}.Build())
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
	return execwire.Broken(err)
}

// feed gives the command its input, by calls that wait while the command does not read.
func (q process) feed(ctx context.Context) {
	offset := uint64(0)
	send := func(data []byte, last bool) error {
		_, err := q.router.TaskExecStdinWrite(ctx, pb.TaskExecStdinWriteRequest_builder{TaskId: q.task, ExecId: q.id, Offset: offset,
			Data: data, Eof: last}.Build(), grpcline.Within(extensions.MaxExecTimeout))
		offset += uint64(len(data))
		return err
	}
	q.Feed(chunk, func(data []byte) error { return send(data, false) }, func() { _ = send(nil, true) })
}

// wait waits for the command's end, by calls that each end before the vendor ends them.
func (q process) wait(ctx context.Context) (int, error) {
	in := pb.TaskExecWaitRequest_builder{TaskId: q.task, ExecId: q.id}.Build()
	for {
		out, err := q.router.TaskExecWait(ctx, in, grpcline.Within(waitTime))
		switch {
		case err == nil && out.HasSignal():
			return 128 + int(out.GetSignal()), nil
		case err == nil:
			return int(out.GetCode()), nil
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case status.Code(err) != codes.DeadlineExceeded:
			return 0, execwire.Broken(err)
		}
	}
}
