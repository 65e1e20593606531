package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// defaultProfile is what `sandboxer run` uses unless told otherwise.
const defaultProfile = "profile.quickstart"

type runFlags struct {
	execFlags
	place  placeFlags
	secret []string
	reuse  string
	report string
}

// placeFlags say which sandbox, and where.
type placeFlags struct {
	inputs []string
	req    engine.Request
}

func (f *placeFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringArrayVarP(&f.inputs, "input", "i", nil, "profile input, `key=text` or key:=json; repeatable")
	fl.StringVar(&f.req.Extension, "on", "", "the only `extension` to use, such as ext.docker")
	fl.StringArrayVar(&f.req.Hosts, "host", nil, "`name` of a registered host; repeatable, in order of preference")
}

// request returns the request for a profile, whose name and the extension's may lack the prefix.
func (f *placeFlags) request(profile string) (req engine.Request, err error) {
	req = f.req
	req.Profile, req.Extension = prefixed("profile.", profile), prefixed("ext.", req.Extension)
	req.Inputs, err = parseInputs(f.inputs)
	return req, err
}

func prefixed(prefix, name string) string {
	if name == "" || strings.HasPrefix(name, prefix) {
		return name
	}
	return prefix + name
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [PROFILE] -- COMMAND [ARG...]",
		Short: "Run one command in a sandbox of its own",
		Long: `Creates a sandbox, runs a command inside and destroys the sandbox. Standard input,
output and error are the command's, byte for byte; arguments are passed literally. At
the end, one line on standard error says what it cost.

PROFILE is a profile of the catalog, with or without its prefix; the default is
` + defaultProfile + `. The command starts in the workspace, which is empty unless the
profile has an input "repo": "-i repo=." copies this folder there.

The exit code is the command's. 124: it took longer than --timeout or the ttl. 125:
sandboxer or the place failed. --report tells these apart from a command's own.

Ctrl-C, SIGTERM and SIGHUP end the command and the sandbox. After a second one, or if
sandboxer is killed, the sandbox ends at its deadline.

--reuse NAME keeps the sandbox for later calls with the same name, profile and inputs,
until its deadline or ` + "`sandboxer sandbox destroy NAME`" + `.

--isolation none is the direct mode: the command runs on this machine as you, without
walls, in this folder if the profile has no workspace. It sees your files and
network; the profile's limits do not apply.`,
		Example: `  sandboxer run -- uname -a
  echo '{"x":1}' | sandboxer run fmt -- ./hook
  sandboxer run -i repo=. --timeout 10m --shell 'go vet ./... && go test ./...'
  sandboxer run container -i image=python:3.12-slim -- python -c 'print(1)'
  sandboxer run --reuse warm --ttl 2h -- ./step`,
		RunE: func(c *cobra.Command, given []string) error { return a.run1(c, &f, given) },
	}
	f.place.add(c)
	f.execFlags.add(c, "until the sandbox's deadline")
	fl := c.Flags()
	fl.StringVar(&f.place.req.TTL, "ttl", "", "`duration` after which the sandbox ends in any case (default: the profile's)")
	fl.StringVar(&f.place.req.Isolation, "isolation", "", "isolation `level`, the profile's or stronger, or none for no walls at all")
	fl.StringVar(&f.place.req.MaxCost, "max-cost", "", "refuse above this `amount`, such as \"1.00 USD\"")
	bindSecrets(fl, &f.secret)
	fl.StringVar(&f.reuse, "reuse", "", "keep the sandbox under this `name`, or use the one that has it")
	fl.StringVar(&f.report, "report", "", "write what happened to this `file`, as JSON")
	return c
}

