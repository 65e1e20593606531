package provider

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// explainRefusals lists refused candidates for people; "" if there are none.
// Those that the request itself leaves out (another extension is pinned,
// other hosts are named) are only counted, unless all is set.
func explainRefusals(e engine.Estimate, all bool) string {
	var b strings.Builder
	leftOut := 0
	for _, c := range e.Candidates {
		if c.Eligible || engine.UnnamedDouble(c.Refusals) {
			continue
		}
		if !all && leavesOut(c) {
			leftOut++
			continue
		}
		fmt.Fprintf(&b, "- %s:", place(c.Extension, c.Host))
		for i, r := range c.Refusals {
			if i > 0 {
				b.WriteString("\n ")
			}
			said := sentence(r.Reason)
			if r.Remedy != "" && !strings.HasSuffix(said, ".") { // an id at its end is not to be copied here
				said += "."
			}
			b.WriteString(" " + said)
			if r.Remedy != "" {
				b.WriteString(" To use it: " + strings.TrimRight(r.Remedy, ".") + ".")
			}
		}
		b.WriteString("\n")
	}
	if b.Len() > 0 && leftOut > 0 {
		fmt.Fprintf(&b, "- not considered, because the request leaves them out: %d more\n", leftOut)
	}
	return strings.TrimRight(b.String(), "\n")
}

const stageIntent = "intent"

func leavesOut(c engine.EstimateCandidate) bool {
	return len(c.Refusals) > 0 && !slices.ContainsFunc(c.Refusals, func(r engine.Refusal) bool { return r.Stage != stageIntent })
}

// explainNumbers is the estimate in one paragraph, for a notice where it
// cannot be planned.
func explainNumbers(e engine.Estimate) string {
	var b strings.Builder
	for _, c := range e.Candidates {
		if !c.Eligible {
			continue
		}
		cost := "price unknown"
		if c.Hourly != "" {
			cost = fmt.Sprintf("%s %s an hour", c.Hourly, c.Currency)
		}
		if c.Maximum != "" {
			cost += fmt.Sprintf(", at most %s %s for %s", c.Maximum, c.Currency, e.TTL)
		}
		fmt.Fprintf(&b, "%d. %s: %s\n", c.Order, place(c.Extension, c.Host), cost)
	}
	return strings.TrimRight(b.String(), "\n")
}

// costOf is what it costs in one line; "" where no place is left. It depends on
// the numbers alone.
func costOf(e engine.Estimate) string {
	if firstPlaces(e) == "" {
		return ""
	}
	price := "at a price that is not known"
	if e.HourlyHigh != "" {
		price = span(e.HourlyLow, e.HourlyHigh) + " " + e.Currency + " an hour"
	}
	if e.Maximum != "" {
		price += fmt.Sprintf(", at most %s %s for %s", e.Maximum, e.Currency, e.TTL)
	}
	return price
}

// summaryOf is an estimate in one line, with its places; "" where none is left.
func summaryOf(e engine.Estimate) string {
	places := firstPlaces(e)
	if places == "" {
		return ""
	}
	var refused []string
	for _, c := range e.Candidates {
		if !c.Eligible && !leavesOut(c) {
			refused = append(refused, place(c.Extension, c.Host))
		}
	}
	text := places + ": " + costOf(e)
	if len(refused) > 0 {
		text += "; refused: " + strings.Join(refused, ", ")
	}
	return text
}

// firstPlaces names where it can run, in order.
func firstPlaces(e engine.Estimate) string {
	var places []string
	for _, c := range e.Candidates {
		if c.Eligible {
			places = append(places, place(c.Extension, c.Host))
		}
	}
	return strings.Join(places, ", else ")
}

func span(low, high string) string {
	if low == high || low == "" {
		return high
	}
	return low + " to " + high
}

func place(extension, host string) string {
	if host == "" {
		return extension
	}
	return extension + " on " + host
}
