// Package cli is the command line: the same engine the Terraform provider
// uses, for people, cron and scripts. It is thin: flags in, one engine call,
// a table or JSON out.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Main runs one command line (without the program's name) on the process's
// own streams and returns its exit code; see exitcode.go. The first SIGHUP,
// SIGINT or SIGTERM cancels the command, a second one ends the process.
func Main(args []string, version string, exts []extensions.Extension) int {
	ctx, stop := untilSignal(context.Background())
	defer stop()
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
	out := &passing{to: a.out}
	a.out = out
	root := a.rootCommand()
	if args == nil {
		args = []string{} // cobra reads the process's own arguments for nil
	}
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil && out.err != nil { // help, which asks nobody whether it could be printed
		a.printError(fmt.Errorf("the output could not be written: %w", out.err))
		return exitFailed
	}
	var code exitCode
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	}
	_, own := cmd.Annotations[ownExit]
	var by interruption
	if errors.As(context.Cause(ctx), &by) {
		if own { // run again, the command inside begins anew
			err = extensions.Errorf(extensions.KindInterrupted, "%w: %w", by, err)
		} else {
			err = engine.GivenUp(ctx, err)
		}
		a.printError(err)
		return by.code()
	}
	a.printError(err)
	if own {
		return execCodeOf(err)
	}
	return codeOf(err)
}

// withEngine opens the engine for one command and closes it again.
func (a *app) withEngine(use func(*engine.Engine) error) error {
	e, err := engine.New(engine.Options{
		Extensions: a.exts,
		Catalog:    a.global.catalog,
		Ledger:     a.namedLedger(),
		StateDir:   a.global.stateDir,
		Account:    a.global.account,
	})
	if err != nil {
		return err
	}
	return errors.Join(use(e), e.Close())
}

// namedLedger is the ledger that was asked for, "" = the default one. It is no
// default of the flag: help prints those, and it may hold a password.
func (a *app) namedLedger() string { return cmp.Or(a.global.ledger, os.Getenv("SANDBOXER_LEDGER")) }

// withLedger is withEngine for commands that look at what a ledger holds. One
// that was asked for by name and is not there is a mistake, not an empty one. What
// else is wrong with it is the command's to tell, which may do without.
func (a *app) withLedger(ctx context.Context, use func(*engine.Engine) error) error {
	return a.withEngine(func(e *engine.Engine) error {
		if a.namedLedger() != "" {
			if err := e.LedgerExists(ctx); extensions.IsKind(err, extensions.KindNotFound) {
				return err
			}
		}
		return use(e)
	})
}

// find looks a sandbox up in the ledger by id or, within the account, by name.
func (a *app) find(ctx context.Context, e *engine.Engine, idOrName string) (engine.Sandbox, error) {
	account, name := a.account(), idOrName
	id, err := extensions.ParseID(idOrName)
	if err == nil {
		account, name = "", ""
	}
	return e.Lookup(ctx, id, account, name)
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
	f.StringVar(&a.global.ledger, "ledger", "", "ledger `url`, sqlite:///path or postgres://user@host/database ($SANDBOXER_LEDGER; default: ledger.db in the state folder)")
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
