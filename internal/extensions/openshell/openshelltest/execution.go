package openshelltest

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/box"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
)

const (
	longestWord = 32 << 10         // bytes of one argument
	held        = 30 * time.Second // how long output is waited for that something else holds open
)

// ExecSandboxInteractive implements gateway.OpenShellServer. A command whose caller has gone runs on.
func (p plane) ExecSandboxInteractive(calls gateway.OpenShell_ExecSandboxInteractiveServer) error {
	first, err := calls.Recv()
	if err != nil {
		return err
	}
	in := first.GetStart()
	if in == nil || in.GetSandboxId() == "" || len(in.GetCommand()) == 0 || len(in.GetEnvironment()) > 0 {
		return refuse(codes.InvalidArgument, "first message must be a start payload")
	}
	for _, word := range in.GetCommand() {
		if len(word) > longestWord {
			return refuse(codes.InvalidArgument, "command argument exceeds %d byte limit", longestWord)
		}
	}
	s, err := p.g.the(in.GetSandboxId())
	if err != nil {
		return refuse(codes.NotFound, "sandbox not found")
	}
	life, err := s.life()
	if err != nil {
		return err
	}
	x, err := s.start(in)
	if err != nil {
		return refuse(codes.Internal, "%v", err)
	}
	return x.serve(life, calls)
}

// execution is one command.
type execution struct {
	in       *os.File // nil once it is closed; a terminal's is its output, too
	terminal bool
	out      [2]*os.File // the second is nil with a terminal
	over     chan struct{}
	exit     int32 // once it is over
}

// start runs a command.
func (s *sandbox) start(in *gateway.ExecSandboxRequest) (*execution, error) {
	x := &execution{over: make(chan struct{}), terminal: in.GetTty()}
	cmd := exec.Command(s.LookPath(in.GetCommand()[0]), in.GetCommand()[1:]...) //nolint:noctx // nobody's call ends it
	cmd.Dir, cmd.Env = in.GetWorkdir(), []string{"PATH=" + box.SearchPath, "HOME=/sandbox"}
	var theirs []*os.File
	pipes := func() error {
		if x.terminal {
			ours, other, err := box.OpenTerminal(in.GetRows(), in.GetCols())
			if err != nil {
				return err
			}
			theirs = append(theirs, other)
			x.in, x.out[0] = ours, ours
			cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = other, other, other, box.OnTerminal()
			return nil
		}
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		theirs, x.in, cmd.Stdin = append(theirs, r), w, r
		for n := range x.out {
			r, w, err := os.Pipe()
			if err != nil {
				return err
			}
			theirs, x.out[n] = append(theirs, w), r
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
		x.close()
		return nil, err
	}
	s.running.Go(func() {
		defer close(x.over)
		_ = cmd.Wait() // the state says it
		x.exit = int32(cmd.ProcessState.ExitCode())
		if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() {
			x.exit = 128 + int32(st.Signal())
		}
	})
	return x, nil
}

func (x *execution) close() {
	for _, f := range []*os.File{x.in, x.out[0], x.out[1]} {
		if f != nil {
			_ = f.Close() // a terminal's is both
		}
	}
}

// serve carries a command's streams until its end, the caller's, or that of life.
func (x *execution) serve(life context.Context, calls gateway.OpenShell_ExecSandboxInteractiveServer) error {
	var talking sync.Mutex
	say := func(e *gateway.ExecSandboxEvent) {
		talking.Lock()
		defer talking.Unlock()
		_ = calls.Send(e) // whoever has gone hears nothing
	}
	var streams sync.WaitGroup
	for n, from := range x.out {
		if from == nil {
			continue
		}
		streams.Go(func() {
			buf := make([]byte, 32<<10)
			for {
				k, err := from.Read(buf)
				if k > 0 {
					piece := append([]byte(nil), buf[:k]...)
					if n == 0 {
						say(&gateway.ExecSandboxEvent{Payload: &gateway.ExecSandboxEvent_Stdout{Stdout: &gateway.ExecSandboxStdout{Data: piece}}})
					} else {
						say(&gateway.ExecSandboxEvent{Payload: &gateway.ExecSandboxEvent_Stderr{Stderr: &gateway.ExecSandboxStderr{Data: piece}}})
					}
				}
				if err != nil {
					return
				}
			}
		})
	}
	go x.feed(calls)
	told := make(chan struct{})
	go func() { streams.Wait(); close(told) }()
	defer func() { x.close(); <-told }()
	ended := func() error {
		select {
		case <-life.Done():
			return refuse(codes.Unavailable, "severed")
		case <-calls.Context().Done():
			return calls.Context().Err()
		case <-x.over:
		}
		select {
		case <-told:
			return nil
		case <-life.Done():
			return refuse(codes.Unavailable, "severed")
		case <-calls.Context().Done():
			return calls.Context().Err()
		case <-time.After(held):
			return refuse(codes.Internal, "exec output delivery failed")
		}
	}
	if err := ended(); err != nil {
		return err
	}
	say(&gateway.ExecSandboxEvent{Payload: &gateway.ExecSandboxEvent_Exit{Exit: &gateway.ExecSandboxExit{ExitCode: x.exit}}})
	return nil
}

// feed gives a command what its caller sends, until the stream's end.
func (x *execution) feed(calls gateway.OpenShell_ExecSandboxInteractiveServer) {
	for {
		in, err := calls.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) && !x.terminal {
				_ = x.in.Close()
			}
			return
		}
		switch in := in.GetPayload().(type) {
		case *gateway.ExecSandboxInput_Stdin:
			if _, err := x.in.Write(in.Stdin); err != nil {
				return // it does not read any more
			}
		case *gateway.ExecSandboxInput_Resize:
			_ = box.Resize(x.in, in.Resize.GetRows(), in.Resize.GetCols())
		}
	}
}
