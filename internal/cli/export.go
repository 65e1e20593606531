package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const (
	formatCloudEvents = "cloudevents"
	formatFocus       = "focus"
	tokenVariable     = "SANDBOXER_EXPORT_TOKEN"
)

type exportFlags struct {
	engine.ExportQuery
	output, tokenFile, caFile string
	to                        engine.Receiver
	sends                     bool // the user named a receiver
}

type sentView struct {
	Receiver  string         `json:"receiver"`
	Events    int64          `json:"events"`
	Usage     int64          `json:"usage_events"`
	Delivered int64          `json:"delivered_up_to"`
	Withheld  []withheldView `json:"held"`
}

type withheldView struct {
	Seq    int64     `json:"seq"`
	State  string    `json:"state"`
	First  time.Time `json:"first_attempt_at"`
	Reason string    `json:"reason"`
}

func (a *app) ledgerExportCommand() *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use:   "export",
		Short: "Export charges and events to other programs",
		Long: `Writes settled charges or events, or sends events to a receiver.

    focus        charges as FOCUS 1.2, CSV
    csv          charges as plain CSV
    json         charges as a JSON array
    cloudevents  the organization's chain of events, one CloudEvent a line;
                 sandboxer ledger verify --events checks such a file

A running sandbox is charged, and exported, when it ends.

With --endpoint, the command sends events to an HTTP receiver of CloudEvents such as
OpenMeter: in order, those that it has not received yet, and a usage event per
charge. Run it as often as you like: it continues where it stopped, and an event
always has the same id. It holds back and lists events that the receiver refuses, or
has not answered for a day. The command fails while it holds any back. --resend sends
them again.

It reads the receiver's token from $` + tokenVariable + ` or from --token-file.`,
		Example: `  sandboxer ledger export --format focus --from 2026-01 --to 2026-02 --output january.csv
  sandboxer ledger export --format cloudevents --output events.ndjson
  sandboxer ledger export --endpoint https://openmeter.example.com --token-file token`,
		Args:        args(cobra.NoArgs),
		Annotations: map[string]string{moreFormats: formatCloudEvents + " " + formatFocus + " " + formatCSV},
		RunE: func(c *cobra.Command, _ []string) error {
			f.sends = c.Flags().Changed("endpoint")
			if err := f.check(a.global.format); err != nil {
				return err
			}
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				if f.sends {
					return a.sendEvents(c.Context(), e, f)
				}
				return a.export(c.Context(), e, f)
			})
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.From, "from", "", "`time` the period starts, as in ledger usage (default: the beginning)")
	fl.StringVar(&f.To, "to", "", "`time` the period ends (default: now)")
	fl.BoolVar(&f.WholeOrg, "org", false, "charges of all of the organization's workspaces")
	fl.StringVar(&f.output, "output", "", "`file` to write, completely or not at all (default: standard output)")
	fl.StringVar(&f.to.URL, "endpoint", "", "`url` of a receiver of CloudEvents, https://host[/path]")
	fl.StringVar(&f.to.Name, "sink", "", "`name` of the receiver in the ledger (default: its URL)")
	fl.StringVar(&f.tokenFile, "token-file", "", "`file` with the receiver's bearer token ($"+tokenVariable+")")
	fl.StringVar(&f.caFile, "ca-file", "", "PEM `file` of CA certificates to trust for the receiver (default: the system's)")
	fl.BoolVar(&f.to.Resend, "resend", false, "send only the events held back")
	return c
}

