package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// printQuote omits test doubles that the profile does not name.
func (a *app) printQuote(w io.Writer, q engine.Quoted) error {
	q.Estimate.Candidates = slices.DeleteFunc(slices.Clone(q.Estimate.Candidates),
		func(c engine.EstimateCandidate) bool { return engine.UnnamedDouble(c.Refusals) })
	e := q.Estimate
	err := facts(w, [][2]string{
		{"profile", q.ProfileID + "@" + q.Version},
		{"ttl", e.TTL},
		{"per hour", amountRange(e.HourlyLow, e.HourlyHigh, e.Currency)},
		{"total", amountRange(e.TotalLow, e.TotalHigh, e.Currency)},
		{"at most", amount(engine.Short(e.Maximum, true), e.Currency)},
		{"chosen by", q.Route.Strategy},
		{"because", q.Route.Why},
		{"labels", labels(q.CostClass, q.LatencyClass)},
		{"catalog", e.CatalogDigest},
	})
	if err != nil {
		return err
	}
	for _, part := range []func(io.Writer, engine.Quoted) error{printCandidates, printLines, printForetold, printFunds, printRefusals} {
		if err := part(w, q); err != nil {
			return err
		}
	}
	for _, u := range e.Unknowns {
		a.say("note: unknown: %s", u)
	}
	for _, s := range e.Assumptions {
		a.say("note: assumed: %s", s)
	}
	for _, n := range q.Notices {
		a.notify(n)
	}
	return nil
}

// labels returns the profile's own labels for cost and latency.
func labels(cost, latency string) string {
	var out []string
	for _, l := range [][2]string{{"cost", cost}, {"latency", latency}} {
		if l[1] != "" {
			out = append(out, l[0]+" "+l[1])
		}
	}
	return strings.Join(out, ", ")
}

// printCandidates prints one line per place, in order.
func printCandidates(w io.Writer, q engine.Quoted) error {
	if len(q.Estimate.Candidates) == 0 {
		return nil
	}
	head := []string{"ORDER", "PLACE", "PER HOUR", "EXPECTED", "95 OF 100", "AT MOST", "PAID BY", "PRICE", "EXPIRY"}
	rows := [][]string{head}
	for _, c := range q.Estimate.Candidates {
		order, past := "refused", ""
		if c.Eligible {
			order = strconv.FormatInt(c.Order, 10)
		}
		if q.Past > 0 {
			past = rounded(c.P95, c.Currency)
		}
		rows = append(rows, []string{order, placeName(c.Extension, c.Host), rounded(c.Hourly, c.Currency), rounded(c.Expected, c.Currency), past,
			amount(engine.Short(c.Maximum, true), c.Currency), payer(c), priceNote(c), c.Expiry})
	}
	if q.Past == 0 {
		for i := range rows {
			rows[i] = slices.Delete(rows[i], 4, 5)
		}
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return grid(w, rows)
}

func payer(c engine.EstimateCandidate) string {
	if !c.Memo && c.Billing == "" {
		return "credit, else you"
	}
	if !c.Memo {
		return "wallet"
	}
	if c.Wallet != "" && strings.Trim(c.Wallet, "0.") != "" {
		return "you, fee from the wallet"
	}
	return "you"
}

// printLines shows how the first choice's price adds up.
func printLines(w io.Writer, q engine.Quoted) error {
	i := slices.IndexFunc(q.Estimate.Candidates, func(c engine.EstimateCandidate) bool { return c.Order == 1 })
	if i < 0 || len(q.Estimate.Candidates[i].Lines) == 0 {
		return nil
	}
	c := q.Estimate.Candidates[i]
	rows := [][]string{{"COMPONENT", "QUANTITY", "PRICE", "AMOUNT", "AS OF", "CONFIDENCE", "SOURCE"}}
	for _, l := range c.Lines {
		rows = append(rows, []string{l.Component, l.Quantity + " " + l.Unit, amount(l.UnitPrice, ""), rounded(l.Amount, c.Currency), l.AsOf,
			l.Confidence, l.Source})
	}
	of := "an hour"
	if c.Expected != "" {
		of = "expected"
	}
	if _, err := fmt.Fprintf(w, "\n%s, %s:\n", placeName(c.Extension, c.Host), of); err != nil {
		return err
	}
	return grid(w, rows)
}

func printFunds(w io.Writer, q engine.Quoted) error {
	if len(q.Funds) == 0 {
		return nil
	}
	rows := [][]string{{"LIMIT", "AVAILABLE", "NEEDED", ""}}
	for _, f := range q.Funds {
		verdict := ""
		switch {
		case f.Enough:
		case f.Hard:
			verdict = "not enough: a create is refused"
		default:
			verdict = "over the soft limit: a create warns"
		}
		rows = append(rows, []string{f.Limit, amount(f.Available, f.Currency), amount(f.Needed, f.Currency), verdict})
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return grid(w, rows)
}

func printRefusals(w io.Writer, q engine.Quoted) error {
	var refusals []string
	for _, c := range q.Estimate.Candidates {
		for _, r := range c.Refusals {
			refusals = append(refusals, refusalLines(placeName(c.Extension, c.Host), r))
		}
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

// amount appends the currency; an unknown amount reads as unknown, never as 0.
func amount(s, currency string) string {
	if s == "" {
		return "unknown"
	}
	return strings.TrimSpace(s + " " + currency)
}

// rounded is amount for an estimate, which people read with at most six significant digits.
func rounded(s, currency string) string { return amount(engine.Short(s, false), currency) }

func amountRange(low, high, currency string) string {
	low, high = engine.Short(low, false), engine.Short(high, false)
	if low == high || low == "" || high == "" {
		return amount(high, currency)
	}
	return low + " to " + amount(high, currency)
}
