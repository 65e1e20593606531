package cli

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
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
}

// usageKeys are what lines are told apart by; the others are left out.
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

// usageSums have null for amounts that nobody knows.
type usageSums struct {
	Currency       *string `json:"currency"`
	Lives          int64   `json:"lives"`
	EstimatedEnds  int64   `json:"estimated_ends"`
	RunningSeconds int64   `json:"running_seconds"`
	PausedSeconds  int64   `json:"paused_seconds"`
	Billed         *string `json:"billed"`
	OwnKey         *string `json:"own_key"`
	OwnPlace       *string `json:"own_place"`
}

type usageLine struct {
	usageKeys
	usageSums
	Quantity     string `json:"quantity,omitempty"` // exact, in quanta
	Unit         string `json:"unit,omitempty"`
	Consumed     string `json:"consumed,omitempty"` // in what the price is for
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
	return usageSums{Currency: known(s.Currency), Lives: s.Lives, EstimatedEnds: s.Estimated, RunningSeconds: s.RunningSeconds, PausedSeconds: s.PausedSeconds,
		Billed: known(s.Billed), OwnKey: known(s.OwnKey), OwnPlace: known(s.OwnPlace)}
}

func linesOf(rows []engine.UsageRow) []usageLine {
	out := make([]usageLine, 0, len(rows))
	for _, r := range rows {
		out = append(out, usageLine{usageKeys{r.Account, r.Profile, r.Extension, r.Host, r.Actor, r.Harness, r.RunID, r.Sandbox, r.Name, r.Day, r.Component},
			sumsOf(r.UsageSums), r.Quantity, r.Unit, r.Consumed, r.ConsumedUnit})
	}
	return out
}

