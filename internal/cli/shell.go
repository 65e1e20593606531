package cli

import (
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// theirShell starts bash where there is one, else sh.
const theirShell = `command -v bash >/dev/null 2>&1 && exec bash; exec sh`

func (a *app) sandboxShellCommand() *cobra.Command {
	var f execFlags
	c := &cobra.Command{
		Use:   "shell ID|NAME",
		Short: "Work in a shell inside",
		Long: `Starts a shell inside, bash if there is one and sh otherwise. It uses your input, output
and terminal, if you have one. It ends when this command or the sandbox ends. The exit
code is the shell's.`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			f.stdin, f.req.Shell = true, theirShell
			f.req.Timeout = extensions.MaxExecTimeout
			req, err := f.request(nil, a.in)
			if err != nil {
				return err
			}
			return a.withLedger(c.Context(), func(e *engine.Engine) error { return a.exec(c.Context(), e, given[0], req, keysOf(a.in)) })
		},
		Annotations: map[string]string{ownExit: ""},
	}
	bindInside(c.Flags(), &f)
	return c
}

// keysOf reports whether somebody types the input.
func keysOf(in io.Reader) bool {
	f, ok := in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// bindInside adds where and as whom a command runs.
func bindInside(fl *pflag.FlagSet, f *execFlags) {
	fl.StringArrayVarP(&f.env, "env", "e", nil, "environment variable `key=value`; repeatable")
	fl.StringVarP(&f.req.Dir, "dir", "C", "", "`folder` inside (default: the workspace)")
	fl.StringVarP(&f.req.User, "user", "u", "", "user inside (default: the sandbox's user)")
	fl.StringVar(&f.req.Service, "service", "", "service (default: the profile's)")
}
