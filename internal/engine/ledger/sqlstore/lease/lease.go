// Package lease keeps a lease alive: it renews the lease from here, while the granter's clock decides when it ends.
package lease

import (
	"context"
	"sync"
	"time"
)

// Max is the longest term, and the default.
const Max = 30 * time.Second

// Term returns d if it is positive and at most Max, else Max.
func Term(d time.Duration) time.Duration {
	if d <= 0 || d > Max {
		return Max
	}
	return d
}

// Lease is a lease that is renewed until Stop.
type Lease struct {
	term   time.Duration
	extend func(context.Context) error
	stop   context.CancelFunc
	done   sync.WaitGroup

	mu    sync.Mutex
	heard time.Time // when the last successful renewal was sent
}

// Keep takes a lease for one term and renews it three times as often. extend leases for one term from the moment it is
// carried out; its first error is Keep's.
func Keep(ctx context.Context, term time.Duration, extend func(context.Context) error) (*Lease, error) {
	l := &Lease{term: term, extend: extend}
	if err := l.once(ctx); err != nil {
		return nil, err
	}
	ctx, l.stop = context.WithCancel(context.Background())
	l.done.Go(func() { l.renew(ctx) })
	return l, nil
}

// Stop ends the renewals and waits for one under way.
func (l *Lease) Stop() {
	l.stop()
	l.done.Wait()
}

// Left returns how much longer the lease certainly holds. It counts from when the renewal was sent, and ends a sixth of
// the term before the granter's end. It asks both clocks of this machine: one stops while the machine sleeps, the other
// may be set back.
func (l *Lease) Left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	passed := max(time.Since(l.heard), time.Since(l.heard.Round(0)))
	return l.term - l.term/6 - passed
}

func (l *Lease) once(ctx context.Context) error {
	sent := time.Now()
	err := l.extend(ctx)
	if err == nil {
		l.mu.Lock()
		l.heard = sent
		l.mu.Unlock()
	}
	return err
}

// renew runs until the lease is stopped. It retries a failed renewal at its next turn: the term outlasts two of them.
func (l *Lease) renew(ctx context.Context) {
	turn := time.NewTicker(l.term / 3)
	defer turn.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-turn.C:
		}
		once, cancel := context.WithTimeout(ctx, l.term/3)
		_ = l.once(once)
		cancel()
	}
}

// Guard returns ctx until nothing is left; then it ends with cause.
func Guard(ctx context.Context, left func() time.Duration, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for rest := left(); rest > 0; rest = left() {
			t := time.NewTimer(min(rest, time.Second)) // so that a machine that slept notices soon
			select {
			case <-ctx.Done():
				t.Stop()
				return
			case <-t.C:
			}
		}
		cancel(cause)
	}()
	return ctx, func() { cancel(context.Canceled) }
}
