package meter

import (
	"slices"
	"strings"
	"time"
)

// durations returns the expected and the longest duration; 0 = none.
func (f *forecast) durations() (expected, longest time.Duration) {
	if longest = f.in.TTL; longest > 0 && f.in.Grain > 0 {
		longest += f.in.Grain
		f.assume("its end is rounded up to %s; the maximum includes this", spoken(f.in.Grain))
	}
	expected = Duration(f.in.Expected, f.in.History, f.in.TTL)
	switch h := f.in.History; {
	case f.in.Expected > 0 || expected == 0:
	case h != nil && h.Median > 0:
		f.assume("expected to run %s, the median of %d past sandboxes", spoken(h.Median), h.Count)
	default:
		f.assume("expected to run for its whole ttl of %s", spoken(expected))
	}
	if longest == 0 {
		f.assume("without a ttl there is a rate but no maximum")
	}
	if f.activeCPU() {
		if f.in.ActivePermille > 0 {
			f.assume("%s %% of the CPU time is active", formatDecimal(f.in.ActivePermille, 1, 0))
		} else {
			f.assume("only active CPU time is charged; the maximum counts all of it")
		}
	}
	f.mayBePaused(longest)
	return expected, longest
}

// mayBePaused notes which prices the worst case does not count as running.
func (f *forecast) mayBePaused(longest time.Duration) {
	for _, p := range f.Prices {
		if longest > 0 && p.dearerPaused() {
			f.assume("%s costs more while paused: the maximum assumes that it is always paused, at %s %s per %s", p.Component, p.Paused,
				f.Currency,
				p.Unit)
		}
	}
}

// spoken formats d without trailing zero parts: "2h", "1m30s".
func spoken(d time.Duration) string {
	s := d.Round(time.Millisecond).String()
	if short, ok := strings.CutSuffix(s, "m0s"); ok {
		s = short + "m"
	}
	if short, ok := strings.CutSuffix(s, "h0m"); ok {
		s = short + "h"
	}
	return s
}

func (f *forecast) p95() time.Duration {
	if f.in.History == nil {
		return 0
	}
	return f.withinTTL(f.in.History.P95)
}

func (f *forecast) withinTTL(d time.Duration) time.Duration {
	if f.in.TTL > 0 {
		return min(d, f.in.TTL)
	}
	return d
}

// withoutEgress leaves unforeseeable traffic out of the sums and says so; the snapshot that settles keeps
// its price.
func (f *forecast) withoutEgress() {
	if f.in.EgressBytes != nil {
		return
	}
	rest := slices.Clone(f.Prices)
	f.Prices = slices.DeleteFunc(rest, func(p SnapshotPrice) bool {
		if base(p.Component) != ComponentEgress {
			return false
		}
		if p.Price == nil {
			f.unknown("outgoing traffic is charged, but its amount is unknown")
		} else if *p.Price > 0 {
			f.unknown("the amount of outgoing traffic: %s %s per %s on top", p.Price, f.Currency, p.Unit)
		}
		return true
	})
}

func (f *forecast) quoteLines(lines []ChargeLine) []QuoteLine {
	out := make([]QuoteLine, len(lines))
	for i, l := range lines {
		out[i] = QuoteLine{ChargeLine: l, Source: f.Source, AsOf: f.AsOf}
		for _, p := range f.Prices {
			if p.Component == l.Component && p.Source != "" {
				out[i].Source = p.Source
			}
		}
	}
	return out
}

func (f *forecast) explainUnknowns(lines []ChargeLine) {
	if f.Basis == BasisUnknown {
		return // already explained
	}
	for _, l := range lines {
		if l.Confidence != ConfidenceUnknown {
			continue
		}
		i := slices.IndexFunc(f.Prices, func(p SnapshotPrice) bool { return p.Component == l.Component })
		switch {
		case i < 0 || f.Prices[i].Price == nil:
			f.unknown("the price of %s", l.Component)
		case f.Prices[i].Unit == unitCharged:
			f.unknown("%s, a share of unknown charges", l.Component)
		default:
			f.unknown("the amount of %s: set it under resources", l.Component)
		}
	}
}

// weakest returns the lowest confidence of any line.
func weakest(lines []ChargeLine) Confidence {
	order := []Confidence{ConfidenceUnknown, ConfidenceEstimated, ConfidenceExact}
	lowest := len(order) - 1
	for _, l := range lines {
		lowest = min(lowest, slices.Index(order, l.Confidence))
	}
	return order[max(lowest, 0)]
}
