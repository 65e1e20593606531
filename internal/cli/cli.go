// Package cli is the command line: the same engine the Terraform provider
// uses, for people, cron and scripts. It is thin: flags in, one engine call,
// a table or JSON out.
package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Main runs one command line (without the program's name) on the process's
// own streams and returns its exit code; see exitcode.go. The first interrupt
// cancels the command, a second one ends the process.
func Main(args []string, version string, exts []extensions.Extension) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	a := &app{version: version, exts: exts, in: os.Stdin, out: os.Stdout, err: os.Stderr}
	return a.run(ctx, args)
}

type app struct {
	version string
	exts    []extensions.Extension
	in      io.Reader
	out     io.Writer
	err     io.Writer
	global  globalFlags
}

type globalFlags struct {
	catalog  []string
	ledger   string
	account  string
	stateDir string
	format   string
}

func (a *app) run(ctx context.Context, args []string) int {
	root := a.rootCommand()
	if args == nil {
		args = []string{} // cobra reads the process's own arguments for nil
	}
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	cmd, err := root.ExecuteContextC(ctx)
	var code exitCode
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	}
	err = engine.GivenUp(ctx, err)
	a.printError(err)
	if _, own := cmd.Annotations[ownExit]; own {
		return execCodeOf(err)
	}
	return codeOf(err)
}

// withEngine opens the engine for one command and closes it again.
func (a *app) withEngine(use func(*engine.Engine) error) error {
	e, err := engine.New(engine.Options{
		Extensions: a.exts,
		Catalog:    a.global.catalog,
		Ledger:     cmp.Or(a.global.ledger, os.Getenv("SANDBOXER_LEDGER")), // no default of the flag: help prints those, and it may hold a password
		StateDir:   a.global.stateDir,
		Account:    a.global.account,
	})
	if err != nil {
		return err
	}
	return errors.Join(use(e), e.Close())
}

// find looks a sandbox up in the ledger by id or, within the account, by name.
func (a *app) find(ctx context.Context, e *engine.Engine, idOrName string) (engine.Sandbox, error) {
	account, name := a.account(), idOrName
	id, err := extensions.ParseID(idOrName)
	if err == nil {
		account, name = "", ""
	}
	s, err := e.Lookup(ctx, id, account, name)
	for _, n := range s.Notices {
		a.notify(n)
	}
	return s, err
}

func (a *app) account() string {
	if a.global.account == "" {
		return engine.DefaultAccount
	}
	return a.global.account
}

func (a *app) notify(n engine.Notice) {
	if n.Detail == "" {
		a.say("note: %s", n.Summary)
		return
	}
	a.say("note: %s: %s", n.Summary, n.Detail)
}

func envList(name string) []string {
	v := os.Getenv(name)
	if v == "" {
		return nil
	}
	return splitPathList(v)
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "sandboxer",
		Short: "Sandboxes with a price, a deadline and a memory",
		Long: `sandboxer makes sandboxes from profiles, knows what they cost, ends them in time
and remembers what happened. Terraform makes them; this command line looks
after them. It reads the same ledger, by default in your state folder.`,
		Args:              noSuchCommand,
		RunE:              showHelp,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	f := root.PersistentFlags()
	f.StringArrayVar(&a.global.catalog, "catalog", envList("SANDBOXER_CATALOG"), "catalog `folder`; repeat it, later ones win ($SANDBOXER_CATALOG)")
	f.StringVar(&a.global.ledger, "ledger", "", "ledger `url`, sqlite:///path, postgres://user@host/database or https://host ($SANDBOXER_LEDGER; default: ledger.db in the state folder)")
	f.StringVar(&a.global.account, "account", os.Getenv("SANDBOXER_ACCOUNT"), "`org/workspace` ($SANDBOXER_ACCOUNT; default "+engine.DefaultAccount+")")
	f.StringVar(&a.global.stateDir, "state-dir", "", "state `folder` ($SANDBOXER_STATE_DIR; default: the user's own)")
	f.StringVar(&a.global.format, "format", formatTable, "output `form`: table or json")
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error { return checkFormat(c, a.global.format) }
	root.SetFlagErrorFunc(usageError)
	root.AddCommand(
		a.versionCommand(),
		a.profileCommand(),
		a.quoteCommand(),
		a.pricesCommand(),
		a.sandboxCommand(),
		a.hostCommand(),
		a.sweepCommand(),
		a.ledgerCommand(),
		exitCodesTopic(),
	)
	return root
}
