package book

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// serverClock is the clock of the server that keeps the ledger. Machines that
// share a ledger share it: each one's own may be wrong.
type serverClock struct {
	read  atomic.Pointer[clockReading] // nil: this machine's clock counts
	asked atomic.Pointer[time.Time]
}

// clockReading is one moment by two clocks. here has Go's monotonic reading, so
// that a clock which is set meanwhile changes nothing.
type clockReading struct{ here, there time.Time }

const (
	clockMaxAge  = 30 * time.Second
	clockTimeout = 2 * time.Second
	// maxSkew is how far this machine's clock may be off where it is used to end
	// something.
	maxSkew = 5 * time.Minute
)

// Now is the time that tells what is overdue: by the ledger's server where it has
// one, once it was asked.
func (b *Book) Now() time.Time {
	here := b.Clock()
	if r := b.server.read.Load(); r != nil {
		return r.there.Add(here.Sub(r.here))
	}
	return here
}

// askTime reads the server's clock, if the ledger has one. Only a difference that
// the time the answer took does not explain is one.
func (b *Book) askTime(ctx context.Context, l ledger.Ledger) error {
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

// askTimeAgain reads it anew in a run that takes long. Without an answer what was
// read before goes on counting.
func (b *Book) askTimeAgain(ctx context.Context, l ledger.Ledger) {
	if asked := b.server.asked.Load(); asked != nil && b.Clock().Sub(*asked).Abs() < clockMaxAge {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, clockTimeout)
	defer cancel()
	_ = b.askTime(ctx, l)
}

// CheckClock refuses to give anything an end while this machine's clock is wrong:
// extensions turn ends into times to run by it.
func (b *Book) CheckClock() error {
	off, how := b.Clock().Sub(b.Now()).Round(time.Second), "ahead of"
	if off < 0 {
		off, how = -off, "behind"
	}
	if off <= maxSkew {
		return nil
	}
	return extensions.Errorf(extensions.KindInvalid, "this machine's clock is %s %s that of the ledger %s", off, how, b.URL()).
		WithRemedy("set this machine's clock: what is made or extended with a wrong one would end at a wrong time")
}
