package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

type sweepView struct {
	DryRun   bool        `json:"dry_run"`
	Ended    []engine.ID `json:"ended"`
	Settled  []engine.ID `json:"settled"`
	Orphans  []string    `json:"orphans"`
	Failures []string    `json:"failures"`
}

func (a *app) sweepCommand() *cobra.Command {
	var dryRun bool
	c := &cobra.Command{
		Use:   "sweep",
		Short: "End what is overdue, settle what ended by itself, report orphans",
		Long: `For cron and CI. Only sandboxes of the ledger are ever ended; what is found
elsewhere is reported as an orphan and left alone. In a database it also makes
the ledger's tables, or brings them forward.`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			sweep := func(e *engine.Engine) error {
				r, err := e.Sweep(c.Context(), dryRun, a.notify)
				if err != nil {
					return err
				}
				v := sweepView{r.DryRun, list(r.Ended), list(r.Settled), list(r.Orphans), list(r.Failures)}
				if err := a.show(v, func(w io.Writer) error { return printSweep(w, v) }); err != nil {
					return err
				}
				if len(v.Failures) > 0 {
					return extensions.Errorf(extensions.KindUnavailable, "%d of the sandboxes could not be swept", len(v.Failures)).
						WithRemedy("run `sandboxer sweep` again; `sandboxer sandbox get ID` shows one of them")
				}
				return nil
			}
			if !dryRun && engine.SharedLedger(a.namedLedger()) {
				return a.withEngine(sweep)
			}
			return a.withLedger(c.Context(), sweep)
		},
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only tell")
	return c
}

// list makes an empty slice print as [] instead of null.
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
	rows := [][]string{}
	for _, id := range v.Ended {
		rows = append(rows, []string{ended, string(id)})
	}
	for _, id := range v.Settled {
		rows = append(rows, []string{"settled", string(id)})
	}
	for _, o := range v.Orphans {
		rows = append(rows, []string{"orphan", o})
	}
	for _, f := range v.Failures {
		rows = append(rows, []string{"failed", f})
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, "Nothing to do.")
		return err
	}
	return grid(w, rows)
}
