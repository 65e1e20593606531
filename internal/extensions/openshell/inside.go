package openshell

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
)

const (
	chunk     = 256 << 10 // of a stream in one message, in bytes
	endOfText = 4         // ends the input of a terminal
)

// inside is one sandbox that runs.
type inside struct {
	b                        *backend
	id                       extensions.ID
	ref, home, workDir, user string
}

// inside reaches the inside of a handle's sandbox.
func (b *backend) inside(ctx context.Context, h extensions.Handle) (*inside, error) {
	s, err := b.owned(ctx, h)
	if err != nil {
		return nil, err
	}
	if o := b.observe(h.ID, s); o.Phase != extensions.PhaseReady {
		return nil, extensions.Errorf(extensions.KindUnavailable, "it does not run: %s says %s", vendor, phaseOf(s)).
			WithRemedy("wait until it has started; if it was stopped, create it anew")
	}
	notes := s.GetMetadata().GetAnnotations()
	return &inside{b: b, id: h.ID, ref: s.GetMetadata().GetId(), home: notes[noteHome], workDir: notes[noteWorkDir],
		user: s.GetSpec().GetPolicy().GetProcess().GetRunAsUser()}, nil
}

// talk is the sending half of one command's stream.
type talk struct {
	mu sync.Mutex
	s  gateway.OpenShell_ExecSandboxInteractiveClient
}

func (t *talk) say(in *gateway.ExecSandboxInput) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.s.Send(in)
}

func (t *talk) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.s.CloseSend() // it only fails where the stream has, which its reader hears
}

// run is the execwire.Transport of a sandbox.
func (i *inside) run(ctx context.Context, p execwire.Process) (int, error) {
	if p.User != "" && p.User != i.user {
		return 0, extensions.Errorf(extensions.KindUnsupported, "the policy lets commands run as %s only", i.user).At("user").
			WithRemedy("drop user, or set options.user for the whole sandbox")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	start := &gateway.ExecSandboxRequest{SandboxId: i.ref, Command: p.Argv, Workdir: "/"}
	if p.TTY != nil {
		start.Tty, start.Rows, start.Cols = true, uint32(p.TTY.Rows), uint32(p.TTY.Cols)
	}
	s, err := i.b.gateway.ExecSandboxInteractive(ctx)
	if err != nil {
		return 0, err
	}
	t := &talk{s: s}
	if err := t.say(&gateway.ExecSandboxInput{Payload: &gateway.ExecSandboxInput_Start{Start: start}}); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	go t.feed(p)
	if p.TTY != nil && p.TTY.Resize != nil {
		go t.resize(ctx, p.TTY.Resize)
	}
	return hear(ctx, s, p)
}

// hear follows a command to its end.
func hear(ctx context.Context, s gateway.OpenShell_ExecSandboxInteractiveClient, p execwire.Process) (exit int, err error) {
	ended := false
	for {
		e, err := s.Recv()
		switch {
		case err == nil:
		case errors.Is(err, io.EOF) && ended:
			return exit, nil
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case errors.Is(err, io.EOF):
			return 0, extensions.Errorf(extensions.KindIndeterminate, "%s told no end of the command", vendor).
				WithRemedy("look whether it ran before you run it again")
		default:
			return 0, err
		}
		switch e := e.GetPayload().(type) {
		case *gateway.ExecSandboxEvent_Stdout:
			_, _ = p.Stdout.Write(e.Stdout.GetData()) // it keeps what it can, and does not fail
		case *gateway.ExecSandboxEvent_Stderr:
			if p.TTY == nil {
				_, _ = p.Stderr.Write(e.Stderr.GetData())
			}
		case *gateway.ExecSandboxEvent_Exit:
			exit, ended = int(e.Exit.GetExitCode()), true
		}
	}
}

// feed gives the command its input. One that has ended does not read, which is no failure.
func (t *talk) feed(p execwire.Process) {
	send := func(data []byte) error {
		return t.say(&gateway.ExecSandboxInput{Payload: &gateway.ExecSandboxInput_Stdin{Stdin: data}})
	}
	for {
		buf := make([]byte, chunk) // the stream may keep it
		n, err := p.Stdin.Read(buf)
		if n > 0 && send(buf[:n]) != nil {
			return
		}
		switch {
		case err == nil:
			continue
		case p.TTY != nil:
			_ = send([]byte{endOfText})
		case errors.Is(err, io.EOF):
			t.end()
		}
		return
	}
}

func (t *talk) resize(ctx context.Context, sizes <-chan [2]uint16) {
	for {
		select {
		case <-ctx.Done():
			return
		case size, ok := <-sizes:
			if !ok {
				return
			}
			_ = t.say(&gateway.ExecSandboxInput{Payload: &gateway.ExecSandboxInput_Resize{
				Resize: &gateway.ExecSandboxWindowResize{Rows: uint32(size[0]), Cols: uint32(size[1])}}})
		}
	}
}
