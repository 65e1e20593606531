//go:build unix && !linux

package initd

import (
	"errors"
	"os"
	"time"
)

// clockGuard measures what is left to a deadline by Go's monotonic clock.
type clockGuard struct{ end time.Time }

func newClockGuard(deadline time.Time) clockGuard {
	return clockGuard{time.Now().Add(time.Until(deadline))}
}

func (g clockGuard) left() time.Duration { return time.Until(g.end) }

func (*procs) giveUp() error { return nil }

func (*procs) confine(int) {}

// Members returns nothing if other processes' environments cannot be read.
func Members(string) []int { return nil }

func (*server) watchMemory() {}

func pids() []int { return nil }

func moves(int) bool { return false }

func stopped(int) bool { return false }

// unignore does nothing: programs check ignored signals only on Linux.
func unignore() {}

// Here a job is its process group and nothing more.

func tagNext(uint64) uint64 { return 0 }
func tagged(uint64) []int   { return nil }

var errNoTerminal = errors.New("terminals are not supported on this system without walls")

func openTerminal(uint16, uint16) (ours, theirs *os.File, err error) { return nil, nil, errNoTerminal }

func (*procs) cpu() (time.Duration, error) { return 0, errors.ErrUnsupported }

func resize(*os.File, uint16, uint16) error { return errNoTerminal }
