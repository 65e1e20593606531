package cli

import (
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

type usageView struct {
	Account string           `json:"account"`
	From    time.Time        `json:"from"`
	To      time.Time        `json:"to"`
	At      time.Time        `json:"at"`
	By      []string         `json:"by"`
	Settled []usageLine      `json:"settled"`
	Running []usageLine      `json:"running"`
	Totals  []usageTotalView `json:"totals"`
	// Actual is what the places of the running ones measured.
	Actual []lifeMeasureView `json:"meter_actual"`
}

// usageKeys are the keys that lines are grouped by; the others are left out.
type usageKeys struct {
	Account   string    `json:"account,omitempty"`
	Profile   string    `json:"profile,omitempty"`
	Extension string    `json:"extension,omitempty"`
	Host      string    `json:"host,omitempty"`
	Actor     string    `json:"actor,omitempty"`
	Harness   string    `json:"harness,omitempty"`
	RunID     string    `json:"run_id,omitempty"`
	Sandbox   engine.ID `json:"sandbox,omitempty"`
	Name      string    `json:"name,omitempty"`
	Day       string    `json:"day,omitempty"`
	Component string    `json:"component,omitempty"`
}

// usageSums are null for sums that are not fully known, with the known part beside each.
type usageSums struct {
	Currency        *string `json:"currency"`
	Lives           int64   `json:"lives"`
	EstimatedEnds   int64   `json:"estimated_ends"`
	UnpricedLives   int64   `json:"unpriced_lives"`
	RunningSeconds  int64   `json:"running_seconds"`
	PausedSeconds   int64   `json:"paused_seconds"`
	Billed          *string `json:"billed"`
	BilledAtLeast   *string `json:"billed_at_least"`
	OwnKey          *string `json:"own_key"`
	OwnKeyAtLeast   *string `json:"own_key_at_least"`
	OwnPlace        *string `json:"own_place"`
	OwnPlaceAtLeast *string `json:"own_place_at_least"`
}

type usageLine struct {
	usageKeys
	usageSums
	Quantity     string `json:"quantity,omitempty"` // exact, in quanta
	Unit         string `json:"unit,omitempty"`
	Consumed     string `json:"consumed,omitempty"` // in the price's unit
	ConsumedUnit string `json:"consumed_unit,omitempty"`
}

type usageTotalView struct {
	Status string `json:"status"` // settled | running
	usageSums
}

const (
	statusSettled = "settled"
	statusRunning = "running"
)

func known(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func sumsOf(s engine.UsageSums) usageSums {
	return usageSums{Currency: known(s.Currency), Lives: s.Lives, EstimatedEnds: s.Estimated, UnpricedLives: s.Unpriced,
		RunningSeconds: s.RunningSeconds, PausedSeconds: s.PausedSeconds,
		Billed: known(s.Billed.Sum), BilledAtLeast: known(s.Billed.AtLeast), OwnKey: known(s.OwnKey.Sum), OwnKeyAtLeast: known(s.OwnKey.AtLeast),
		OwnPlace: known(s.OwnPlace.Sum), OwnPlaceAtLeast: known(s.OwnPlace.AtLeast)}
}

func linesOf(rows []engine.UsageRow) []usageLine {
	out := make([]usageLine, 0, len(rows))
	for _, r := range rows {
		out = append(out, usageLine{usageKeys{r.Account, r.Profile, r.Extension, r.Host, r.Actor, r.Harness, r.RunID, r.Sandbox, r.Name, r.Day,
			r.Component},
			sumsOf(r.UsageSums), r.Quantity, r.Unit, r.Consumed, r.ConsumedUnit})
	}
	return out
}

func viewOfUsage(r engine.UsageReport) usageView {
	v := usageView{Account: r.Account, From: r.From, To: r.To, At: r.At, By: list(r.By), Settled: linesOf(r.Settled),
		Running: linesOf(r.Running), Totals: []usageTotalView{}, Actual: lifeMeasuresOf(r.Measured)}
	for _, t := range r.Totals {
		status := statusSettled
		if t.Running {
			status = statusRunning
		}
		v.Totals = append(v.Totals, usageTotalView{status, sumsOf(t.UsageSums)})
	}
	return v
}

func (a *app) ledgerUsageCommand() *cobra.Command {
	var q engine.UsageQuery
	var sandbox string
	var offline bool
	c := &cobra.Command{
		Use:   "usage",
		Short: "Show what was used, where, for whom, and its cost",
		Long: `Adds up the lives of sandboxes that ended in a period. Running sandboxes are listed
apart, priced as if they ended now, from what their places measure; they are settled
when they end. If a place does not answer within seconds, use is estimated by time
and a note says so. --offline asks no place.

Billed is the wallet's part. Own key is a vendor's bill to the owner of the key, own
place the cost of your own hosts: both are recorded only and use no credit. Amounts
in different currencies are never added. A charge at an unknown price is unknown,
never zero: its sum is shown as "at least", and unpriced counts the lives it
concerns; --by component shows the components. In CSV and JSON such an amount is
empty or null, and its known part is in billed_at_least and so on.

--from and --to take a day (2026-01-31), a month (2026-01), an RFC 3339 time, all
in UTC, or how long ago (7d). The period excludes --to itself.`,
		Example: `  sandboxer ledger usage --by profile,component
  sandboxer ledger usage --from 2026-01 --to 2026-02 --by consumer --format csv
  sandboxer ledger usage --from 7d --by day --org`,
		Args:        args(cobra.NoArgs),
		Annotations: map[string]string{moreFormats: formatCSV},
		RunE: func(c *cobra.Command, _ []string) error {
			q.Profile, q.Extension = prefixed("profile.", q.Profile), prefixed("ext.", q.Extension)
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				if sandbox != "" {
					s, err := a.find(c.Context(), e, sandbox)
					if err != nil {
						return err
					}
					q.Sandbox = s.ID
				}
				read := e.MeasuredUsage
				if offline {
					read = e.Usage
				}
				r, err := read(c.Context(), q)
				if err != nil {
					return err
				}
				v := viewOfUsage(r)
				if a.global.format == formatCSV {
					return writeUsageCSV(a.out, v)
				}
				return a.show(v, func(w io.Writer) error { return printUsage(w, v) })
			})
		},
	}
	f := c.Flags()
	f.StringVar(&q.From, "from", "", "`time` the period starts (default: the start of this month)")
	f.StringVar(&q.To, "to", "", "`time` the period ends (default: now)")
	f.StringSliceVar(&q.By, "by", []string{"profile"},
		"group lines by "+strings.Join(engine.UsageDimensions(), ", ")+"; separate several by commas, \"\" for none")
	f.BoolVar(&q.WholeOrg, "org", false, "all of the organization's workspaces")
	f.StringVar(&sandbox, "sandbox", "", "only this sandbox, by `id` or, while it lives, name")
	f.BoolVar(&offline, "offline", false, "ask no place; estimate running sandboxes by time")
	f.StringVar(&q.Profile, "profile", "", "only this profile `id`")
	f.StringVar(&q.Extension, "extension", "", "only this extension `id`")
	f.StringVar(&q.Host, "host", "", "only this host, by `name`")
	f.StringVar(&q.Component, "component", "", "only this `component`, such as vcpu")
	f.StringVar(&q.Actor, "actor", "", "only this consumer's `actor`")
	f.StringVar(&q.Harness, "harness", "", "only this consumer's `harness`")
	f.StringVar(&q.RunID, "run-id", "", "only this consumer's run `id`")
	return c
}
