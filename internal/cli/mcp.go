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
		Short: "Let an agent create sandboxes, within limits, over the Model Context Protocol",
		Long: `Serves the Model Context Protocol on standard input and output. An agent can then create
sandboxes from the allowed profiles, run commands and transfer files inside, snapshot
them and destroy them. It sees only the sandboxes that it created in this session. They
end when it closes the connection or this command is interrupted, and at their deadlines
at the latest.

You set the limits; nothing that the agent reads or writes changes them. It cannot pass
secrets, hosts or variables of this machine. Profiles that take secrets from this
machine, or have no walls, are refused. The budget counts what sandboxes cost, but not
the storage of snapshots, which are deleted with the session.`,
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
	f.StringVar(&limits.Budget, "budget", "0.00 USD", "`amount` that all sandboxes together may cost, such as \"5.00 USD\"")
	f.IntVar(&limits.Sandboxes, "max-sandboxes", 3, "`number` of sandboxes that may live at once")
	f.Var((*durationValue)(&limits.TTL), "max-ttl", "`duration` that a sandbox may live at most, such as 30m")
	f.IntVar(&limits.Output, "max-output", 64<<10, "most `bytes` of each stream or file in an answer")
	f.BoolVar(&limits.OpenNetwork, "open-network", false, "allow profiles whose network is open")
	return c
}

type writeCloser struct{ io.Writer }

func (writeCloser) Close() error { return nil }
