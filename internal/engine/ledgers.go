package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/flight"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// ledgers opens the ledger when it is first needed: read-only for plans,
// quotes and reads, which must leave no trace, for writing once something is
// to be changed. Several callers share one attempt: one that fails slowly,
// because another program has it locked, is not repeated by each of them.
type ledgers struct {
	mu     sync.Mutex
	ro, rw ledger.Ledger
	closed bool
	// receipt names one that was made with a ledger.
	receipt atomic.Pointer[string]
	// down is why a shared ledger could not be reached a moment ago.
	down      error
	downUntil time.Time
}

// downFor is how long a shared ledger that could not be reached is not tried
// again: one operation asks for it many times over.
const downFor = 3 * time.Second

// now is the time by the clock that tells what is overdue.
func (e *Engine) now() time.Time { return e.clock() }

func (e *Engine) ledgerURL() string {
	if e.opts.Ledger != "" {
		return e.opts.Ledger
	}
	return ledger.DefaultURL(e.stateDir)
}

// reader gives the ledger for reading; a missing one reads as empty.
func (e *Engine) reader(ctx context.Context) (ledger.Ledger, error) { return e.ledger(ctx, true) }

// LedgerExists is nil where the ledger holds anything, KindNotFound where there
// is none yet, else why it could not be read.
func (e *Engine) LedgerExists(ctx context.Context) error {
	l, err := e.reader(ctx)
	if err != nil || l.ID() != "" {
		return err
	}
	return extensions.Errorf(extensions.KindNotFound, "there is no ledger at %s", ledger.ShownURL(e.ledgerURL())).
		WithRemedy("check the address of the ledger; the first sandbox or grant makes it")
}

// SharedLedger reports an address whose ledger is on another machine, or may be.
func SharedLedger(address string) bool { return ledger.Shared(address) }

// writer gives the ledger for writing and makes it if it is missing.
func (e *Engine) writer(ctx context.Context) (ledger.Ledger, error) { return e.ledger(ctx, false) }

// changer is writer for a change that waits for no recovery: what is noted for
// the ledger is taken down first.
func (e *Engine) changer(ctx context.Context) (ledger.Ledger, error) {
	l, err := e.writer(ctx)
	if err == nil {
		e.settleNoted(ctx, l, nil)
	}
	return l, err
}

func (e *Engine) ledger(ctx context.Context, readOnly bool) (ledger.Ledger, error) {
	if l := e.books.opened(readOnly); l != nil {
		return l, nil
	}
	key := "write"
	if readOnly {
		key = "read"
	}
	l, err := flight.Do(ctx, &e.flights, "ledger\x00"+key, func(ctx context.Context) (ledger.Ledger, error) {
		if l := e.books.opened(readOnly); l != nil {
			return l, nil
		}
		if err := e.books.stillDown(); err != nil {
			return nil, err
		}
		l, err := ledger.Open(ctx, e.ledgerURL(), ledger.Options{ReadOnly: readOnly, Now: e.clock, Lease: e.opts.Lease, Earlier: e.signOfEarlierLedger})
		if err != nil {
			if e.notReached(ctx, err) {
				e.books.isDown(err)
			}
			return nil, err
		}
		return l, e.books.keep(l, readOnly)
	})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil, place.Classify("ledger", "", err)
	}
	return l, err
}

// heardOf keeps that a receipt tells of a ledger: an empty file in its place is
// no ledger that was never begun.
func (e *Engine) heardOf(rec Receipt) {
	if rec.Ledger != "" {
		sign := "the receipt of sandbox " + string(rec.ID)
		e.books.receipt.Store(&sign)
	}
}

// signOfEarlierLedger is what this engine knows of a ledger at its address
// without opening it.
func (e *Engine) signOfEarlierLedger() string {
	if sign := e.books.receipt.Load(); sign != nil {
		return *sign
	}
	for _, name := range e.notes() {
		if u, err := readUnsettled(name); err == nil && u.Ledger == e.LedgerURL() {
			return name
		}
	}
	return ""
}

// notReached tells a shared ledger that does not answer from one that refuses.
func (e *Engine) notReached(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && ledger.Shared(e.ledgerURL()) &&
		(extensions.IsKind(err, extensions.KindUnavailable) || extensions.IsKind(err, extensions.KindTimeout))
}

func (b *ledgers) stillDown() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Now().Before(b.downUntil) {
		return b.down
	}
	return nil
}

func (b *ledgers) isDown(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down, b.downUntil = err, time.Now().Add(downFor)
}

// opened gives what serves the purpose already. One that was missing may have
// been made by another process since, so it is looked for again.
func (b *ledgers) opened(readOnly bool) ledger.Ledger {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.rw != nil:
		return b.rw
	case readOnly && b.ro != nil && b.ro.ID() != "":
		return b.ro
	}
	return nil
}

func (b *ledgers) keep(l ledger.Ledger, readOnly bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errors.Join(flight.ErrClosed, l.Close())
	}
	if !readOnly {
		b.rw = l
		return nil
	}
	if b.ro != nil {
		_ = b.ro.Close() // it held nothing
	}
	b.ro = l
	return nil
}

func (b *ledgers) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	var errs []error
	for _, l := range []ledger.Ledger{b.ro, b.rw} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	b.ro, b.rw = nil, nil
	return errors.Join(errs...)
}
