package initd

import (
	"time"

	"golang.org/x/sys/unix"
)

// clockGuard measures the time left to a deadline by a clock that nobody can set back and that runs on while
// the machine sleeps.
type clockGuard struct{ end time.Duration }

func newClockGuard(deadline time.Time) clockGuard {
	return clockGuard{sinceBoot() + time.Until(deadline)}
}

func (g clockGuard) left() time.Duration { return g.end - sinceBoot() }

func sinceBoot() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
