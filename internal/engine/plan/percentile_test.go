package plan

import (
	"testing"
	"time"
)

// The median of two is the smaller: what a place took once, a single slow
// start is no measure of.
func TestPercentilesAreThoseByNearestRank(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, c := range []struct {
		all         []time.Duration
		median, p95 time.Duration
	}{
		{[]time.Duration{7 * s}, 7 * s, 7 * s},
		{[]time.Duration{9 * s, s}, s, 9 * s},
		{[]time.Duration{3 * s, s, 2 * s}, 2 * s, 3 * s},
		{[]time.Duration{4 * s, 3 * s, 2 * s, s}, 2 * s, 4 * s},
	} {
		if m, p := Percentile(c.all, 50), Percentile(c.all, 95); m != c.median || p != c.p95 {
			t.Errorf("%v: median %s, p95 %s", c.all, m, p)
		}
	}
}
