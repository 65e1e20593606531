package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

func (a *app) sandboxCommand() *cobra.Command {
	return group("sandbox", "Create, list, inspect, use and destroy sandboxes",
		a.sandboxCreateCommand(),
		a.sandboxListCommand(),
		a.sandboxGetCommand(),
		a.sandboxExecCommand(),
		a.sandboxShellCommand(),
		a.sandboxCopyCommand(),
		a.sandboxLogsCommand(),
		a.sandboxForwardCommand(),
		a.sandboxURLCommand(),
		a.sandboxExtendCommand(),
		a.sandboxSnapshotCommand(),
		a.sandboxRestoreCommand(),
		a.sandboxForkCommand(),
		a.sandboxRecreateCommand(),
		a.sandboxSyncCommand(),
		a.pauseCommand(),
		a.resumeCommand(),
		a.sandboxDestroyCommand(),
	)
}

func (a *app) sandboxListCommand() *cobra.Command {
	var all bool
	var run string
	c := &cobra.Command{
		Use:   "list",
		Short: "List the account's sandboxes in the ledger",
		Args:  args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				list, err := e.List(c.Context(), all)
				if err != nil {
					return err
				}
				if c.Flags().Changed("run-id") {
					list = ofRun(list, run)
				}
				views := viewsOf(list)
				return a.show(views, func(w io.Writer) error {
					if len(views) == 0 {
						_, err := fmt.Fprintf(w, "No sandboxes in account %s.\n", a.account())
						return err
					}
					return printSandboxes(w, views, time.Now())
				})
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "include destroyed ones")
	c.Flags().StringVar(&run, "run-id", "", "only those whose consumer has this run `id`")
	return a.watched(c)
}

func (a *app) sandboxGetCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "get ID|NAME",
		Short: "Ask a place for a sandbox's state and usage, and show its charges",
		Long: `Asks the place for the sandbox's state and for what it measured, and shows what it
has cost so far. Where the place cannot be reached, or measures nothing, use is
estimated by time, and why is said. An ended sandbox shows what was settled.`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				s, asked := a.observe(c.Context(), e, given[0])
				if s.ID == "" {
					return asked
				}
				v := viewOf(s)
				charges, err := e.Charges(c.Context(), s.ID)
				v.Charges = chargeViews(charges)
				used, unread := e.Actual(c.Context(), s.ID)
				v.Actual = viewOfActual(used)
				shown := a.show(v, func(w io.Writer) error { return printSandbox(w, v, time.Now()) })
				for _, n := range s.Notices {
					a.notify(n)
				}
				return errors.Join(asked, err, unread, shown)
			})
		},
	}
}

// observe finds a sandbox in the ledger and, unless it has ended, asks its place about it. It returns what
// the ledger knows even if the place fails to answer.
func (a *app) observe(ctx context.Context, e *engine.Engine, idOrName string) (engine.Sandbox, error) {
	known, err := a.find(ctx, e, idOrName)
	if err != nil || !known.EndedAt.IsZero() {
		return known, err
	}
	seen, err := e.Get(ctx, known.Receipt)
	if err != nil {
		return known, err
	}
	return seen, nil
}

func (a *app) sandboxExtendCommand() *cobra.Command {
	var ttl time.Duration
	c := &cobra.Command{
		Use:     "extend ID|NAME --ttl DURATION",
		Short:   "Set the deadline to the creation plus a duration",
		Example: "  sandboxer sandbox extend e2e-main --ttl 6h",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			switch {
			case !c.Flags().Changed("ttl"):
				return usageError(c, errors.New("--ttl is required"))
			case ttl <= 0:
				return usageError(c, fmt.Errorf("--ttl %s is not positive", ttl))
			}
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				known, err := a.find(c.Context(), e, given[0])
				if err != nil {
					return err
				}
				s, err := e.ExtendTTL(c.Context(), known.Receipt, ttl)
				if err != nil {
					return err
				}
				v := viewOf(s)
				return a.show(v, func(w io.Writer) error {
					_, err := fmt.Fprintf(w, "%s now ends %s.\n", s.ID, withRelative(s.ExpiresAt, time.Now()))
					return err
				})
			})
		},
	}
	c.Flags().Var((*durationValue)(&ttl), "ttl", "time to live from the creation, such as 90s, 2h, 1d")
	return c
}
