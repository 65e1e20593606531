// Package deadline turns times into the units that places count in: rounded up, never down, so that no sandbox
// ends before its time and no limit is shorter than asked.
package deadline

import (
	"math"
	"time"
)

// Up returns d in whole units, rounded up; a d that is not positive is 0. unit is positive.
func Up(d, unit time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d-1)/unit) + 1
}

// Left returns what is left from now until the deadline in whole units, rounded up; 0 once it has passed. The
// clock may be read before the answer arrives: what a place adds to its own time ends later, never earlier.
func Left(now, until time.Time, unit time.Duration) int64 { return Up(until.Sub(now), unit) }

// Unix returns the first whole second since 1970 that is not before t.
func Unix(t time.Time) int64 {
	if t.Nanosecond() > 0 && t.Unix() < math.MaxInt64 {
		return t.Unix() + 1
	}
	return t.Unix()
}
