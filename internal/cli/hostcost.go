package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

func (a *app) hostCostCommand() *cobra.Command {
	var since string
	c := &cobra.Command{
		Use:   "cost HOST",
		Short: "Show what a host cost, who used it, and its idle cost",
		Long: `Splits the cost of your host among its sandboxes by what each had reserved, in
OpenCost's ratio. Their shares and the idle cost add up to the host's cost. It reads
only the ledger, and writes nothing.`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			d, err := engine.ParseDuration(since)
			if err != nil {
				return err
			}
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				to := time.Now().UTC().Truncate(time.Second)
				v, err := e.HostCost(c.Context(), given[0], to.Add(-d), to)
				if err != nil {
					return err
				}
				return a.show(v, func(w io.Writer) error { return printHostCost(w, v) })
			})
		},
	}
	c.Flags().StringVar(&since, "since", "1d", "how far to look back, a `duration`")
	return c
}

func printHostCost(w io.Writer, v engine.HostCost) error {
	rows := [][]string{{"SANDBOX", "NAME", "PROFILE", "TIME", "ALLOCATED", "BORNE"}}
	for _, s := range v.Shares {
		rows = append(rows, []string{string(s.ID), s.Name, s.Profile, short(s.Time), amount(s.Allocated, v.Currency),
			amount(s.Borne, v.Currency)})
	}
	rows = append(rows, []string{"idle", "", "", "", "", amount(v.Idle, v.Currency)},
		[]string{v.Host, "", "", short(v.To.Sub(v.From)), "", amount(v.Cost, v.Currency)})
	return grid(w, rows)
}
