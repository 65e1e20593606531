package meter

import (
	"cmp"
	"slices"
	"time"
)

// Foretell prices, with q's prices, a life that runs for d and is measured as m says, like Expected; nil is an
// unknown price. What m leaves out counts as in Expected: CPU and memory as allocated, and no traffic.
func (q Quote) Foretell(d time.Duration, m Measures) (*Amount, error) {
	s := q.Snapshot
	if m.EgressBytes == nil {
		s.Prices = slices.DeleteFunc(slices.Clone(s.Prices), func(p SnapshotPrice) bool { return base(p.Component) == ComponentEgress })
	}
	lines, err := Charge(m.Spread(q.future(d)), s)
	if err != nil {
		return nil, err
	}
	amount, all, err := Total(lines)
	return sum{amount, all, lines}.known(), err
}

// Foreseeable is Believable for a future life that runs for d.
func (q Quote) Foreseeable(d time.Duration, m Measures) (Measures, []string) {
	return m.Believable(q.future(d), q.Snapshot, Measures{})
}

func (q Quote) future(d time.Duration) []Segment {
	return []Segment{{Mode: ModeRunning, Milliseconds: wholeUp(d), Sizes: q.Sizes}}
}

// Duration is how long a sandbox will probably run: as expected, else the median of past ones, else its whole ttl,
// and never longer than that.
func Duration(expected time.Duration, past *History, ttl time.Duration) time.Duration {
	if past == nil {
		past = &History{}
	}
	d := cmp.Or(expected, past.Median, ttl)
	if ttl > 0 {
		d = min(d, ttl)
	}
	return d
}
