package e2btest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/envd/filesystem"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/envd/process"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/box"
)

// inside is the daemon of one sandbox.
type inside struct {
	process.UnimplementedProcessHandler
	filesystem.UnimplementedFilesystemHandler
	v *Vendor
	s *sandbox
}

// user is whom a call is made for: the name of its basic authentication.
func user(h http.Header) (string, error) {
	name, _, given := (&http.Request{Header: h}).BasicAuth()
	name = cmp.Or(name, "user")
	if _, known := homes[name]; given && !known {
		return "", connect.NewError(connect.CodeUnauthenticated, fmt.Errorf("invalid username: '%s'", name))
	}
	return name, nil
}

// expand makes a path inside absolute.
func expand(at, user string) (string, error) {
	if rest, ok := strings.CutPrefix(at, "~"); ok {
		if rest != "" && rest[0] != '/' {
			return "", connect.NewError(connect.CodeInvalidArgument, errors.New("cannot expand user-specific home dir"))
		}
		at = homes[user] + rest
	}
	if !path.IsAbs(at) {
		at = path.Join(homes[user], at)
	}
	return path.Clean(at), nil
}

// told keeps what the daemon writes of a request into the vendor's log: all of it.
func (in inside) told(call string, msg proto.Message) {
	text, err := protojson.Marshal(msg)
	if err != nil {
		in.v.t.Error(err)
	}
	in.v.mu.Lock()
	defer in.v.mu.Unlock()
	in.s.note(in.v.clock.Now(), "debug", call, map[string]string{"request": string(text)})
}

// Start runs a program. The call's end, other than its timeout, does not end it.
func (in inside) Start(ctx context.Context,
	req *connect.Request[process.StartRequest], stream *connect.ServerStream[process.StartResponse]) error {
	in.told("Process start (server stream start)", req.Msg)
	who, err := user(req.Header())
	if err != nil {
		return err
	}
	config := req.Msg.GetProcess()
	c := command{config: config, tag: req.Msg.Tag, pty: req.Msg.GetPty(), stdin: req.Msg.Stdin == nil || req.Msg.GetStdin()}
	if c.dir, err = expand(config.GetCwd(), who); err != nil {
		return err
	}
	if _, err := os.Stat(in.s.Host(c.dir)); err != nil {
		return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("cwd '%s' does not exist", c.dir))
	}
	if ms := stream.Conn().RequestHeader().Get("Connect-Timeout-Ms"); ms != "" {
		c.timeout = time.Duration(number(ms)) * time.Millisecond
	}
	c.path = in.s.LookPath(config.GetCmd())
	c.env = []string{"PATH=" + box.SearchPath, "HOME=" + homes[who], "USER=" + who, "LOGNAME=" + who}
	for _, env := range []map[string]string{in.s.env, config.GetEnvs()} {
		for _, name := range slices.Sorted(maps.Keys(env)) {
			c.env = append(c.env, name+"="+env[name])
		}
	}
	q, events, err := in.s.processList.start(c, ctx)
	if err != nil {
		return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("error starting process '%s': %w", config.GetCmd(), err))
	}
	return follow(ctx, q, events, req.Header(), func(e *process.ProcessEvent) error { return stream.Send(&process.StartResponse{Event: e}) })
}

// Connect follows a process that runs already, from now on.
func (in inside) Connect(ctx context.Context,
	req *connect.Request[process.ConnectRequest], stream *connect.ServerStream[process.ConnectResponse]) error {
	q, err := in.find(req.Msg.GetProcess())
	if err != nil {
		return err
	}
	return follow(ctx, q, q.listen(ctx), req.Header(),
		func(e *process.ProcessEvent) error { return stream.Send(&process.ConnectResponse{Event: e}) })
}

// follow sends a process's events until its end, and a sign of life whenever nothing happened for a while.
func follow(ctx context.Context,
	q *proc, events <-chan *process.ProcessEvent, header http.Header, send func(*process.ProcessEvent) error) error {
	begun := &process.ProcessEvent_Start{Start: &process.ProcessEvent_StartEvent{Pid: q.pid}}
	if err := send(&process.ProcessEvent{Event: begun}); err != nil {
		return err
	}
	every := 90 * time.Second
	if s, err := strconv.Atoi(header.Get("Keepalive-Ping-Interval")); err == nil && s > 0 {
		every = time.Duration(s) * time.Second
	}
	alive := time.NewTicker(every)
	defer alive.Stop()
	for {
		var e *process.ProcessEvent
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-alive.C:
			e = &process.ProcessEvent{Event: &process.ProcessEvent_Keepalive{Keepalive: &process.ProcessEvent_KeepAlive{}}}
		case e = <-events:
			alive.Reset(every)
		case <-q.gone:
			for len(events) > 0 {
				if err := send(<-events); err != nil {
					return err
				}
			}
			return send(&process.ProcessEvent{Event: &process.ProcessEvent_End{End: q.end}})
		}
		if err := send(e); err != nil {
			return err
		}
	}
}

// List tells what runs.
func (in inside) List(_ context.Context, _ *connect.Request[process.ListRequest]) (*connect.Response[process.ListResponse], error) {
	p := in.s.processList
	p.mu.Lock()
	defer p.mu.Unlock()
	out := &process.ListResponse{}
	for _, q := range p.all {
		out.Processes = append(out.Processes, &process.ProcessInfo{Config: q.config, Pid: q.pid, Tag: q.tag})
	}
	return connect.NewResponse(out), nil
}

func (in inside) find(of *process.ProcessSelector) (*proc, error) {
	p := in.s.processList
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.all {
		if _, byTag := of.GetSelector().(*process.ProcessSelector_Tag); byTag && q.tag != nil && *q.tag == of.GetTag() || !byTag &&
			q.pid == of.GetPid() {
			return q, nil
		}
	}
	return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("process %s not found", of))
}

// SendSignal signals the process itself, and not what it started.
func (in inside) SendSignal(_ context.Context,
	req *connect.Request[process.SendSignalRequest]) (*connect.Response[process.SendSignalResponse], error) {
	in.told("Process sendSignal", req.Msg)
	q, err := in.find(req.Msg.GetProcess())
	if err != nil {
		return nil, err
	}
	sig := syscall.Signal(req.Msg.GetSignal())
	if sig != syscall.SIGKILL && sig != syscall.SIGTERM {
		return nil, connect.NewError(connect.CodeUnimplemented, fmt.Errorf("invalid signal: %s", req.Msg.GetSignal()))
	}
	q.unread()
	if err := q.cmd.Process.Signal(sig); err != nil {
		return nil, connect.NewError(connect.CodeInternal, fmt.Errorf("error sending signal: %w", err))
	}
	return connect.NewResponse(&process.SendSignalResponse{}), nil
}
