package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const (
	formatTable = "table"
	formatWide  = "wide"
	formatJSON  = "json"
	formatYAML  = "yaml"
	formatCSV   = "csv"
)

// moreFormats is the annotation that lists a command's formats beside those of every command.
const moreFormats = "formats"

func formatsOf(c *cobra.Command) []string {
	return append([]string{formatTable, formatWide, formatJSON, formatYAML}, strings.Fields(c.Annotations[moreFormats])...)
}

func checkFormat(c *cobra.Command, f string) error {
	known := formatsOf(c)
	if slices.Contains(known, f) {
		return nil
	}
	last := len(known) - 1
	return extensions.Errorf(extensions.KindInvalid, "--format %q is unknown", f).
		WithRemedy("use %s or %s", strings.Join(known[:last], ", "), known[last])
}

// structured says that programs read the output.
func (a *app) structured() bool {
	return a.global.format == formatJSON || a.global.format == formatYAML
}

// show prints v for programs, or calls table to print it for people.
func (a *app) show(v any, table func(io.Writer) error) error {
	switch {
	case a.structured():
		return a.encode(a.out, v, "  ")
	case a.global.format == formatWide:
		return table(screen{Writer: a.out, wide: true})
	}
	width, _ := a.screen.size()
	return table(screen{Writer: a.out, width: width})
}

// showID prints v for programs, and for people and scripts the ID alone.
func (a *app) showID(v any, id string) error {
	return a.show(v, func(w io.Writer) error { return printLine(w, id) })
}

// encode writes v in the structured format that was asked for.
func (a *app) encode(w io.Writer, v any, indent string) error {
	if a.global.format == formatYAML {
		return encodeYAML(w, v)
	}
	return encodeJSON(w, v, indent)
}

func encodeJSON(w io.Writer, v any, indent string) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", indent)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// say prints one line for people, apart from the result.
func (a *app) say(format string, args ...any) {
	a.progress.apart(func() { _, _ = fmt.Fprintf(a.err, format+"\n", args...) }) // nobody is left to tell
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

// relative formats the distance from now to t: "in 1h59m", "3m ago".
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

// short formats d to its significant units: "42s", "59m", "1h", "1h30m", "1d2h".
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

// printError prints what happened, to what, and what to do next.
func (a *app) printError(err error) {
	remedy := extensions.RemedyOf(err)
	if a.structured() {
		_ = a.encode(a.err, map[string]errorView{"error": {extensions.KindOf(err), err.Error(), remedy}}, "") // nobody is left to tell
		return
	}
	a.say("Error: %s", strings.ReplaceAll(err.Error(), "\n", "\n  "))
	if remedy != "" {
		a.say("  What to do: %s", strings.ReplaceAll(remedy, "\n", "\n  "))
	}
}

// count formats a number of things: "1 sandbox", "2 sandboxes".
func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
