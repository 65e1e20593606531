package book

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// serverClock is the clock of the ledger's server. Machines that share a ledger use it, since their own clocks
// may be wrong.
type serverClock struct {
	read  atomic.Pointer[clockReading] // nil: this machine's clock counts
	asked atomic.Pointer[time.Time]
}

// clockReading is one moment by two clocks. here has Go's monotonic reading, so setting this machine's clock
// changes nothing.
type clockReading struct{ here, there time.Time }

const (
	clockMaxAge  = 30 * time.Second
	clockTimeout = 2 * time.Second
	// maxSkew is the largest error of this machine's clock with which sandboxes may start.
	maxSkew = 5 * time.Minute
)

// Now returns the time that decides what is overdue: the ledger server's once it is known, else this machine's.
func (b *Book) Now() time.Time {
	here := b.Clock()
	if r := b.server.read.Load(); r != nil {
		return r.there.Add(here.Sub(r.here))
	}
	return here
}

// askTime reads the server's clock, if the ledger has one. It ignores a difference no larger than the time of
// the answer.
func (b *Book) askTime(ctx context.Context, l *ledger.Ledger) error {
	sent := b.Clock()
	b.server.asked.Store(&sent)
	there, err := l.ServerTime(ctx)
	if err != nil || there.IsZero() {
		return err
	}
	r := clockReading{here: b.Clock()}
	r.there = r.here
	if latest := there.Add(r.here.Sub(sent)); there.After(r.here) {
		r.there = there
	} else if latest.Before(r.here) {
		r.there = latest
	}
	b.server.read.Store(&r)
	return nil
}

// askTimeAgain reads the server's clock again in a long run. Without an answer, the last reading stays valid.
func (b *Book) askTimeAgain(ctx context.Context, l *ledger.Ledger) {
	if asked := b.server.asked.Load(); asked != nil && b.Clock().Sub(*asked).Abs() < clockMaxAge {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, clockTimeout)
	defer cancel()
	_ = b.askTime(ctx, l)
}

// CheckClock fails while this machine's clock is wrong, because extensions compute running times from deadlines
// with it.
func (b *Book) CheckClock() error {
	off, how := b.Clock().Sub(b.Now()).Round(time.Second), "ahead of"
	if off < 0 {
		off, how = -off, "behind"
	}
	if off <= maxSkew {
		return nil
	}
	return extensions.Errorf(extensions.KindInvalid, "this machine's clock is %s %s the clock of the ledger %s", off, how, b.URL()).
		WithRemedy("set this machine's clock: a wrong one would set wrong deadlines")
}
