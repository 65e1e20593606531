package local

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/wire"
)

func itoa(n int) string { return strconv.Itoa(n) }

// answerGrace is how long the init may take to report a timeout it enforced.
const answerGrace = 15 * time.Second

// Exec implements extensions.Execer. The init starts the program; our own executable does not start again.
func (b *Backend) Exec(ctx context.Context, h extensions.Handle, req extensions.ExecRequest) (extensions.ExecResult, error) {
	r, err := b.exec(ctx, h, req)
	return r, failed("exec", h.ID, err)
}

func (b *Backend) exec(ctx context.Context, h extensions.Handle, req extensions.ExecRequest) (extensions.ExecResult, error) {
	if err := req.Check(); err != nil {
		return extensions.ExecResult{}, err
	}
	if !slices.Contains([]string{"", "sandbox", "1000"}, req.User) {
		return extensions.ExecResult{}, extensions.Errorf(extensions.KindUnsupported,
			"the sandbox has no user %q: a sandbox on this machine has one user", req.User).
			WithRemedy("leave user empty, or use \"sandbox\"")
	}
	if req.Service != "" {
		return extensions.ExecResult{}, extensions.Errorf(extensions.KindUnsupported,
			"a sandbox on this machine has no services, so %q does not exist", req.Service).
			WithRemedy("leave service empty")
	}
	bx, err := b.settings.resolve(h)
	if err != nil {
		return extensions.ExecResult{}, err
	}
	timeout := req.Timeout
	if timeout == 0 {
		timeout = extensions.DefaultExecTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout+answerGrace)
	defer cancel()
	c, err := bx.open(ctx, execRequest(req, timeout))
	if err != nil {
		return extensions.ExecResult{}, err
	}
	defer c.close()
	if req.Stdin != nil {
		go func() { _ = c.send(req.Stdin) }()
	}
	if req.TTY != nil && req.TTY.Resize != nil {
		go c.resize(req.TTY.Resize)
	}
	stdout, stderr := extensions.Capture{Live: req.Stdout}, extensions.Capture{Live: req.Stderr}
	begun := time.Now()
	answer, err := c.receive(&stdout, &stderr)
	result := extensions.ExecResult{ExitCode: answer.Exit, Stdout: stdout.Kept.Bytes(), Stderr: stderr.Kept.Bytes(), Merged: req.TTY != nil,
		StdoutTruncated: stdout.Cut, StderrTruncated: stderr.Cut, Duration: time.Since(begun)}
	if answer.Code == wire.CodeTimeout {
		return result, extensions.Errorf(extensions.KindTimeout, "the command was killed after its timeout of %s", timeout).
			WithRemedy("raise the timeout, or run it in the background")
	}
	return result, mayHaveRun(bx.explain(ctx, answer, err))
}

// mayHaveRun is the error of a command that was sent: that its init cannot be reached any more does not tell
// whether it ran.
func mayHaveRun(err error) error {
	if extensions.IsKind(err, extensions.KindUnreachable) {
		return extensions.Errorf(extensions.KindIndeterminate, "the command may have run, and its outcome is unknown: %w", err).
			WithRemedy("check what it did before you run it again")
	}
	return err
}

func execRequest(req extensions.ExecRequest, timeout time.Duration) wire.Request {
	w := wire.Request{Op: wire.OpExec, Dir: []byte(req.Dir), Stdin: req.Stdin != nil, TimeoutMS: max(timeout.Milliseconds(), 1)}
	for _, a := range req.Argv() {
		w.Argv = append(w.Argv, []byte(a))
	}
	for k, v := range req.Env {
		w.Env = append(w.Env, []byte(k+"="+v))
	}
	if req.TTY != nil {
		w.TTY, w.Rows, w.Cols = true, req.TTY.Rows, req.TTY.Cols
	}
	return w
}

func (c *call) resize(sizes <-chan [2]uint16) {
	for {
		select {
		case s, ok := <-sizes:
			if !ok || c.out.Frame(wire.FrameResize, []byte{byte(s[0] >> 8), byte(s[0]), byte(s[1] >> 8), byte(s[1])}) != nil {
				return
			}
		case <-c.ended:
			return
		}
	}
}
