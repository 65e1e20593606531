package e2b

import (
	"context"
	"errors"
	"net/http"

	"connectrpc.com/connect"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/envd/process"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

// chunk is how much of a command's input one call carries, in bytes.
const chunk = 1 << 20

func (e *envd) options(secrets map[string]extensions.Secret) []connect.ClientOption {
	set := func(h http.Header) {
		maps := e.header.Clone()
		for name, s := range secrets {
			maps.Set(name, s.Reveal())
		}
		for name := range maps {
			h[name] = maps[name]
		}
	}
	return []connect.ClientOption{connect.WithReadMaxBytes(maxMessage), connect.WithInterceptors(headers(set))}
}

// headers sets the same header fields on every call.
type headers func(http.Header)

func (h headers) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		h(r.Header())
		return next(ctx, r)
	}
}

func (h headers) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, s connect.Spec) connect.StreamingClientConn {
		c := next(ctx, s)
		h(c.RequestHeader())
		return c
	}
}

func (headers) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// run is the execwire.Transport of a sandbox.
func (e *envd) run(ctx context.Context, p execwire.Process) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	input := true
	start := &process.StartRequest{Process: &process.ProcessConfig{Cmd: p.Argv[0], Args: p.Argv[1:]}, Stdin: &input}
	if p.TTY != nil {
		start.Pty = window(p.TTY.Rows, p.TTY.Cols)
	}
	req := connect.NewRequest(start)
	if p.User != "" {
		req.Header().Set("Authorization", as(p.User))
	}
	var sent webcall.Sent
	stream, err := e.processes.Start(sent.Watch(ctx), req)
	if err != nil {
		return 0, refused(sent.Maybe(), p.User, err)
	}
	defer func() { cancel(); _ = stream.Close() }()
	for stream.Receive() {
		switch ev := stream.Msg().GetEvent().GetEvent().(type) {
		case *process.ProcessEvent_Start:
			go e.feed(ctx, ev.Start.GetPid(), p)
		case *process.ProcessEvent_Data:
			show(p, ev.Data)
		case *process.ProcessEvent_End:
			return int(ev.End.GetExitCode()), nil
		}
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	switch err := stream.Err(); {
	case connect.CodeOf(err) == connect.CodeDeadlineExceeded && err != nil: // the daemon's clock was first
		return 0, context.DeadlineExceeded
	case err != nil:
		return 0, refused(sent.Maybe(), p.User, err)
	}
	return 0, execwire.Broken(errors.New("its stream ended before it did"))
}

func show(p execwire.Process, d *process.ProcessEvent_DataEvent) {
	switch out := d.GetOutput().(type) { // both writers keep what they can; neither fails
	case *process.ProcessEvent_DataEvent_Stdout:
		_, _ = p.Stdout.Write(out.Stdout)
	case *process.ProcessEvent_DataEvent_Stderr:
		_, _ = p.Stderr.Write(out.Stderr)
	case *process.ProcessEvent_DataEvent_Pty:
		_, _ = p.Stdout.Write(out.Pty)
	}
}

func window(rows, cols uint16) *process.PTY {
	return &process.PTY{Size: &process.PTY_Size{Rows: uint32(rows), Cols: uint32(cols)}}
}

// feed gives a process its input, and its terminal its size.
func (e *envd) feed(ctx context.Context, pid uint32, p execwire.Process) {
	it := &process.ProcessSelector{Selector: &process.ProcessSelector_Pid{Pid: pid}}
	go p.Resized(ctx, func(rows, cols uint16) {
		_, _ = e.processes.Update(ctx, connect.NewRequest(&process.UpdateRequest{Process: it, Pty: window(rows, cols)}))
	})
	p.Feed(chunk, func(b []byte) error {
		in := &process.ProcessInput{Input: &process.ProcessInput_Stdin{Stdin: b}}
		if p.TTY != nil {
			in.Input = &process.ProcessInput_Pty{Pty: b}
		}
		return e.input(ctx, it, in)
	}, func() {
		_, _ = e.processes.CloseStdin(ctx, connect.NewRequest(&process.CloseStdinRequest{Process: it}))
	})
}

// input sends one piece by a stream of its own: the daemon logs the content of the plain call, and what it logs
// the vendor keeps.
func (e *envd) input(ctx context.Context, it *process.ProcessSelector, in *process.ProcessInput) error {
	stream := e.processes.StreamInput(ctx)
	err := stream.Send(&process.StreamInputRequest{Event: &process.StreamInputRequest_Start{
		Start: &process.StreamInputRequest_StartEvent{Process: it}}})
	if err == nil {
		err = stream.Send(&process.StreamInputRequest{Event: &process.StreamInputRequest_Data{
			Data: &process.StreamInputRequest_DataEvent{Input: in}}})
	}
	_, ended := stream.CloseAndReceive()
	return errors.Join(err, ended)
}