func viewOfUsage(r engine.UsageReport) usageView {
	v := usageView{Account: r.Account, From: r.From, To: r.To, At: r.At, By: list(r.By), Settled: linesOf(r.Settled), Running: linesOf(r.Running), Totals: []usageTotalView{}}
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
	c := &cobra.Command{
		Use:   "usage",
		Short: "What was used, where, for whom, and what it cost",
		Long: `Adds up what ended in a period, and tells apart what runs now: that is priced as
if it ended at this moment, and is settled when it ends.

Billed was taken from the wallet. Own key is the bill a vendor sends to the owner
of the key, own place what your own hosts cost: both are notes, and no credit was
taken for them. Amounts in different currencies are never added. A price that
nobody knows is shown as unknown, never as zero.

--from and --to take a day (2026-01-31), a month (2026-01), an RFC 3339 time, all
in UTC, or how long ago (7d). What ends at --to itself is not counted.`,
		Example: `  sandboxer ledger usage --by profile,component
  sandboxer ledger usage --from 2026-01 --to 2026-02 --by consumer --format csv
  sandboxer ledger usage --from 7d --by day --org`,
		Args:        args(cobra.NoArgs),
		Annotations: map[string]string{moreFormats: formatCSV},
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withEngine(func(e *engine.Engine) error {
				if sandbox != "" {
					s, err := a.find(c.Context(), e, sandbox)
					if err != nil {
						return err
					}
					q.Sandbox = s.ID
				}
				r, err := e.Usage(c.Context(), q)
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
	f.StringVar(&q.From, "from", "", "`time` the period begins (default: this month's beginning)")
	f.StringVar(&q.To, "to", "", "`time` the period ends (default: now)")
	f.StringSliceVar(&q.By, "by", []string{"profile"}, "what lines are told apart by: "+strings.Join(engine.UsageDimensions(), ", ")+"; several with commas, none with \"\"")
	f.BoolVar(&q.WholeOrg, "org", false, "all workspaces of the organisation")
	f.StringVar(&sandbox, "sandbox", "", "only this sandbox, by `id` or, while it lives, name")
	f.StringVar(&q.Profile, "profile", "", "only this profile `id`")
	f.StringVar(&q.Extension, "extension", "", "only this extension `id`")
	f.StringVar(&q.Host, "host", "", "only this host, by `name`")
	f.StringVar(&q.Component, "component", "", "only this `component`, such as vcpu")
	f.StringVar(&q.Actor, "actor", "", "only this consumer's `actor`")
	f.StringVar(&q.Harness, "harness", "", "only this consumer's `harness`")
	f.StringVar(&q.RunID, "run-id", "", "only this consumer's run `id`")
	return c
}

// usageColumn is one key in tables and CSV.
type usageColumn struct {
	name string
	of   func(usageLine) string
}

// usageColumns are those of the words given, in their order.
func usageColumns(by []string) []usageColumn {
	actor := usageColumn{"actor", func(l usageLine) string { return l.Actor }}
	harness := usageColumn{"harness", func(l usageLine) string { return l.Harness }}
	run := usageColumn{"run_id", func(l usageLine) string { return l.RunID }}
	of := map[string][]usageColumn{
		"account":   {{"account", func(l usageLine) string { return l.Account }}},
		"profile":   {{"profile", func(l usageLine) string { return l.Profile }}},
		"extension": {{"extension", func(l usageLine) string { return l.Extension }}},
		"host":      {{"host", func(l usageLine) string { return l.Host }}},
		"consumer":  {actor, harness, run},
		"actor":     {actor}, "harness": {harness}, "run": {run},
		"day":       {{"day", func(l usageLine) string { return l.Day }}},
		"sandbox":   {{"sandbox", func(l usageLine) string { return string(l.Sandbox) }}, {"name", func(l usageLine) string { return l.Name }}},
		"component": {{"component", func(l usageLine) string { return l.Component }}},
	}
	var out []usageColumn
	for _, word := range by {
		for _, c := range of[word] {
			if !slices.ContainsFunc(out, func(o usageColumn) bool { return o.name == c.name }) {
				out = append(out, c)
			}
		}
	}
	return out
}

func writeUsageCSV(w io.Writer, v usageView) error {
	cols := usageColumns(v.By)
	byComponent := slices.Contains(v.By, "component")
	head := []string{"status"}
	for _, c := range cols {
		head = append(head, c.name)
	}
	head = append(head, "lives", "estimated_ends", "running_seconds", "paused_seconds", "billed", "own_key", "own_place", "currency")
	if byComponent {
		head = append(head, "quantity", "unit", "consumed", "consumed_unit")
	}
	out := csv.NewWriter(w)
	if err := out.Write(head); err != nil {
		return err
	}
	for _, part := range []struct {
		status string
		lines  []usageLine
	}{{statusSettled, v.Settled}, {statusRunning, v.Running}} {
		for _, l := range part.lines {
			row := []string{part.status}
			for _, c := range cols {
				row = append(row, c.of(l))
			}
			for _, n := range []int64{l.Lives, l.EstimatedEnds, l.RunningSeconds, l.PausedSeconds} {
				row = append(row, strconv.FormatInt(n, 10))
			}
			for _, s := range []*string{l.Billed, l.OwnKey, l.OwnPlace, l.Currency} {
				row = append(row, orEmpty(s))
			}
			if byComponent {
				row = append(row, l.Quantity, l.Unit, l.Consumed, l.ConsumedUnit)
			}
			if err := out.Write(row); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func printUsage(w io.Writer, v usageView) error {
	if _, err := fmt.Fprintf(w, "Usage of %s that ended from %s to %s (UTC)\n\n", v.Account, minute(v.From), minute(v.To)); err != nil {
		return err
	}
	if len(v.Settled) == 0 {
		if _, err := fmt.Fprintln(w, "Nothing ended in this period."); err != nil {
			return err
		}
	} else if err := printUsageLines(w, v, v.Settled, statusSettled); err != nil {
		return err
	}
	if len(v.Running) > 0 {
		if _, err := fmt.Fprintf(w, "\nRunning at %s, not settled: as if it ended then\n\n", minute(v.At)); err != nil {
			return err
		}
		if err := printUsageLines(w, v, v.Running, statusRunning); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, v.notes())
	return err
}

func minute(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }

func printUsageLines(w io.Writer, v usageView, lines []usageLine, status string) error {
	cols := usageColumns(v.By)
	byComponent := slices.Contains(v.By, "component")
	var head []string
	for _, c := range cols {
		head = append(head, strings.ToUpper(strings.ReplaceAll(c.name, "_", " ")))
	}
	if len(cols) == 0 {
		head = []string{"USAGE"}
	}
	first := len(head)
	head = append(head, "LIVES", "RUNNING", "PAUSED", "BILLED", "OWN KEY", "OWN PLACE", "CURRENCY")
	if byComponent {
		head = append(head, "QUANTITY", "UNIT")
	}
	rows := [][]string{head}
	for _, l := range lines {
		row := make([]string, 0, len(head))
		for _, c := range cols {
			row = append(row, c.of(l))
		}
		if len(cols) == 0 {
			row = append(row, "all")
		}
		row = append(row, l.cells()...)
		if byComponent {
			row = append(row, l.Consumed, l.ConsumedUnit)
		}
		rows = append(rows, row)
	}
	if len(lines) > 1 || byComponent {
		for _, t := range v.Totals {
			if t.Status != status {
				continue
			}
			row := []string{"total"}
			for len(row) < first {
				row = append(row, " ")
			}
			row = append(row, t.cells()...)
			for len(row) < len(head) {
				row = append(row, " ")
			}
			rows = append(rows, row)
		}
	}
	return columns(w, first, rows)
}

func (s usageSums) cells() []string {
	amounts := []string{"unknown", "unknown", "unknown", ""}
	if s.Currency != nil {
		amounts = []string{nothing(*s.Billed), nothing(*s.OwnKey), nothing(*s.OwnPlace), *s.Currency}
	}
	return append([]string{strconv.FormatInt(s.Lives, 10), hours(s.RunningSeconds), hours(s.PausedSeconds)}, amounts...)
}

// nothing leaves out a known zero, so that what matters is seen.
func nothing(amount string) string {
	if strings.Trim(amount, "0.") == "" {
		return ""
	}
	return amount
}

// hours shows seconds of any number: 12s, 5m, 1h30m, 1234h.
func hours(seconds int64) string {
	h, m, s := seconds/3600, seconds/60%60, seconds%60
	switch {
	case seconds == 0:
		return ""
	case h > 0 && m > 0:
		return fmt.Sprintf("%dh%dm", h, m)
	case h > 0:
		return fmt.Sprintf("%dh", h)
	case m > 0:
		return fmt.Sprintf("%dm", m)
	}
	return fmt.Sprintf("%ds", s)
}

// notes explain what the lines alone do not say.
func (v usageView) notes() string {
	var estimated int64
	var memo, unknown bool
	for _, t := range v.Totals {
		estimated += t.EstimatedEnds
		unknown = unknown || t.Currency == nil
		memo = memo || t.Currency != nil && nothing(*t.OwnKey)+nothing(*t.OwnPlace) != ""
	}
	var out []string
	if memo {
		out = append(out, "Own key and own place are notes: no credit was taken for them.")
	}
	if unknown {
		out = append(out, "Unknown: nobody told a price, and none is made up.")
	}
	if estimated > 0 {
		out = append(out, fmt.Sprintf("%s at a time that nobody told: counted up to when it was last seen.", count(estimated, "life ended", "lives ended")))
	}
	if len(out) == 0 {
		return ""
	}
	return "\n" + strings.Join(out, "\n") + "\n"
}