func (f exportFlags) check(format string) error {
	bad := func(text, remedy string) error {
		return extensions.Errorf(extensions.KindInvalid, "%s", text).WithRemedy("%s", remedy)
	}
	if !f.sends {
		switch {
		case f.to.Name != "" || f.tokenFile != "" || f.caFile != "" || f.to.Resend:
			return bad("--sink, --token-file, --ca-file and --resend need a receiver", "add --endpoint")
		case format == formatTable, format == formatWide, format == formatYAML:
			return bad("an export has no "+format+" format", "add --format focus, csv, json or cloudevents")
		case format == formatCloudEvents && f.WholeOrg:
			return bad("events always cover the whole organization", "drop --org")
		}
		return nil
	}
	switch {
	case f.to.URL == "":
		return bad("--endpoint is empty", "give the receiver's URL and check its variable; without --endpoint, an export goes to a file")
	case f.From != "" || f.To != "" || f.output != "" || f.WholeOrg:
		return bad("--from, --to, --org and --output apply to files only", "drop them: a receiver gets every event that it lacks")
	case format == formatFocus || format == formatCSV:
		return bad("a receiver takes CloudEvents, not "+format, "drop --endpoint or --format")
	}
	return nil
}

func (a *app) export(ctx context.Context, e *engine.Engine, f exportFlags) error {
	var n int64
	what, write := "charge", func(w io.Writer) (err error) {
		n, err = e.ExportCharges(ctx, f.ExportQuery, a.global.format, w)
		return err
	}
	if a.global.format == formatCloudEvents {
		what, write = "event", func(w io.Writer) (err error) {
			n, err = e.ExportEvents(ctx, f.ExportQuery, w)
			return err
		}
	}
	if err := a.exportTo(ctx, f.output, write); err != nil || f.output == "" {
		return err
	}
	a.say("%s: %d %s%s.", f.output, n, what, plural(n))
	return nil
}

func plural(n int64) string {
	if n == 1 {
		return ""
	}
	return "s"
}

func (a *app) sendEvents(ctx context.Context, e *engine.Engine, f exportFlags) error {
	var err error
	if f.to.Token, err = secretFrom(f.tokenFile); err != nil {
		return err
	}
	if f.caFile != "" {
		if f.to.CA, err = os.ReadFile(f.caFile); err != nil {
			return extensions.Errorf(extensions.KindInvalid, "reading --ca-file: %w", err)
		}
	}
	got, err := e.SendEvents(ctx, f.to)
	if got.Receiver == "" {
		return err
	}
	v := sentView{got.Receiver, got.Events, got.Usage, got.Delivered, []withheldView{}}
	for _, h := range got.Withheld {
		v.Withheld = append(v.Withheld, withheldView{h.Seq, h.State, h.First.UTC(), h.Reason})
	}
	if showErr := a.show(v, func(w io.Writer) error { return printSent(w, v) }); err == nil {
		err = showErr
	}
	if n := int64(len(v.Withheld)); err == nil && n > 0 {
		err = extensions.Errorf(extensions.KindFailed, "%s: %s", count(n, "event is held back", "events are held back"), v.withheldNumbers()).
			WithRemedy("fix the cause listed above, then send them with --resend")
	}
	return err
}

// withheldNumbers names the first events held back.
func (v sentView) withheldNumbers() string {
	const shown = 20
	var out []string
	for _, h := range v.Withheld[:min(len(v.Withheld), shown)] {
		out = append(out, strconv.FormatInt(h.Seq, 10))
	}
	if more := len(v.Withheld) - shown; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}

// secretFrom reads the token from a file if one is named, else from the environment.
func secretFrom(name string) (string, error) {
	if name == "" {
		return os.Getenv(tokenVariable), nil
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return "", extensions.Errorf(extensions.KindInvalid, "reading --token-file: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if token == "" {
		return "", extensions.Errorf(extensions.KindInvalid, "--token-file %s is empty", name)
	}
	return token, nil
}

func printSent(w io.Writer, v sentView) error {
	_, err := fmt.Fprintf(w, "%s received %d event%s and %d usage event%s; it has all up to %d.\n",
		extensions.Clean(v.Receiver, 200), v.Events, plural(v.Events), v.Usage, plural(v.Usage), v.Delivered)
	if err != nil || len(v.Withheld) == 0 {
		return err
	}
	rows := [][]string{{"HELD BACK", "WHY", "FIRST SENT", "REASON"}}
	for _, h := range v.Withheld {
		rows = append(rows, []string{strconv.FormatInt(h.Seq, 10), h.State, stamp(h.First), h.Reason})
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return grid(w, rows)
}
