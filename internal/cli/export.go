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
	sends                     bool // a receiver was asked for
}

type sentView struct {
	Receiver  string     `json:"receiver"`
	Events    int64      `json:"events"`
	Usage     int64      `json:"usage_events"`
	Delivered int64      `json:"delivered_up_to"`
	Held      []heldView `json:"held"`
}

type heldView struct {
	Seq    int64     `json:"seq"`
	State  string    `json:"state"`
	First  time.Time `json:"first_attempt_at"`
	Reason string    `json:"reason"`
}

func (a *app) ledgerExportCommand() *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use:   "export",
		Short: "Hand charges and events to other programs",
		Long: `Writes settled charges, or events, or sends events to a receiver.

    focus        charges as FOCUS 1.2, CSV
    csv          charges as plain CSV
    json         charges as a JSON array
    cloudevents  the organization's chain of events, one CloudEvent a line;
                 sandboxer ledger verify --events checks such a file

What still runs is charged when it ends, and is exported then.

With --endpoint, events go to an HTTP receiver of CloudEvents such as OpenMeter:
those it has not got yet, from the first on, in order, and a usage event for
every charge. Run it as often as you like: it goes on where it stopped, and each
event always has the same id. What the receiver refuses is held back and listed,
and so is what was sent a day ago and never answered. As long as anything is held
back, the command fails. --resend sends it again.

The token of the receiver is read from $` + tokenVariable + ` or from --token-file.`,
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
	fl.StringVar(&f.From, "from", "", "`time` the period begins, as in ledger usage (default: the beginning)")
	fl.StringVar(&f.To, "to", "", "`time` the period ends (default: now)")
	fl.BoolVar(&f.WholeOrg, "org", false, "charges of all workspaces of the organization")
	fl.StringVar(&f.output, "output", "", "`file` to write, whole or not at all (default: standard output)")
	fl.StringVar(&f.to.URL, "endpoint", "", "`url` of a receiver of CloudEvents, https://host[/path]")
	fl.StringVar(&f.to.Name, "sink", "", "`name` that the ledger knows the receiver by (default: its url)")
	fl.StringVar(&f.tokenFile, "token-file", "", "`file` with the receiver's bearer token ($"+tokenVariable+")")
	fl.StringVar(&f.caFile, "ca-file", "", "`file` of certificates that vouch for the receiver, PEM (default: the system's)")
	fl.BoolVar(&f.to.Resend, "resend", false, "send what was held back, and nothing else")
	return c
}

func (f exportFlags) check(format string) error {
	bad := func(text, remedy string) error {
		return extensions.Errorf(extensions.KindInvalid, "%s", text).WithRemedy("%s", remedy)
	}
	if !f.sends {
		switch {
		case f.to.Name != "" || f.tokenFile != "" || f.caFile != "" || f.to.Resend:
			return bad("--sink, --token-file, --ca-file and --resend are for a receiver", "name it with --endpoint")
		case format == formatTable:
			return bad("an export has no table", "add --format focus, csv, json or cloudevents")
		case format == formatCloudEvents && f.WholeOrg:
			return bad("events are always those of the whole organization", "leave out --org")
		}
		return nil
	}
	switch {
	case f.to.URL == "":
		return bad("--endpoint is empty", "name the receiver's url; is the variable that holds it set? Without --endpoint an export goes to a file")
	case f.From != "" || f.To != "" || f.output != "" || f.WholeOrg:
		return bad("--from, --to, --org and --output are for files", "leave them out: a receiver gets every event it has not got")
	case format == formatFocus || format == formatCSV:
		return bad("a receiver gets CloudEvents, not "+format, "leave out --endpoint, or --format")
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
	v := sentView{got.Receiver, got.Events, got.Usage, got.Delivered, []heldView{}}
	for _, h := range got.Held {
		v.Held = append(v.Held, heldView{h.Seq, h.State, h.First.UTC(), h.Reason})
	}
	if showErr := a.show(v, func(w io.Writer) error { return printSent(w, v) }); err == nil {
		err = showErr
	}
	if n := int64(len(v.Held)); err == nil && n > 0 {
		err = extensions.Errorf(extensions.KindFailed, "%s: %s", count(n, "event is held back", "events are held back"), v.heldNumbers()).
			WithRemedy("see why above; when it is mended, send what is held back with --resend")
	}
	return err
}

// heldNumbers names the first events that are held back.
func (v sentView) heldNumbers() string {
	const shown = 20
	var out []string
	for _, h := range v.Held[:min(len(v.Held), shown)] {
		out = append(out, strconv.FormatInt(h.Seq, 10))
	}
	if more := len(v.Held) - shown; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}

// secretFrom reads the token: a file, where one is named, else the environment.
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
	if _, err := fmt.Fprintf(w, "%s has got %d event%s and %d usage event%s, and now has all up to %d.\n",
		extensions.Clean(v.Receiver, 200), v.Events, plural(v.Events), v.Usage, plural(v.Usage), v.Delivered); err != nil || len(v.Held) == 0 {
		return err
	}
	rows := [][]string{{"HELD BACK", "WHY", "FIRST SENT", "REASON"}}
	for _, h := range v.Held {
		rows = append(rows, []string{strconv.FormatInt(h.Seq, 10), h.State, stamp(h.First), h.Reason})
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return grid(w, rows)
}
