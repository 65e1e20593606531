//go:build unix && !linux

package initd

import "time"

// clockGuard measures what is left to a deadline by Go's monotonic clock.
type clockGuard struct{ end time.Time }

func newClockGuard(deadline time.Time) clockGuard {
	return clockGuard{time.Now().Add(time.Until(deadline))}
}

func (g clockGuard) left() time.Duration { return time.Until(g.end) }
