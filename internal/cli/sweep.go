package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

type sweepView struct {
	DryRun    bool        `json:"dry_run"`
	Ended     []engine.ID `json:"ended"`
	Settled   []engine.ID `json:"settled"`
	Snapshots []string    `json:"snapshots"` // deleted, as they were past their time, or gone already
	Orphans   []string    `json:"orphans"`
	Failures  []string    `json:"failures"`
}

func (a *app) sweepCommand() *cobra.Command {
	var dryRun bool
	c := &cobra.Command{
		Use:   "sweep",
		Short: "End overdue sandboxes, settle those that ended by themselves, report orphans",
		Long: `Ends overdue sandboxes of the ledger, deletes snapshots past their retention, and settles
what is gone. It reports sandboxes that are not in the ledger as orphans and leaves them
alone. In a database it also creates or migrates the ledger's tables. Run it from cron or
CI.`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			sweep := func(e *engine.Engine) error {
				r, err := e.Sweep(c.Context(), dryRun, a.notify)
				if err != nil {
					return err
				}
				v := sweepView{r.DryRun, list(r.Ended), list(r.Settled), list(r.Snapshots), list(r.Orphans), list(r.Failures)}
				if err := a.show(v, func(w io.Writer) error { return printSweep(w, v) }); err != nil {
					return err
				}
				if len(v.Failures) > 0 {
					return extensions.Errorf(extensions.KindUnavailable, "the sweep is not complete: %d failed", len(v.Failures)).
						WithRemedy("the lines that begin with failed say why; run `sandboxer sweep` again")
				}
				return nil
			}
			if !dryRun && engine.SharedLedger(a.namedLedger()) {
				return a.withEngine(sweep)
			}
			return a.withLedger(c.Context(), sweep)
		},
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "report only")
	return c
}

// list makes a nil slice print as [] instead of null.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func printSweep(w io.Writer, v sweepView) error {
	ended := "ended"
	if v.DryRun {
		ended = "would end"
	}
	rows := [][2]string{}
	for _, id := range v.Ended {
		rows = append(rows, [2]string{ended, string(id)})
	}
	for _, id := range v.Settled {
		rows = append(rows, [2]string{"settled", string(id)})
	}
	for _, id := range v.Snapshots {
		rows = append(rows, [2]string{ended, id})
	}
	for _, o := range v.Orphans {
		rows = append(rows, [2]string{"orphan", o})
	}
	for _, f := range v.Failures {
		rows = append(rows, [2]string{"failed", f})
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, "Nothing to do.")
		return err
	}
	return facts(w, rows)
}
