package docker

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
)

// withSecrets precedes the program of every command: secrets that are variables come from the sandbox's memory.
const withSecrets = `if [ -d ` + memoryDir + ` ]; then until [ -e ` + memoryDir + `/done ]; do sleep 0.05 || sleep 1; done; ` +
	`[ ! -e ` + memoryDir + `/env ] || . ` + memoryDir + `/env; fi 2>/dev/null; `

// Exec implements extensions.Execer through the engine's own exec.
func (b *Backend) Exec(ctx context.Context, h extensions.Handle, req extensions.ExecRequest) (extensions.ExecResult, error) {
	r, err := b.exec(ctx, h, req)
	return r, failed("exec", h.ID, err)
}

func (b *Backend) exec(ctx context.Context, h extensions.Handle, req extensions.ExecRequest) (extensions.ExecResult, error) {
	var none extensions.ExecResult
	if err := req.Check(); err != nil {
		return none, err
	}
	c, err := b.enter(ctx, h, req.Service)
	if err != nil {
		return none, err
	}
	if req.User != "" {
		if _, err := b.engine.owner(ctx, c.ID, req.User); err != nil {
			return none, err
		}
	}
	return execwire.Run(ctx, req, execwire.Inside(c.Labels[labelWorkDir], b.transport(c, withSecrets)))
}

// enter finds the running container of a service, "" = the agent's. It waits for the end of a copy.
func (b *Backend) enter(ctx context.Context, h extensions.Handle, service string) (c container.Summary, err error) {
	if service == "" {
		service = extensions.AgentService
	}
	err = ready.Wait{Timeout: holdPatience}.Until(ctx, func(ctx context.Context) (string, error) {
		found, at, err := b.live(ctx, h)
		if err != nil {
			return "", err
		}
		var ok bool
		c, ok = found.service(service)
		switch {
		case !ok:
			return "", noService(found, service)
		case c.State == container.StatePaused && at.hold.thaw:
			return held(h.ID).Error(), nil
		case c.State == container.StatePaused:
			return "", extensions.Paused(h.ID)
		case c.State != container.StateRunning:
			return "", extensions.Errorf(extensions.KindConflict, "the service %s is not running: its container is %s", service, c.State).
				WithRemedy("see its log; replace the sandbox, or give the service a long-running command")
		}
		return "", nil
	})
	return c, err
}

func noService(found objects, name string) error {
	var names []string
	for _, c := range found.containers {
		names = append(names, extensions.Clean(c.Labels[labelService], 80))
	}
	slices.Sort(names)
	return extensions.Errorf(extensions.KindInvalid, "the sandbox has no service %q; it has: %s", extensions.Clean(name, 80),
		strings.Join(names, " ")).At("service").WithRemedy("name one of them")
}

// transport starts processes in a container: a shell with a program, which first is added to.
func (b *Backend) transport(c container.Summary, first string) execwire.Transport {
	return func(ctx context.Context, p execwire.Process) (int, error) {
		argv := slices.Clone(p.Argv)
		argv[2] = marking(c) + first + argv[2] // after "/bin/sh -c"
		o := client.ExecCreateOptions{Cmd: argv, User: p.User, AttachStdin: true, AttachStdout: true, AttachStderr: true, TTY: p.TTY != nil}
		var size client.ConsoleSize
		if p.TTY != nil {
			size = client.ConsoleSize{Height: uint(p.TTY.Rows), Width: uint(p.TTY.Cols)}
		}
		made, err := b.engine.ExecCreate(ctx, c.ID, o)
		if err != nil {
			return 0, notStarted(err)
		}
		conn, err := b.engine.ExecAttach(ctx, made.ID, client.ExecAttachOptions{TTY: o.TTY})
		if err != nil {
			return 0, notStarted(err)
		}
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { conn.Close() })()
		if p.TTY != nil {
			b.resize(ctx, made.ID, size)
			go b.resizes(ctx, made.ID, p.TTY.Resize)
		}
		go feed(conn, p)
		if p.TTY != nil {
			_, err = io.Copy(p.Stdout, conn.Reader)
		} else {
			_, err = stdcopy.StdCopy(p.Stdout, p.Stderr, conn.Reader)
		}
		switch {
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case err != nil:
			return 0, extensions.Errorf(extensions.KindUnreachable, "the connection broke: %w", err)
		}
		end, err := b.engine.ExecInspect(ctx, made.ID, client.ExecInspectOptions{})
		if err == nil && end.Running {
			err = errors.New("its streams ended before it did")
		}
		if err != nil {
			return 0, extensions.Errorf(extensions.KindIndeterminate, "the outcome of the command is unknown: %s",
				extensions.Clean(err.Error(), maxMessage))
		}
		return end.ExitCode, nil
	}
}

// notStarted is the error of an exec whose program was not handed over.
func notStarted(err error) error {
	switch {
	case errdefs.IsConflict(err):
		return extensions.Errorf(extensions.KindConflict, "the container cannot run a command now: %s", extensions.Clean(err.Error(), maxMessage))
	case errdefs.IsNotFound(err), noEngine(err):
		return err
	case lost(err):
		return extensions.Errorf(extensions.KindUnreachable, "the engine was not reached: %s", extensions.Clean(err.Error(), maxMessage))
	}
	return err
}

// feed passes the input on and ends it.
func feed(conn client.ExecAttachResult, p execwire.Process) {
	if _, err := io.Copy(conn.Conn, p.Stdin); err != nil && errors.Is(err, net.ErrClosed) {
		return
	}
	if p.TTY != nil {
		_, _ = conn.Conn.Write([]byte{4}) // ^D
		return
	}
	_ = conn.CloseWrite()
}

func (b *Backend) resizes(ctx context.Context, exec string, sizes <-chan [2]uint16) {
	for {
		select {
		case s, ok := <-sizes:
			if !ok {
				return
			}
			b.resize(ctx, exec, client.ConsoleSize{Height: uint(s[0]), Width: uint(s[1])})
		case <-ctx.Done():
			return
		}
	}
}

// resize sets a terminal's size; one that is not there yet has its own.
func (b *Backend) resize(ctx context.Context, exec string, size client.ConsoleSize) {
	if size.Height > 0 && size.Width > 0 {
		_, _ = b.engine.ExecResize(ctx, exec, client.ExecResizeOptions(size))
	}
}
