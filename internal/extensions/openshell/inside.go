package openshell

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/indoors"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
)

// chunk is how much of a command's input one message carries, in bytes.
const chunk = 256 << 10

// inside is one sandbox that runs.
type inside struct {
	b                        *backend
	ref, home, workDir, user string
}

// inside reaches the inside of a handle's sandbox.
func (b *backend) inside(ctx context.Context, h extensions.Handle) (*inside, error) {
	s, told, err := b.Owned(ctx, h)
	if err != nil {
		return nil, err
	}
	switch told.Phase { //nolint:exhaustive // the others are on their way, or failed
	case extensions.PhaseReady:
	case extensions.PhasePaused:
		return nil, extensions.Paused(h.ID)
	default:
		return nil, extensions.Errorf(extensions.KindUnavailable, "it does not run: %s says %s", vendor, told.State).
			WithRemedy("wait until it has started")
	}
	notes := s.GetMetadata().GetAnnotations()
	return &inside{b: b, ref: told.Handle.Ref, home: notes[noteHome], workDir: notes[noteWorkDir],
		user: s.GetSpec().GetPolicy().GetProcess().GetRunAsUser()}, nil
}

func (b *backend) enter(ctx context.Context, h extensions.Handle) (*indoors.Room, error) {
	i, err := b.inside(ctx, h)
	if err != nil {
		return nil, err
	}
	return &indoors.Room{Ref: i.ref, WorkDir: i.workDir, Home: i.home, Run: i.run}, nil
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
	go p.Feed(chunk, func(piece []byte) error {
		return t.say(&gateway.ExecSandboxInput{Payload: &gateway.ExecSandboxInput_Stdin{Stdin: piece}})
	}, t.end)
	go p.Resized(ctx, func(rows, cols uint16) {
		_ = t.say(&gateway.ExecSandboxInput{Payload: &gateway.ExecSandboxInput_Resize{
			Resize: &gateway.ExecSandboxWindowResize{Rows: uint32(rows), Cols: uint32(cols)}}})
	})
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
			return 0, execwire.Broken(errors.New(vendor + " did not report its end"))
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
