package cli

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

type execView struct {
	ExitCode        int    `json:"exit_code"`
	Stdout          string `json:"stdout"`
	Stderr          string `json:"stderr"`
	StdoutBase64    string `json:"stdout_base64,omitempty"` // the exact bytes, if stdout cannot hold them
	StderrBase64    string `json:"stderr_base64,omitempty"`
	Merged          bool   `json:"merged,omitempty"`
	StdoutTruncated bool   `json:"stdout_truncated"`
	StderrTruncated bool   `json:"stderr_truncated"`
	DurationMillis  int64  `json:"duration_ms"`
}

type execFlags struct {
	stdin  bool
	detach bool
	tty    bool
	env    []string
	req    engine.ExecRequest
}

func (a *app) sandboxExecCommand() *cobra.Command {
	var f execFlags
	c := &cobra.Command{
		Use:   "exec ID|NAME -- COMMAND [ARG...]",
		Short: "Run a command inside and return its exit code",
		Long: `Runs a command inside a sandbox. Arguments are passed literally, without expansion
or quoting; use --shell for a script. Output streams as it is printed. With
--format json or yaml, the first 1 MiB of each stream is captured and printed with the exit
code; stdout_base64 or stderr_base64 holds a stream that is not UTF-8.

The command ends with exec: it is killed if you interrupt exec or if its output is no
longer read. If exec is killed or the connection is lost, ext.local and ext.compose-ssh
end the command at once, other places at its timeout at the latest. With --detach the
command runs until it or the sandbox ends. It then has no input, its output is
discarded, and exec prints its process id inside.

With --tty the command has a terminal: programs such as editors and shells work,
Ctrl-C goes to the command, and it learns when this terminal is resized. Its output
and errors are then one stream.`,
		Example: `  sandboxer sandbox exec e2e-main -- go test ./...
  sandboxer sandbox exec e2e-main --shell 'ls | wc -l'
  sandboxer sandbox exec e2e-main --tty -- bash
  tar c src | sandboxer sandbox exec e2e-main --stdin -- tar x
  sandboxer sandbox exec e2e-main --detach --shell 'exec ./server >server.log 2>&1'`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			req, err := f.request(given[1:], a.in)
			if err != nil {
				return err
			}
			return a.withLedger(c.Context(), func(e *engine.Engine) error { return a.exec(c.Context(), e, given[0], req, f.tty) })
		},
	}
	fl := c.Flags()
	fl.BoolVarP(&f.stdin, "stdin", "i", false, "pass standard input to the command")
	fl.BoolVarP(&f.detach, "detach", "d", false, "start the command, print its process id inside, and do not wait; needs a shell inside")
	f.add(c, "5m")
	return c
}

// add gives c the flags of a command inside, and the exit codes of one.
func (f *execFlags) add(c *cobra.Command, timeout string) {
	fl := c.Flags()
	fl.BoolVarP(&f.tty, "tty", "t", false, "give the command a terminal of this one's size, and pass standard input")
	fl.StringVar(&f.req.Shell, "shell", "", "run this `script` with a shell instead of a command")
	fl.StringVar(&f.req.ShellPath, "shell-path", "", "`path` inside of the shell for --shell (default: /bin/sh)")
	bindInside(fl, f)
	fl.Var((*durationValue)(&f.req.Timeout), "timeout",
		"kill the command after this `duration`, such as 90s, 2h, 1d (default and 0: "+timeout+")")
	c.Annotations = map[string]string{ownExit: ""}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if !errors.As(err, &unknown) {
			return usageError(c, err)
		}
		return extensions.Errorf(extensions.KindInvalid, "%s: %w", c.CommandPath(), err).
			WithRemedy("put -- before the command and its arguments; `%s --help` shows the flags", c.CommandPath())
	})
}

