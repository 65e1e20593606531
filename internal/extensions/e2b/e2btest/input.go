package e2btest

import (
	"context"
	"errors"
	"io"

	"connectrpc.com/connect"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/envd/process"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/box"
)

func (q *proc) take(in *process.ProcessInput) error {
	err := errors.New("invalid input type")
	switch in.GetInput().(type) {
	case *process.ProcessInput_Stdin:
		err = q.write(in.GetStdin(), false)
	case *process.ProcessInput_Pty:
		err = q.write(in.GetPty(), true)
	}
	if err != nil {
		return connect.NewError(connect.CodeInternal, err)
	}
	return nil
}

// SendInput writes to a process. The daemon logs what it writes.
func (in inside) SendInput(_ context.Context,
	req *connect.Request[process.SendInputRequest]) (*connect.Response[process.SendInputResponse], error) {
	in.told("Process sendInput", req.Msg)
	q, err := in.find(req.Msg.GetProcess())
	if err == nil {
		err = q.take(req.Msg.GetInput())
	}
	return connect.NewResponse(&process.SendInputResponse{}), err
}

// StreamInput writes in order to one process. The daemon does not log it.
func (in inside) StreamInput(_ context.Context,
	stream *connect.ClientStream[process.StreamInputRequest]) (*connect.Response[process.StreamInputResponse], error) {
	var q *proc
	for stream.Receive() {
		switch e := stream.Msg().GetEvent().(type) {
		case *process.StreamInputRequest_Start:
			var err error
			if q, err = in.find(e.Start.GetProcess()); err != nil {
				return nil, err
			}
		case *process.StreamInputRequest_Data:
			if q == nil {
				return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("input before the stream's start"))
			}
			if err := q.take(e.Data.GetInput()); err != nil {
				return nil, err
			}
		}
	}
	if err := stream.Err(); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return connect.NewResponse(&process.StreamInputResponse{}), nil
}

// CloseStdin ends the input of a process without a terminal.
func (in inside) CloseStdin(_ context.Context,
	req *connect.Request[process.CloseStdinRequest]) (*connect.Response[process.CloseStdinResponse], error) {
	q, err := in.find(req.Msg.GetProcess())
	if err != nil {
		return nil, err
	}
	if err := q.closeInput(); err != nil {
		return nil, connect.NewError(connect.CodeUnknown, err)
	}
	return connect.NewResponse(&process.CloseStdinResponse{}), nil
}

// Update resizes a terminal.
func (in inside) Update(_ context.Context, req *connect.Request[process.UpdateRequest]) (*connect.Response[process.UpdateResponse], error) {
	q, err := in.find(req.Msg.GetProcess())
	if err != nil {
		return nil, err
	}
	if size := req.Msg.GetPty().GetSize(); size != nil {
		if q.tty == nil {
			return nil, connect.NewError(connect.CodeInternal, errors.New("tty not assigned to process"))
		}
		if err := box.Resize(q.tty, size.GetRows(), size.GetCols()); err != nil {
			return nil, connect.NewError(connect.CodeInternal, err)
		}
	}
	return connect.NewResponse(&process.UpdateResponse{}), nil
}
