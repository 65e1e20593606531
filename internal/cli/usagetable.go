package cli

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// usageColumn is one key in tables and CSV.
type usageColumn struct {
	name string
	of   func(usageLine) string
}

// usageColumns returns the columns of the given keys, in order.
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
	head = append(head, "unpriced_lives", "billed_at_least", "own_key_at_least", "own_place_at_least")
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
			row = append(row, strconv.FormatInt(l.UnpricedLives, 10), orEmpty(l.BilledAtLeast), orEmpty(l.OwnKeyAtLeast), orEmpty(l.OwnPlaceAtLeast))
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
		if _, err := fmt.Fprintf(w, "\nRunning at %s, not settled: priced as if it ended then\n\n", minute(v.At)); err != nil {
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
	head = append(head, "LIVES")
	unpriced := slices.ContainsFunc(lines, func(l usageLine) bool { return l.UnpricedLives > 0 })
	if unpriced {
		head = append(head, "UNPRICED")
	}
	head = append(head, "RUNNING", "PAUSED", "BILLED", "OWN KEY", "OWN PLACE", "CURRENCY")
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
		row = append(row, l.cells(unpriced)...)
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
			row = append(row, t.cells(unpriced)...)
			for len(row) < len(head) {
				row = append(row, " ")
			}
			rows = append(rows, row)
		}
	}
	return columns(w, first, rows)
}

// cells returns the sums, and the lives without a price only if the table has that column.
func (s usageSums) cells(unpriced bool) []string {
	out := []string{strconv.FormatInt(s.Lives, 10)}
	if unpriced {
		out = append(out, counted(s.UnpricedLives))
	}
	return append(out, hours(s.RunningSeconds), hours(s.PausedSeconds),
		atLeast(s.Billed, s.BilledAtLeast), atLeast(s.OwnKey, s.OwnKeyAtLeast), atLeast(s.OwnPlace, s.OwnPlaceAtLeast), orEmpty(s.Currency))
}

// atLeast is a sum, or its known part.
func atLeast(sum, least *string) string {
	switch {
	case sum != nil:
		return nothing(*sum)
	case nothing(orEmpty(least)) == "":
		return "unknown"
	}
	return "at least " + *least
}

// counted omits a zero.
func counted(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// nothing omits a known zero, so that the rest stands out.
func nothing(amount string) string {
	if strings.Trim(amount, "0.") == "" {
		return ""
	}
	return amount
}

// hours formats any number of seconds: 12s, 5m, 1h30m, 1234h.
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

// notes explain what the lines alone do not show.
func (v usageView) notes() string {
	var estimated, unpriced int64
	var memo bool
	for _, t := range v.Totals {
		estimated += t.EstimatedEnds
		unpriced += t.UnpricedLives
		memo = memo || nothing(orEmpty(t.OwnKeyAtLeast))+nothing(orEmpty(t.OwnPlaceAtLeast)) != ""
	}
	var out []string
	if memo {
		out = append(out, "Own key and own place are recorded only: they use no credit.")
	}
	if unpriced > 0 {
		out = append(out, fmt.Sprintf("Unknown: %s had a charge without a known price. --by component shows which.",
			count(unpriced, "life", "lives")))
	}
	if estimated > 0 {
		out = append(out, fmt.Sprintf("%s at an unknown time. The estimated end is the deadline or when it was found gone for a vendor's bill, "+
			"and when it was last seen for a place of your own.", count(estimated, "life ended", "lives ended")))
	}
	for _, m := range v.Actual {
		if m.Why != nil {
			out = append(out, fmt.Sprintf("Estimated by time, %s (%s): %s.", m.Name, m.Sandbox, *m.Why))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "\n" + strings.Join(out, "\n") + "\n"
}
