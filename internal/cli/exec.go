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
	StdoutBase64    string `json:"stdout_base64,omitempty"` // the bytes themselves, where stdout cannot tell them
	StderrBase64    string `json:"stderr_base64,omitempty"`
	Merged          bool   `json:"merged,omitempty"`
	StdoutTruncated bool   `json:"stdout_truncated"`
	StderrTruncated bool   `json:"stderr_truncated"`
	DurationMillis  int64  `json:"duration_ms"`
}

type execFlags struct {
	stdin  bool
	detach bool
	shell  string
	env    []string
	req    engine.ExecRequest
}

func (a *app) sandboxExecCommand() *cobra.Command {
	var f execFlags
	c := &cobra.Command{
		Use:   "exec ID|NAME -- COMMAND [ARG...]",
		Short: "Run a command inside; its exit code is passed on",
		Long: `Runs a command inside a sandbox, its words taken literally: nothing is expanded
or quoted. Use --shell for a script. Output comes as it is printed; with
--format json it is captured (1 MiB of each stream) and printed with the exit code;
a stream that is not UTF-8 is there as it was in stdout_base64 or stderr_base64.
The command ends with its caller: interrupt or kill this one, or lose the
connection, and the command is killed. With --detach it goes on by itself until
it or the sandbox ends; it has no input, and its output goes nowhere.`,
		Example: `  sandboxer sandbox exec e2e-main -- go test ./...
  sandboxer sandbox exec e2e-main --shell 'ls | wc -l'
  tar c src | sandboxer sandbox exec e2e-main --stdin -- tar x
  sandboxer sandbox exec e2e-main --detach --shell 'exec ./server >server.log 2>&1'`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			req, err := f.request(given[1:], a.in)
			if err != nil {
				return err
			}
			return a.withLedger(c.Context(), func(e *engine.Engine) error { return a.exec(c.Context(), e, given[0], req) })
		},
	}
	fl := c.Flags()
	fl.BoolVarP(&f.stdin, "stdin", "i", false, "pass standard input on")
	fl.BoolVarP(&f.detach, "detach", "d", false, "start the command, which needs a shell inside, and do not wait for it")
	fl.StringVar(&f.shell, "shell", "", "run this `script` with /bin/sh instead of a command")
	fl.StringArrayVarP(&f.env, "env", "e", nil, "environment variable `key=value`; repeat it")
	fl.StringVarP(&f.req.Dir, "dir", "C", "", "`folder` inside (default: the workspace)")
	fl.StringVarP(&f.req.User, "user", "u", "", "user inside (default: the sandbox's own)")
	fl.StringVar(&f.req.Service, "service", "", "service (default: the one the profile names)")
	fl.Var((*durationValue)(&f.req.Timeout), "timeout", "kill the command after this `duration`, such as 90s, 2h, 1d (default, also for 0: 5m)")
	c.Annotations = map[string]string{ownExit: ""}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if !errors.As(err, &unknown) {
			return usageError(c, err)
		}
		return extensions.Errorf(extensions.KindInvalid, "%s: %w", c.CommandPath(), err).
			WithRemedy("put -- before the command and its arguments; `%s --help` shows the flags", c.CommandPath())
	})
	return c
}

func (f *execFlags) request(command []string, in io.Reader) (engine.ExecRequest, error) {
	req := f.req
	req.Shell = f.shell
	if len(command) > 0 {
		req.Command = command
	}
	var err error
	if req.Env, err = pairs("env", f.env); err != nil {
		return req, err
	}
	if f.stdin {
		req.Stdin = in
	}
	if err := req.Check(); err != nil || !f.detach {
		return req, err
	}
	if f.stdin || req.Timeout != 0 {
		return req, extensions.Errorf(extensions.KindInvalid, "--detach goes with neither --stdin nor --timeout: nobody waits for the command").
			WithRemedy("leave one of them out; timeout(1) inside bounds a command that goes on by itself")
	}
	return detached(req), nil
}

// detached is the request to start req's command and to leave it. A program
// that is not there is told as a shell tells it.
func detached(req engine.ExecRequest) engine.ExecRequest {
	argv := req.Command
	if req.Shell != "" {
		argv, req.Shell = []string{"/bin/sh", "-c", req.Shell}, ""
	}
	const start = `command -v "$1" >/dev/null || { echo "$1: not found" >&2; exit 127; }; "$@" </dev/null >/dev/null 2>&1 &`
	req.Command = append([]string{"/bin/sh", "-c", start, "sh"}, argv...)
	return req
}

func (a *app) exec(ctx context.Context, e *engine.Engine, idOrName string, req engine.ExecRequest) error {
	known, err := a.find(ctx, e, idOrName)
	if err != nil {
		return err
	}
	asJSON := a.global.format == formatJSON
	out, errs := &passing{to: a.out}, &passing{to: a.err}
	if !asJSON {
		req.Stdout, req.Stderr = out, errs
	}
	res, err := e.Exec(ctx, known.Receipt, req)
	if err != nil {
		return err
	}
	if lost := errors.Join(out.err, errs.err); lost != nil {
		return extensions.Errorf(extensions.KindUnavailable, "the command ended with code %d, but its output could not be written here: %w", res.ExitCode, lost).
			WithRemedy("make room where the output goes, and run it again")
	}
	if asJSON {
		err = a.show(execViewOf(res), nil)
	}
	if err == nil && res.ExitCode != 0 {
		err = exitCode(res.ExitCode)
	}
	return err
}

// passing remembers that output was lost: a command whose result nobody could
// read has not succeeded for its caller.
type passing struct {
	to  io.Writer
	err error
}

func (p *passing) Write(b []byte) (int, error) {
	n, err := p.to.Write(b)
	if err != nil && p.err == nil {
		p.err = err
	}
	return n, err
}

// base64Of is b where JSON's text would lose some of it, else "".
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
