package modaltest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/codes"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/box"
)

// execution is one command. Nobody's connection keeps it alive, and none ends it.
type execution struct {
	stdout, stderr *output
	inMu           sync.Mutex
	in             *os.File // nil = closed
	written        uint64
	over           chan struct{}
	end            *pb.TaskExecWaitResponse // once it is over
}

// output is what a stream has so far. It ends when nothing holds it any more.
type output struct {
	mu    sync.Mutex
	data  []byte
	ended bool
	more  chan struct{} // closed at the next change
}

func newOutput() *output { return &output{more: make(chan struct{})} }

func (o *output) put(b []byte, last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.data, o.ended = append(o.data, b...), o.ended || last
	close(o.more)
	o.more = make(chan struct{})
}

// next waits for what follows at.
func (o *output) next(ctx, life context.Context, at uint64) (piece []byte, last bool, err error) {
	for {
		o.mu.Lock()
		more, ended := o.more, o.ended
		if at < uint64(len(o.data)) {
			piece = o.data[at:min(at+256<<10, uint64(len(o.data)))]
			last = ended && at+uint64(len(piece)) == uint64(len(o.data))
		}
		o.mu.Unlock()
		if len(piece) > 0 || ended {
			return piece, last || len(piece) == 0, nil
		}
		select {
		case <-more:
		case <-life.Done():
			return nil, false, refuse(codes.Unavailable, "severed")
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
}

func (o *output) copy(from *os.File) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		o.put(buf[:n], err != nil)
		if err != nil {
			_ = from.Close()
			return
		}
	}
}

// withTools is a command in which the vendor's own program for files, which it brings into every sandbox, is one of sh.
func withTools(argv []string) []string {
	var does struct{ WriteFile, ReadFile *struct{ Path string } }
	if len(argv) != 2 || argv[0] != "/__modal/.bin/modal-sandbox-fs-tools" || json.Unmarshal([]byte(argv[1]), &does) != nil {
		return argv
	}
	switch {
	case does.WriteFile != nil:
		return []string{"/bin/sh", "-c", `mkdir -p "$(dirname "$1")" && cat >"$1"`, "sh", does.WriteFile.Path}
	case does.ReadFile != nil:
		return []string{"/bin/sh", "-c", `cat "$1"`, "sh", does.ReadFile.Path}
	}
	return argv
}

// start runs a command; one that was started under this id before is the same.
func (s *sandbox) start(in *pb.TaskExecStartRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.execs[in.GetExecId()] != nil {
		return nil
	}
	if s.result != nil {
		return refuse(codes.NotFound, "it has ended")
	}
	x := &execution{stdout: newOutput(), stderr: newOutput(), over: make(chan struct{})}
	argv := withTools(in.GetCommandArgs())
	cmd := exec.Command(s.LookPath(argv[0]), argv[1:]...) //nolint:noctx // nobody's call ends it
	cmd.Dir = in.GetWorkdir()
	cmd.Env = []string{"PATH=" + box.SearchPath, "HOME=/root"}
	for name, value := range s.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Env = append(cmd.Env, "MODAL_REGION="+s.place) // nothing else can set it
	var ours, theirs []*os.File
	pipes := func() (err error) {
		if in.HasPtyInfo() {
			one, other, err := box.OpenTerminal(in.GetPtyInfo().GetWinszRows(), in.GetPtyInfo().GetWinszCols())
			if err != nil {
				return err
			}
			ours, theirs = append(ours, one), append(theirs, other)
			x.in = one
			cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = other, other, other, box.OnTerminal()
			x.stderr.put(nil, true)
			return nil
		}
		for n := range 3 {
			r, w, err := os.Pipe()
			if err != nil {
				return err
			}
			if n == 0 {
				x.in, cmd.Stdin = w, r
				theirs = append(theirs, r)
				continue
			}
			ours, theirs = append(ours, r), append(theirs, w)
		}
		cmd.Stdout, cmd.Stderr = theirs[1], theirs[2]
		return nil
	}
	err := pipes()
	if err == nil {
		err = s.Start(cmd)
	}
	for _, f := range theirs {
		_ = f.Close()
	}
	if err != nil {
		for _, f := range ours {
			_ = f.Close()
		}
		return refuse(codes.Internal, "exec failed: %v", err)
	}
	s.execs[in.GetExecId()] = x
	var streams sync.WaitGroup
	streams.Go(func() { x.stdout.copy(ours[0]) })
	if len(ours) > 1 {
		streams.Go(func() { x.stderr.copy(ours[1]) })
	}
	go x.reap(cmd)
	return nil
}

func (x *execution) reap(cmd *exec.Cmd) {
	defer close(x.over)
	_ = cmd.Wait() // the state says it
	if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		sig := int32(st.Signal())
		x.end = pb.TaskExecWaitResponse_builder{Signal: &sig}.Build()
		return
	}
	code := int32(cmd.ProcessState.ExitCode())
	x.end = pb.TaskExecWaitResponse_builder{Code: &code}.Build()
}

// write gives it input; what it has already is left out.
func (x *execution) write(at uint64, b []byte, last bool) error {
	x.inMu.Lock()
	defer x.inMu.Unlock()
	if x.in == nil {
		return refuse(codes.FailedPrecondition, "stdin is closed")
	}
	if at > x.written {
		return refuse(codes.InvalidArgument, "offset %d after %d bytes", at, x.written)
	}
	if skip := x.written - at; skip < uint64(len(b)) {
		n, err := x.in.Write(b[skip:])
		x.written += uint64(n)
		if err != nil {
			return refuse(codes.FailedPrecondition, "stdin: %v", err)
		}
	}
	if last {
		err := x.in.Close()
		x.in = nil
		if err != nil && !errors.Is(err, io.ErrClosedPipe) {
			return refuse(codes.Internal, "stdin: %v", err)
		}
	}
	return nil
}
