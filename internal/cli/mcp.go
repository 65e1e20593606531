package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/cli/mcpserver"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

func (a *app) mcpCommand() *cobra.Command {
	limits := mcpserver.Limits{TTL: time.Hour}
	c := &cobra.Command{
		Use:   "mcp --profile PROFILE",
		Short: "Let an agent make sandboxes, within limits, by the Model Context Protocol",
		Long: `Serves the Model Context Protocol on standard input and output. An agent can then make
sandboxes of the allowed profiles, run commands and move files inside, snapshot them
and end them. It sees only those that it made here. They end when it closes the
connection or this command is interrupted, and at their deadlines at the latest.

The limits are yours, and nothing that the agent reads or writes changes them. It can
pass no secrets, hosts or variables of this machine. Profiles that take secrets from
this machine, or have no walls, are refused. The budget counts what sandboxes cost,
not the storage of snapshots, which are deleted with the session.`,
		Example: `  sandboxer mcp --profile profile.quickstart
  sandboxer mcp --profile profile.container --root ~/src/app --budget '2.00 USD' --max-ttl 30m`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			for i := range limits.Profiles {
				limits.Profiles[i] = prefixed("profile.", limits.Profiles[i])
			}
			return a.withEngine(func(e *engine.Engine) error {
				s, err := mcpserver.New(e, limits, a.notify)
				if err != nil {
					return err
				}
				return s.Run(c.Context(), a.version, io.NopCloser(a.in), writeCloser{a.out})
			})
		},
	}
	f := c.Flags()
	f.StringArrayVar(&limits.Profiles, "profile", nil, "`profile` that may be used; repeatable")
	f.StringArrayVar(&limits.Roots, "root", nil, "`folder` that workspaces may come from; repeatable")
	f.StringVar(&limits.Budget, "budget", "0.00 USD", "what all sandboxes together may cost: an `amount` such as \"5.00 USD\"")
	f.IntVar(&limits.Sandboxes, "max-sandboxes", 3, "how `many` sandboxes may live at once")
	f.Var((*durationValue)(&limits.TTL), "max-ttl", "longest life of a sandbox, a `duration` such as 30m")
	f.IntVar(&limits.Output, "max-output", 64<<10, "`bytes` of each stream or file in an answer")
	f.BoolVar(&limits.OpenNetwork, "open-network", false, "admit profiles whose network is open")
	return c
}

type writeCloser struct{ io.Writer }

func (writeCloser) Close() error { return nil }
