package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const (
	formatTable = "table"
	formatJSON  = "json"
	formatCSV   = "csv"
)

// moreFormats is the annotation that lists what a command can print beside
// table and json.
const moreFormats = "formats"

func checkFormat(c *cobra.Command, f string) error {
	known := append([]string{formatTable, formatJSON}, strings.Fields(c.Annotations[moreFormats])...)
	if slices.Contains(known, f) {
		return nil
	}
	last := len(known) - 1
	return extensions.Errorf(extensions.KindInvalid, "--format %q is unknown", f).
		WithRemedy("use %s or %s", strings.Join(known[:last], ", "), known[last])
}

// show prints v as JSON, or calls table to print it for people.
func (a *app) show(v any, table func(io.Writer) error) error {
	if a.global.format != formatJSON {
		return table(a.out)
	}
	enc := json.NewEncoder(a.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// say prints one line for people beside the result.
func (a *app) say(format string, args ...any) {
	_, _ = fmt.Fprintf(a.err, format+"\n", args...) // nobody is left to tell
}

// grid prints rows in aligned columns; the first row is the heading.
func grid(w io.Writer, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = orDash(extensions.Clean(c, 200))
		}
		if _, err := fmt.Fprintln(tw, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return tw.Flush()
}

// facts prints name/value lines, leaving out empty values.
func facts(w io.Writer, lines [][2]string) error {
	rows := make([][]string, 0, len(lines))
	for _, l := range lines {
		if l[1] != "" {
			rows = append(rows, []string{l[0], l[1]})
		}
	}
	return grid(w, rows)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// relative says how far t is from now: "in 1h59m", "3m ago".
func relative(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	d := t.Sub(now)
	if d < 0 {
		return short(-d) + " ago"
	}
	return "in " + short(d)
}

// short rounds to what matters: "42s", "59m", "1h", "1h30m", "1d2h".
func short(d time.Duration) string {
	d = d.Round(time.Second)
	if d < time.Minute {
		return d.String()
	}
	d = d.Round(time.Minute)
	days, hours, minutes := d/(24*time.Hour), d/time.Hour%24, d/time.Minute%60
	var b strings.Builder
	for _, part := range []struct {
		n    time.Duration
		unit string
	}{{days, "d"}, {hours, "h"}, {minutes, "m"}} {
		if part.n > 0 && (part.unit != "m" || days == 0) {
			fmt.Fprintf(&b, "%d%s", part.n, part.unit)
		}
	}
	return b.String()
}

type errorView struct {
	Kind    extensions.Kind `json:"kind"`
	Message string          `json:"message"`
	Remedy  string          `json:"remedy,omitempty"`
}

// printError says what happened, to what, and what to do next.
func (a *app) printError(err error) {
	remedy := extensions.RemedyOf(err)
	if a.global.format == formatJSON {
		b, merr := json.Marshal(map[string]errorView{"error": {extensions.KindOf(err), err.Error(), remedy}})
		if merr == nil {
			a.say("%s", b)
			return
		}
	}
	a.say("Error: %s", strings.ReplaceAll(err.Error(), "\n", "\n  "))
	if remedy != "" {
		a.say("  What to do: %s", strings.ReplaceAll(remedy, "\n", "\n  "))
	}
}

// columns is grid with the columns from the given one on aligned to the right.
func columns(w io.Writer, from int, rows [][]string) error {
	width := map[int]int{}
	shown := make([][]string, len(rows))
	for i, row := range rows {
		for j, cell := range row {
			cell = orDash(extensions.Clean(cell, 200))
			shown[i] = append(shown[i], cell)
			width[j] = max(width[j], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range shown {
		for j := from; j < len(row); j++ {
			row[j] = strings.Repeat(" ", width[j]-utf8.RuneCountInString(row[j])) + row[j]
		}
	}
	return grid(w, shown)
}

// count is a number of things, "1 sandbox", "2 sandboxes".
func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
