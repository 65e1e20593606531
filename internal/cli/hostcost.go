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
		Use:   "cost NAME",
		Short: "What a host cost you, whom for, and how much of it was idle",
		Long: `Shares what a host of yours cost among the sandboxes that were there, in the
ratio that OpenCost uses, by what each had reserved. What they bear and what was
idle add up to the cost. The ledger is read, nothing is dialled or written.`,
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
		rows = append(rows, []string{string(s.ID), s.Name, s.Profile, short(s.Time), amount(s.Allocated, v.Currency), amount(s.Borne, v.Currency)})
	}
	rows = append(rows, []string{"idle", "", "", "", "", amount(v.Idle, v.Currency)}, []string{v.Host, "", "", short(v.To.Sub(v.From)), "", amount(v.Cost, v.Currency)})
	return grid(w, rows)
}
