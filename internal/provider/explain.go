package provider

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// explainRefusals lists refused candidates for people; "" if there are none. It only counts those that the
// request itself rules out (it pins another extension or names other hosts), unless all is set.
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
			if r.Remedy != "" && !strings.HasSuffix(said, ".") { // nobody copies an id from here
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
		fmt.Fprintf(&b, "- and %d more that the request itself rules out\n", leftOut)
	}
	return strings.TrimRight(b.String(), "\n")
}

const stageIntent = "intent"

func leavesOut(c engine.EstimateCandidate) bool {
	return len(c.Refusals) > 0 && !slices.ContainsFunc(c.Refusals, func(r engine.Refusal) bool { return r.Stage != stageIntent })
}

// explainNumbers returns the estimate as one paragraph, for a notice where it cannot be planned.
func explainNumbers(e engine.Estimate) string {
	var b strings.Builder
	for _, c := range e.Candidates {
		if !c.Eligible {
			continue
		}
		cost := "price unknown"
		if c.Hourly != "" {
			cost = fmt.Sprintf("%s %s an hour", engine.Short(c.Hourly, false), c.Currency)
		}
		if c.Maximum != "" {
			cost += fmt.Sprintf(", at most %s %s for %s", engine.Short(c.Maximum, true), c.Currency, e.TTL)
		}
		fmt.Fprintf(&b, "%d. %s: %s\n", c.Order, place(c.Extension, c.Host), cost)
	}
	return strings.TrimRight(b.String(), "\n")
}

// costOf returns the cost in one line; "" if no place is left. It depends on the numbers alone.
func costOf(e engine.Estimate) string {
	if firstPlaces(e) == "" {
		return ""
	}
	price := "at an unknown price"
	if e.HourlyHigh != "" {
		price = span(engine.Short(e.HourlyLow, false), engine.Short(e.HourlyHigh, false)) + " " + e.Currency + " an hour"
	}
	if e.Maximum != "" {
		price += fmt.Sprintf(", at most %s %s for %s", engine.Short(e.Maximum, true), e.Currency, e.TTL)
	}
	return price
}

// summaryOf returns an estimate with its places in one line; "" if no place is left.
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

// firstPlaces names the places that can run it, in order.
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
