//go:build unix

// Package execwiretest has a transport that starts processes of this machine, as a sandbox's would in the
// sandbox.
package execwiretest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
)

// Place is where processes start.
type Place struct {
	Shell []string // in place of /bin/sh
	Dir   string
	Env   []string
}

// Transport is an execwire.Transport. A process outlives its caller, as it does in a sandbox.
func (p Place) Transport(ctx context.Context, pr execwire.Process) (int, error) {
	cmd := exec.Command(p.Shell[0], append(append([]string{}, p.Shell[1:]...), pr.Argv[1:]...)...) //nolint:noctx // it outlives its caller
	cmd.Dir, cmd.Env = p.Dir, p.Env
	cmd.Stdout, cmd.Stderr = pr.Stdout, pr.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			fmt.Fprintf(pr.Stderr, "exec failed: %v\n", err)
			return 127, nil
		}
		return 0, extensions.Errorf(extensions.KindUnavailable, "nothing was started: %w", err)
	}
	go func() {
		_, _ = io.Copy(in, pr.Stdin)
		_ = in.Close()
	}()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ctx.Done(): // it may run on
		return 0, context.Cause(ctx)
	case err = <-ended:
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	code := cmd.ProcessState.ExitCode()
	if code < 0 {
		code = 128 + int(cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
	}
	return code, nil
}
