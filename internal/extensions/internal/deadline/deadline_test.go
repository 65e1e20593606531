package deadline

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var units = []time.Duration{1, time.Millisecond, 10 * time.Millisecond, time.Second, time.Minute, time.Hour, 24 * time.Hour}

func TestNothingIsRoundedDown(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom(units).Draw(t, "unit")
		d := time.Duration(rapid.Int64().Draw(t, "d"))
		n := Up(d, unit)
		switch {
		case n < 0:
			t.Fatalf("%s is %d × %s", d, n, unit)
		case d <= 0 && n != 0:
			t.Fatalf("%s, which is over, is %d", d, n)
		case d > 0 && float64(n)*float64(unit) < float64(d)*(1-1e-12):
			t.Fatalf("%s is only %d × %s", d, n, unit)
		case n > 0 && time.Duration(n-1)*unit >= d:
			t.Fatalf("%s is %d × %s, and one less would do", d, n, unit)
		}
	})
}

func TestNoUnitEndsBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "from"), rapid.Int64Range(0, 999999999).Draw(t, "nanos"))
		until := from.Add(time.Duration(rapid.Int64Range(0, int64(366*24*time.Hour)).Draw(t, "ttl")))
		if s := time.Unix(Unix(until), 0); s.Before(until) || s.Sub(until) >= time.Second {
			t.Fatalf("%s is %s in seconds", until, s)
		}
		now := from.Add(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "later")))
		if left := time.Duration(Left(now, until, time.Second)) * time.Second; now.Before(until) && now.Add(left).Before(until) {
			t.Fatalf("%s after %s is before %s", left, now, until)
		}
	})
}

func TestTheLongestTimes(t *testing.T) {
	t.Parallel()
	if n := Up(math.MaxInt64, time.Second); n != 9223372037 {
		t.Errorf("%d s", n)
	}
	if n := Up(math.MinInt64, 1); n != 0 {
		t.Errorf("%d ns", n)
	}
}
