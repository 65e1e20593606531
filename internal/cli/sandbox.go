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
	return group("sandbox", "List, look into, use and end sandboxes",
		a.sandboxListCommand(),
		a.sandboxGetCommand(),
		a.sandboxExecCommand(),
		a.sandboxLogsCommand(),
		a.sandboxForwardCommand(),
		a.sandboxExtendCommand(),
		a.sandboxDestroyCommand(),
	)
}

func (a *app) sandboxListCommand() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "list",
		Short: "The account's sandboxes, as the ledger knows them",
		Args:  args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				list, err := e.List(c.Context(), all)
				if err != nil {
					return err
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
	c.Flags().BoolVar(&all, "all", false, "destroyed ones too")
	return c
}

func (a *app) sandboxGetCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "get ID|NAME",
		Short: "One sandbox: asks the place it runs in, and shows what was charged",
		Args:  args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				s, asked := a.observe(c.Context(), e, given[0])
				if s.ID == "" {
					return asked
				}
				v := viewOf(s)
				charges, err := e.Charges(c.Context(), s.ID)
				v.Charges = chargeViews(charges)
				shown := a.show(v, func(w io.Writer) error { return printSandbox(w, v, time.Now()) })
				return errors.Join(asked, err, shown)
			})
		},
	}
}

// observe finds a sandbox in the ledger and asks its place about it, unless
// it has ended. What the ledger knows is returned even if asking failed.
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
		Short:   "Move the end to the creation plus the given time",
		Example: "  sandboxer sandbox extend e2e-main --ttl 6h",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			switch {
			case !c.Flags().Changed("ttl"):
				return usageError(c, errors.New("--ttl is required"))
			case ttl <= 0:
				return usageError(c, fmt.Errorf("--ttl %s is not above zero", ttl))
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
	c.Flags().Var((*durationValue)(&ttl), "ttl", "time to live counted from the creation, such as 90s, 2h, 1d")
	return c
}
