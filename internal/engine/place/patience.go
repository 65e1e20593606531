package place

import (
	"context"
	"errors"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// patience is how long the retries of one call may take together.
type patience struct {
	own  time.Duration // where the place does not say when to ask again
	told time.Duration // where it does
	// poll says that the call itself is waiting: only the time between its attempts counts.
	poll bool
}

var (
	patienceLook   = patience{own: 2 * time.Second, told: 30 * time.Second} // somebody waits for a plan
	patienceChange = patience{own: 10 * time.Second, told: 2 * time.Minute}
	patiencePoll   = patience{own: time.Minute, told: 2 * time.Minute, poll: true} // what it waits for is made and paid for
)

const (
	backoffFirst = 250 * time.Millisecond
	backoffMost  = 5 * time.Second
	// toldMost is the longest wait that a place may ask for; what asks for more is not asked again.
	toldMost = 30 * time.Second
)

// within returns p with at most half of the time that ctx leaves, so that what follows has time, too.
func (p patience) within(ctx context.Context) patience {
	if end, ok := ctx.Deadline(); ok {
		half := time.Until(end) / 2
		p.own, p.told = min(p.own, half), min(p.told, half)
	}
	return p
}

// retries is the state of one call that is tried again.
type retries struct {
	left   patience
	failed int // attempts after which the place did not say when to ask again
}

// after returns how long to wait before the next attempt, and whether the place asked for it; ok is false
// if there is to be none. took is what the failed attempt took, jitter is within [0, 1).
func (r *retries) after(err error, took time.Duration, jitter float64) (wait time.Duration, told, ok bool) {
	if r.left.poll {
		took = 0
	}
	if hint := retryAfter(err); hint > 0 {
		hint = max(hint, backoffFirst)
		wait = hint + time.Duration(jitter*float64(hint)/10) // never before
		r.left.told -= took
		return wait, true, hint <= toldMost && wait <= r.left.told
	}
	wait = time.Duration(jitter * float64(min(backoffFirst<<min(r.failed, 10), backoffMost)))
	if r.failed > 0 {
		r.left.own -= took
	}
	r.failed++
	r.left.own -= wait
	return wait, false, r.left.own >= 0
}

// mayRepeat reports whether a failed call may be made again: nothing was made, or it is repeatable.
func (c call) mayRepeat(err error) bool {
	switch extensions.KindOf(err) {
	case extensions.KindUnavailable, extensions.KindUnreachable:
		return !errors.Is(err, extensions.ErrElsewhere) // it stays there
	case extensions.KindIndeterminate:
		return c.repeatable
	}
	return false
}
