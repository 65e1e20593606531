// Package cli is the command line: the engine of the Terraform provider, for people, cron and scripts. It is
// thin: flags in, one engine call, a table or JSON out.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// gcPercent is how far the heap may grow before a collection, in percent of live memory.
const gcPercent = 400

// Main runs one command line (without the program's name) on the process's own streams and returns its exit
// code; see exitcode.go. The first SIGHUP, SIGINT or SIGTERM cancels the command; a second one ends the
// process.
func Main(args []string, version string, exts []extensions.Extension) int {
	if os.Getenv("GOGC") == "" { // a command is short and holds little: memory is cheaper than its user's time
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := untilSignal(context.Background())
	defer stop()
	a := &app{version: version, exts: exts, in: os.Stdin, out: os.Stdout, err: os.Stderr,
		screen: terminalOf(os.Stdout), errScreen: terminalOf(os.Stderr)}
	return a.run(ctx, args)
}

type app struct {
	version string
	exts    []extensions.Extension
	in      io.Reader
	out     io.Writer
	err     io.Writer
	global  globalFlags
	// The terminals that out and err are; nil = none.
	screen, errScreen *terminal
	progress          *progress // of the work under way; nil = none is shown
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
	if err == nil && out.err != nil { // cobra prints help without checking the write
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
		if own { // a retry runs the command from the start
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

// withEngine opens the engine for one command and closes it afterwards.
func (a *app) withEngine(use func(*engine.Engine) error) error {
	e, err := engine.New(engine.Options{
		Extensions: a.exts,
		Catalog:    a.global.catalog,
		Ledger:     a.namedLedger(),
		StateDir:   a.global.stateDir,
		Account:    a.global.account,

		AllowedCommands: envList("SANDBOXER_ALLOWED_COMMANDS"),
	})
	if err != nil {
		return err
	}
	return errors.Join(use(e), e.Close())
}

// namedLedger returns the ledger the user asked for; "" means the default one. The variable is not the flag's
// default because help prints defaults, and the address may hold a password.
func (a *app) namedLedger() string { return cmp.Or(a.global.ledger, os.Getenv("SANDBOXER_LEDGER")) }

// withLedger is withEngine for commands that read a ledger. A ledger that the user named and that does not
// exist is a mistake, not an empty ledger. The command itself reports any other fault, as it may not need the
// ledger.
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

// find looks up a sandbox in the ledger by id or, within the account, by name.
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
	if n.Progress && a.progress != nil {
		return // it is shown
	}
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
		Short: "Sandboxes with a price, a deadline and a record",
		Long: `sandboxer creates sandboxes from profiles, knows what they cost, ends them on time
and records what happened. Terraform creates them; this command line looks after
them. Both use the same ledger, by default in your state folder.`,
		Args:          noSuchCommand,
		RunE:          showHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	f := root.PersistentFlags()
	f.StringArrayVar(&a.global.catalog, "catalog", envList("SANDBOXER_CATALOG"),
		"catalog `folder`; repeatable, later ones win ($SANDBOXER_CATALOG)")
	f.StringVar(&a.global.ledger, "ledger", "",
		"ledger `url`, sqlite:///path or postgres://user@host/database ($SANDBOXER_LEDGER; default: ledger.db in the state folder)")
	f.StringVar(&a.global.account, "account", os.Getenv("SANDBOXER_ACCOUNT"),
		"`org/workspace` ($SANDBOXER_ACCOUNT; default "+engine.DefaultAccount+")")
	f.StringVar(&a.global.stateDir, "state-dir", "", "state `folder` ($SANDBOXER_STATE_DIR; default: the user's state folder)")
	f.StringVarP(&a.global.format, "format", "o", formatTable, "output `format`: table, wide (every column), json or yaml")
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if f := c.Flag("account"); f.Changed { // an empty one is no default
			if err := engine.CheckAccount(a.global.account); err != nil {
				return err
			}
		}
		return checkFormat(c, a.global.format)
	}
	root.SetFlagErrorFunc(usageError)
	root.AddCommand(
		a.versionCommand(),
		a.profileCommand(),
		a.quoteCommand(),
		a.pricesCommand(),
		a.runCommand(),
		a.prepareCommand(),
		a.sandboxExecCommand(),
		a.sandboxCommand(),
		a.snapshotCommand(),
		a.pauseCommand(),
		a.resumeCommand(),
		a.sandboxDestroyCommand(),
		a.hostCommand(),
		a.extensionCommand(),
		a.extensionsCommand(),
		a.doctorCommand(),
		a.sweepCommand(),
		a.mcpCommand(),
		a.ledgerCommand(),
		a.completionCommand(),
		exitCodesTopic(),
	)
	a.completes(root)
	return root
}