// run1 is one run, with its report.
func (a *app) run1(c *cobra.Command, f *runFlags, given []string) error {
	profile, command, err := splitAtDash(c, given)
	if err != nil {
		return err
	}
	if len(command) == 0 && f.req.Shell == "" {
		return extensions.Errorf(extensions.KindInvalid, "nothing to run: give a command after --, or --shell").
			WithRemedy("as in %s -- %s", c.CommandPath(), cmp.Or(strings.Join(given, " "), "uname -a"))
	}
	req, err := f.place.request(profile)
	if err != nil {
		return err
	}
	if req.Secrets, err = resolved(c.Context(), f.secret); err != nil {
		return err
	}
	f.stdin = true
	cmd, err := f.execFlags.request(command, a.in)
	if err != nil {
		return err
	}
	if f.reuse != "" {
		req.Name, req.OnConflict = f.reuse, engine.OnConflictReuse
	}
	report, err := openReport(f.report)
	if err != nil {
		return err
	}
	v := a.runAndTell(c.Context(), req, cmd, f.tty)
	if err := report.write(v); err != nil {
		a.printError(err)
		v.ExitCode = cmp.Or(v.ExitCode, exitExecFailed)
	}
	return v.exit()
}

// splitAtDash returns the profile before "--" and the command after it.
func splitAtDash(c *cobra.Command, given []string) (profile string, command []string, err error) {
	at := c.ArgsLenAtDash()
	if at < 0 {
		at = len(given)
	}
	if at > 1 {
		return "", nil, extensions.Errorf(extensions.KindInvalid, "%s: %d words before --, and only a profile goes there", c.CommandPath(), at).
			WithRemedy("put -- before the command: %s %s -- %s", c.CommandPath(), given[0], strings.Join(given[1:], " "))
	}
	profile = defaultProfile
	if at == 1 {
		profile = given[0]
	}
	return profile, given[at:], nil
}

// streams pass the output of a command on. Once nobody reads it any more, ctx ends with errClosed, and the command with it.
func (a *app) streams(ctx context.Context) (_ context.Context, out, errs *passing, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	back := catchBrokenPipes()
	closed := func(err error) {
		if errors.Is(err, syscall.EPIPE) {
			cancel(errClosed)
		}
	}
	return ctx, &passing{to: a.out, failed: closed}, &passing{to: a.err, failed: closed}, func() {
		cancel(nil)
		back()
	}
}

// errClosed is the cause of a context whose output nobody reads any more.
var errClosed = errors.New("nobody reads the output any more")

// runAndTell runs a command and says on standard error what went wrong and what it cost.
func (a *app) runAndTell(ctx context.Context, req engine.Request, cmd engine.ExecRequest, tty bool) runView {
	ctx, out, errs, done := a.streams(ctx)
	defer done()
	cmd.Stdout, cmd.Stderr = out, errs
	begun := time.Now()
	var r engine.Run
	err := a.withEngine(func(e *engine.Engine) error {
		if req.OnConflict == "" {
			defer context.AfterFunc(ctx, func() { a.tellInterrupted(ctx) })()
		}
		making, done := a.working(ctx, "Creating a sandbox")
		defer done()
		var err error
		r, err = e.Run(making, req, cmd, func(cmd *engine.ExecRequest) (over func(), err error) {
			done()
			if tty { // only meanwhile: else Ctrl-C is ours
				return a.giveTerminal(cmd)
			}
			return func() {}, nil
		}, a.notify)
		return err
	})
	if err == nil && context.Cause(ctx) == nil {
		err = lostOutput(r.Result, out, errs)
	}
	v := viewOfRun(ctx, r, err)
	v.Durations.Total, v.StartedAt = millis(time.Since(begun)), begun.UTC()
	if err != nil && !errors.Is(context.Cause(ctx), errClosed) {
		a.printError(v.explained(ctx, err))
	}
	a.tellCost(v)
	return v
}

func (a *app) tellInterrupted(ctx context.Context) {
	var by interruption
	if errors.As(context.Cause(ctx), &by) {
		a.say("note: %s; interrupt again to leave the sandbox to its deadline", by)
	}
}

// report is the file of --report; nil = none.
type report struct{ file *os.File }

// openReport fails before anything exists.
func openReport(path string) (*report, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644) //nolint:gosec // others may read it: it holds no secret
	if err != nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "the report cannot be written: %w", err).
			WithRemedy("choose a file that you may write")
	}
	return &report{f}, nil
}

func (r *report) write(v runView) error {
	if r == nil {
		return nil
	}
	err := errors.Join(encodeJSON(r.file, v, "  "), r.file.Close())
	if err == nil {
		return nil
	}
	return fmt.Errorf("the report could not be written: %w", err)
}
