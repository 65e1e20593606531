package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

type quoteView struct {
	Profile  string          `json:"profile"`
	Version  string          `json:"version"`
	Estimate engine.Estimate `json:"estimate"`
	Notices  []engine.Notice `json:"notices,omitempty"`
}

func (a *app) quoteCommand() *cobra.Command {
	var req engine.Request
	var inputs []string
	c := &cobra.Command{
		Use:   "quote PROFILE",
		Short: "What a sandbox would cost, where it would run, and why not elsewhere",
		Long: `Resolves the profile, asks every place whether it fits, and prices those that do.
Nothing is made, dialled or written.`,
		Example: `  sandboxer quote profile.quickstart --ttl 2h
  sandboxer quote profile.compose-e2e --input repo=https://example.com/app.git --input retries:=3`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			var err error
			if req.Inputs, err = parseInputs(inputs); err != nil {
				return err
			}
			req.Profile = given[0]
			return a.withEngine(func(e *engine.Engine) error {
				p, err := e.Plan(c.Context(), req)
				if err != nil {
					return err
				}
				v := quoteView{p.ProfileID, p.Version, p.Estimate, p.Notices}
				return a.show(v, func(w io.Writer) error { return a.printQuote(w, v) })
			})
		},
	}
	f := c.Flags()
	f.StringVar(&req.TTL, "ttl", "", "`duration` such as 90s, 2h, 1d (default: the profile's)")
	f.StringArrayVar(&req.Hosts, "host", nil, "`name` of a registered host; repeat it, in order of preference")
	f.StringArrayVar(&inputs, "input", nil, "profile input, `key=text` or key:=json; repeat it")
	f.StringVar(&req.MaxCost, "max-cost", "", "refuse above this `amount`, such as \"1.00 USD\"")
	return c
}

// parseInputs reads key=text and key:=json.
func parseInputs(list []string) (map[string]any, error) {
	out := make(map[string]any, len(list))
	for _, s := range list {
		k, text, err := pair("input", s)
		if err != nil {
			return nil, err
		}
		var v any = text
		if name, typed := strings.CutSuffix(k, ":"); typed {
			k = name
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				return nil, extensions.Errorf(extensions.KindInvalid, "--input %s:=%s is not JSON: %w", k, text, err).
					WithRemedy("write %s=… for plain text", k)
			}
		}
		if _, twice := out[k]; twice {
			return nil, extensions.Errorf(extensions.KindInvalid, "--input names %q twice", k)
		}
		out[k] = v
	}
	return out, nil
}

func (a *app) printQuote(w io.Writer, v quoteView) error {
	e := v.Estimate
	err := facts(w, [][2]string{
		{"profile", v.Profile + "@" + v.Version},
		{"ttl", e.TTL},
		{"per hour", amountRange(e.HourlyLow, e.HourlyHigh, e.Currency)},
		{"total", amountRange(e.TotalLow, e.TotalHigh, e.Currency)},
		{"at most", amount(e.Maximum, e.Currency)},
		{"catalog", e.CatalogDigest},
	})
	if err != nil {
		return err
	}
	if err := printCandidates(w, e.Candidates); err != nil {
		return err
	}
	for _, u := range e.Unknowns {
		a.say("note: unknown: %s", u)
	}
	for _, s := range e.Assumptions {
		a.say("note: assumed: %s", s)
	}
	for _, n := range v.Notices {
		a.notify(n)
	}
	return nil
}

func printCandidates(w io.Writer, list []engine.EstimateCandidate) error {
	if len(list) == 0 {
		return nil
	}
	rows := [][]string{{"ORDER", "PLACE", "PER HOUR", "AT MOST", "PRICE", "EXPIRY"}}
	var refusals []string
	for _, c := range list {
		place := placeName(c.Extension, c.Host)
		order := "refused"
		if c.Eligible {
			order = strconv.FormatInt(c.Order, 10)
		}
		rows = append(rows, []string{order, place, amount(c.Hourly, c.Currency), amount(c.Maximum, c.Currency), priceNote(c), c.Expiry})
		for _, r := range c.Refusals {
			refusals = append(refusals, refusalLines(place, r))
		}
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	if err := grid(w, rows); err != nil {
		return err
	}
	if len(refusals) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\n%s\n", strings.Join(refusals, "\n"))
	return err
}

func refusalLines(place string, r engine.Refusal) string {
	line := fmt.Sprintf("%s refused (%s, %s): %s", place, r.Stage, r.Rule, r.Reason)
	if r.Remedy != "" {
		line += "\n  What to do: " + r.Remedy
	}
	return line
}

func priceNote(c engine.EstimateCandidate) string {
	note := c.Confidence
	if c.AsOf != "" {
		note += " as of " + c.AsOf
	}
	return note
}

func placeName(extension, host string) string {
	if host == "" {
		return extension
	}
	return extension + "@" + host
}

// amount adds the currency; an unknown amount is said to be unknown, never 0.
func amount(s, currency string) string {
	if s == "" {
		return "unknown"
	}
	return strings.TrimSpace(s + " " + currency)
}

func amountRange(low, high, currency string) string {
	if low == high || low == "" || high == "" {
		return amount(high, currency)
	}
	return low + " to " + amount(high, currency)
}
