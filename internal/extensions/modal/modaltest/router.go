package modaltest

import (
	"context"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
)

// router reaches the tasks of all sandboxes.
type router struct {
	pb.UnimplementedTaskCommandRouterServer
	v *Vendor
}

// the sandbox of a task, for who has its token.
func (r router) the(ctx context.Context, task string) (*sandbox, error) {
	header, _ := metadata.FromIncomingContext(ctx)
	if got := header.Get("authorization"); len(got) != 1 || got[0] != "Bearer "+jwt(task) {
		return nil, refuse(codes.Unauthenticated, "invalid token")
	}
	for _, s := range r.v.all() {
		if s.task == task && s.lives() {
			return s, nil
		}
	}
	return nil, refuse(codes.NotFound, "task %s not found", task)
}

func (r router) exec(ctx context.Context, task, id string) (*sandbox, *execution, error) {
	s, err := r.the(ctx, task)
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.execs[id]; x != nil {
		return s, x, nil
	}
	return nil, nil, refuse(codes.NotFound, "exec %s not found", id)
}

// TaskExecStart implements pb.TaskCommandRouterServer.
func (r router) TaskExecStart(ctx context.Context, in *pb.TaskExecStartRequest) (*pb.TaskExecStartResponse, error) {
	s, err := r.the(ctx, in.GetTaskId())
	if err != nil {
		return nil, err
	}
	size := 0
	for _, word := range in.GetCommandArgs() {
		size += len(word)
	}
	if in.GetExecId() == "" || len(in.GetCommandArgs()) == 0 || size > 1<<16 {
		return nil, refuse(codes.InvalidArgument, "exec %q of %d words and %d bytes", in.GetExecId(), len(in.GetCommandArgs()), size)
	}
	return &pb.TaskExecStartResponse{}, s.start(in)
}

// TaskExecStdinWrite implements pb.TaskCommandRouterServer.
func (r router) TaskExecStdinWrite(ctx context.Context, in *pb.TaskExecStdinWriteRequest) (*pb.TaskExecStdinWriteResponse, error) {
	_, x, err := r.exec(ctx, in.GetTaskId(), in.GetExecId())
	if err != nil {
		return nil, err
	}
	return &pb.TaskExecStdinWriteResponse{}, x.write(in.GetOffset(), in.GetData(), in.GetEof())
}

// TaskExecStdinWriteStream implements pb.TaskCommandRouterServer.
func (r router) TaskExecStdinWriteStream(
	in grpc.ClientStreamingServer[pb.TaskExecStdinWriteStreamRequest, pb.TaskExecStdinWriteStreamResponse],
) error {
	first, err := in.Recv()
	if err != nil {
		return err
	}
	_, x, err := r.exec(in.Context(), first.GetStart().GetTaskId(), first.GetStart().GetExecId())
	if err != nil {
		return err
	}
	for at := first.GetStart().GetOffset(); ; {
		piece, err := in.Recv()
		if err != nil {
			return err
		}
		if err := x.write(at, piece.GetData(), piece.HasEnd()); err != nil {
			return err
		}
		if at += uint64(len(piece.GetData())); piece.HasEnd() {
			return in.SendAndClose(&pb.TaskExecStdinWriteStreamResponse{})
		}
	}
}

// TaskExecStdioRead implements pb.TaskCommandRouterServer.
func (r router) TaskExecStdioRead(in *pb.TaskExecStdioReadRequest, out grpc.ServerStreamingServer[pb.TaskExecStdioReadResponse]) error {
	s, x, err := r.exec(out.Context(), in.GetTaskId(), in.GetExecId())
	if err != nil {
		return err
	}
	from := x.stdout
	if in.GetFileDescriptor() == pb.TaskExecStdioFileDescriptor_TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDERR {
		from = x.stderr
	}
	life := s.life()
	for at := in.GetOffset(); ; {
		piece, last, err := from.next(out.Context(), life, at)
		if err != nil {
			return err
		}
		if len(piece) > 0 {
			if err := out.Send(pb.TaskExecStdioReadResponse_builder{Data: piece}.Build()); err != nil {
				return err
			}
		}
		if at += uint64(len(piece)); last {
			return nil
		}
	}
}

// TaskExecWait implements pb.TaskCommandRouterServer.
func (r router) TaskExecWait(ctx context.Context, in *pb.TaskExecWaitRequest) (*pb.TaskExecWaitResponse, error) {
	s, x, err := r.exec(ctx, in.GetTaskId(), in.GetExecId())
	if err != nil {
		return nil, err
	}
	select {
	case <-x.over:
		return x.end, nil
	case <-s.life().Done():
		return nil, refuse(codes.Unavailable, "severed")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TaskSnapshotFilesystem implements pb.TaskCommandRouterServer.
func (r router) TaskSnapshotFilesystem(ctx context.Context,
	in *pb.TaskSnapshotFilesystemRequest) (*pb.TaskSnapshotFilesystemResponse, error) {
	s, err := r.the(ctx, in.GetTaskId())
	if err != nil {
		return nil, err
	}
	if in.GetSnapshotId() == "" || in.GetTtlSeconds() == 0 || in.GetTtlSeconds() < -1 {
		return nil, refuse(codes.InvalidArgument, "snapshot %q for %d s", in.GetSnapshotId(), in.GetTtlSeconds())
	}
	id, err := r.v.keep(s, in.GetSnapshotId())
	if err != nil {
		return nil, refuse(codes.Internal, "%v", err)
	}
	return pb.TaskSnapshotFilesystemResponse_builder{ImageId: id}.Build(), nil
}