func (f *execFlags) request(command []string, in io.Reader) (engine.ExecRequest, error) {
	req := f.req
	if len(command) > 0 {
		req.Command = command
	}
	var err error
	if req.Env, err = pairs("env", f.env); err != nil {
		return req, err
	}
	if f.stdin || f.tty {
		req.Stdin = in
	}
	if req.ShellPath != "" && req.Shell == "" {
		return req, extensions.Errorf(extensions.KindInvalid, "--shell-path needs --shell").
			WithRemedy("pass the script with --shell, or name the shell as the command")
	}
	if err := req.Check(); err != nil || !f.detach {
		return req, err
	}
	if f.stdin || f.tty || req.Timeout != 0 {
		return req, extensions.Errorf(extensions.KindInvalid, "--detach excludes --stdin, --tty and --timeout: nothing waits for the command").
			WithRemedy("drop one of them; timeout(1) inside limits a detached command")
	}
	return detached(req), nil
}

// detached returns the request that starts req's command, leaves it running and prints its process id inside. It
// reports a missing program as a shell does.
func detached(req engine.ExecRequest) engine.ExecRequest {
	const start = `command -v "$1" >/dev/null || { echo "$1: not found" >&2; exit 127; }; "$@" </dev/null >/dev/null 2>&1 & echo $!`
	req.Command = append([]string{"/bin/sh", "-c", start, "sh"}, req.Argv()...)
	req.Shell, req.ShellPath = "", ""
	return req
}

func (a *app) exec(ctx context.Context, e *engine.Engine, idOrName string, req engine.ExecRequest, tty bool) error {
	known, err := a.find(ctx, e, idOrName)
	if err != nil {
		return err
	}
	captured := a.structured()
	ctx, out, errs, done := a.streams(ctx)
	defer done()
	if !captured {
		req.Stdout, req.Stderr = out, errs
	}
	if tty {
		back, err := a.giveTerminal(&req)
		if err != nil {
			return err
		}
		defer back()
	}
	res, err := e.Exec(ctx, known.Receipt, req)
	if errors.Is(context.Cause(ctx), errClosed) {
		return exitCode(exitClosed)
	}
	if err != nil {
		return err
	}
	if err := lostOutput(res, out, errs); err != nil {
		return err
	}
	if captured {
		err = a.show(execViewOf(res), nil)
	}
	if err == nil && res.ExitCode != 0 {
		err = exitCode(res.ExitCode)
	}
	return err
}

// lostOutput is the error of a command whose output could not be passed on.
func lostOutput(res engine.ExecResult, streams ...*passing) error {
	for _, s := range streams {
		if s.err != nil {
			return extensions.Errorf(extensions.KindUnavailable, "the command ended with code %d, but writing its output here failed: %w",
				res.ExitCode, s.err).
				WithRemedy("free space where the output goes, and run it again")
		}
	}
	return nil
}

// passing remembers that output was lost: a command has not succeeded if its caller could not read the
// result.
type passing struct {
	to     io.Writer
	err    error
	failed func(error) // told of the first failure; may be nil
}

func (p *passing) Write(b []byte) (int, error) {
	n, err := p.to.Write(b)
	if err != nil && p.err == nil {
		p.err = err
		if p.failed != nil {
			p.failed(err)
		}
	}
	return n, err
}

// base64Of returns b in base64 if JSON text would lose some of it, else "".
func base64Of(b []byte) string {
	if utf8.Valid(b) {
		return ""
	}
	return base64.StdEncoding.EncodeToString(b)
}

func execViewOf(r engine.ExecResult) execView {
	return execView{
		ExitCode: r.ExitCode, Stdout: string(r.Stdout), Stderr: string(r.Stderr), Merged: r.Merged,
		StdoutBase64: base64Of(r.Stdout), StderrBase64: base64Of(r.Stderr),
		StdoutTruncated: r.StdoutTruncated, StderrTruncated: r.StderrTruncated,
		DurationMillis: r.Duration.Round(time.Millisecond).Milliseconds(),
	}
}
