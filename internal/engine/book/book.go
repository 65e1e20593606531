// Package book is the open ledger: its clock, the fence of one operation, and
// the ends that wait for it. It calls no place.
package book

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/flight"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/owned"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Options are what a book is opened with. Every field but Lease and Rand is
// required.
type Options struct {
	Ledger   string // address; "" = ledger.db in StateDir
	StateDir string // holds what is noted for a ledger that could not be written
	Account  string // whose operations are begun here
	Clock    func() time.Time
	Lease    time.Duration // see ledger.Options
	Rand     io.Reader     // nil = crypto/rand
	Flights  *flight.Group
	Scratch  *owned.Scratch
}

// Book opens the ledger when it is first needed: read-only for plans, quotes
// and reads, which must leave no trace, for writing once something is to be
// changed. Several callers share one attempt: one that fails slowly, because
// another program has it locked, is not repeated by each of them.
type Book struct {
	Options
	address string
	turns   turns
	server  serverClock
	// sign tells that a ledger was here before, nil where nothing does.
	sign atomic.Pointer[string]

	mu     sync.Mutex
	ro, rw ledger.Ledger
	closed bool
	// down is why a shared ledger could not be reached a moment ago.
	down      error
	downUntil time.Time
}

// New makes a closed book. It opens nothing.
func New(o Options) *Book {
	b := &Book{Options: o, address: o.Ledger}
	if b.address == "" {
		b.address = ledger.DefaultURL(o.StateDir)
	}
	return b
}

// URL is where the ledger is, without credentials.
func (b *Book) URL() string { return ledger.ShownURL(b.address) }

// Shared reports that the ledger is on another machine, or may be.
func (b *Book) Shared() bool { return ledger.Shared(b.address) }

// downFor is how long a shared ledger that could not be reached is not tried
// again: one operation asks for it many times over.
const downFor = 3 * time.Second

// Reader gives the ledger for reading; a missing one reads as empty.
func (b *Book) Reader(ctx context.Context) (ledger.Ledger, error) { return b.open(ctx, true) }

// Exists is nil where the ledger holds anything, KindNotFound where there
// is none yet, else why it could not be read.
func (b *Book) Exists(ctx context.Context) error {
	l, err := b.Reader(ctx)
	if err != nil || l.ID() != "" {
		return err
	}
	return extensions.Errorf(extensions.KindNotFound, "there is no ledger at %s", ledger.ShownURL(b.address)).
		WithRemedy("check the address of the ledger; the first sandbox or grant makes it")
}

// Writer gives the ledger for writing and makes it if it is missing.
func (b *Book) Writer(ctx context.Context) (ledger.Ledger, error) { return b.open(ctx, false) }

// Changer is Writer for a change that waits for no recovery: what is noted for
// the ledger is taken down first.
func (b *Book) Changer(ctx context.Context) (ledger.Ledger, error) {
	l, err := b.Writer(ctx)
	if err == nil {
		b.SettleNoted(ctx, l, nil)
	}
	return l, err
}

func (b *Book) open(ctx context.Context, readOnly bool) (ledger.Ledger, error) {
	if l := b.opened(readOnly); l != nil {
		b.askTimeAgain(ctx, l)
		return l, nil
	}
	key := "write"
	if readOnly {
		key = "read"
	}
	l, err := flight.Do(ctx, b.Flights, "ledger\x00"+key, func(ctx context.Context) (ledger.Ledger, error) {
		if l := b.opened(readOnly); l != nil {
			return l, nil
		}
		if err := b.stillDown(); err != nil {
			return nil, err
		}
		l, err := ledger.Open(ctx, b.address, ledger.Options{ReadOnly: readOnly, Now: b.Now, Lease: b.Lease, Earlier: b.signOfEarlierLedger})
		if err != nil {
			if b.notReached(ctx, err) {
				b.isDown(err)
			}
			return nil, err
		}
		if err := b.askTime(ctx, l); err != nil {
			return nil, errors.Join(err, l.Close())
		}
		return l, b.keep(l, readOnly)
	})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil, extensions.Classify("ledger", "", "", err)
	}
	return l, err
}

// HeardOf keeps what tells that there was a ledger: an empty file in its place
// is no ledger that was never begun.
func (b *Book) HeardOf(sign string) { b.sign.Store(&sign) }

// signOfEarlierLedger is what is known of a ledger at its address
// without opening it.
func (b *Book) signOfEarlierLedger() string {
	if sign := b.sign.Load(); sign != nil {
		return *sign
	}
	for _, name := range b.notes() {
		if u, err := readNoted(name); err == nil && u.Ledger == b.URL() {
			return name
		}
	}
	return ""
}

// notReached tells a shared ledger that does not answer from one that refuses.
func (b *Book) notReached(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && b.Shared() &&
		(extensions.IsKind(err, extensions.KindUnavailable) || extensions.IsKind(err, extensions.KindTimeout))
}

func (b *Book) stillDown() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Now().Before(b.downUntil) {
		return b.down
	}
	return nil
}

func (b *Book) isDown(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down, b.downUntil = err, time.Now().Add(downFor)
}

// opened gives what serves the purpose already. One that was missing may have
// been made by another process since, so it is looked for again.
func (b *Book) opened(readOnly bool) ledger.Ledger {
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

func (b *Book) keep(l ledger.Ledger, readOnly bool) error {
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

// Close releases the ledger. The book is of no use afterwards.
func (b *Book) Close() error {
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
