// Package book keeps the ledger open: its clock, the fence of one operation, and the noted ends that wait for
// it. It calls no place.
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
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/owned"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Options opens a book. Every field except Lease and Rand is required.
type Options struct {
	Ledger   string // address; "" = ledger.db in StateDir
	StateDir string // has the ends noted for a ledger that could not be written
	Account  string // whose operations are begun here
	Clock    func() time.Time
	Lease    time.Duration // see sqlstore.Options
	Rand     io.Reader     // nil = crypto/rand
	Flights  *flight.Group
	Scratch  *owned.Scratch
}

// Book opens the ledger on first use: read-only for plans, quotes and reads, which must leave no trace, and for
// writing once a run changes something. Callers share one attempt, so each does not repeat a slow failure, such
// as a locked file.
type Book struct {
	Options
	address string
	turns   turns
	server  serverClock
	// sign is evidence of an earlier ledger at this address; nil if there is none.
	sign atomic.Pointer[string]

	mu     sync.Mutex
	ro, rw *ledger.Ledger
	closed bool
	// down is why a shared ledger could not be reached a moment ago.
	down      error
	downUntil time.Time
}

// New returns a closed book. It opens nothing.
func New(o Options) *Book {
	b := &Book{Options: o, address: o.Ledger}
	if b.address == "" {
		b.address = sqlstore.DefaultURL(o.StateDir)
	}
	return b
}

// URL returns the ledger's address without credentials.
func (b *Book) URL() string { return sqlstore.ShownURL(b.address) }

// Shared reports whether the ledger is, or may be, on another machine.
func (b *Book) Shared() bool { return sqlstore.Shared(b.address) }

// downFor is the pause before an unreachable shared ledger is tried again: one operation asks for it many times.
const downFor = 3 * time.Second

// Reader returns the ledger for reading; a missing one reads as empty.
func (b *Book) Reader(ctx context.Context) (*ledger.Ledger, error) { return b.open(ctx, true) }

// Exists returns nil if the ledger has anything, KindNotFound if there is none yet, else why it cannot be read.
func (b *Book) Exists(ctx context.Context) error {
	l, err := b.Reader(ctx)
	if err != nil || l.ID() != "" {
		return err
	}
	return extensions.Errorf(extensions.KindNotFound, "there is no ledger at %s", sqlstore.ShownURL(b.address)).
		WithRemedy("check the ledger's address; the first sandbox or grant creates it")
}

// Writer returns the ledger for writing and creates it if it is missing.
func (b *Book) Writer(ctx context.Context) (*ledger.Ledger, error) { return b.open(ctx, false) }

// Changer is Writer for a change that waits for no recovery: it first settles the noted ends.
func (b *Book) Changer(ctx context.Context) (*ledger.Ledger, error) {
	l, err := b.Writer(ctx)
	if err == nil {
		b.SettleNoted(ctx, l, nil)
	}
	return l, err
}

func (b *Book) open(ctx context.Context, readOnly bool) (*ledger.Ledger, error) {
	if l := b.opened(readOnly); l != nil {
		b.askTimeAgain(ctx, l)
		return l, nil
	}
	key := "write"
	if readOnly {
		key = "read"
	}
	l, err := flight.Do(ctx, b.Flights, "ledger\x00"+key, func(ctx context.Context) (*ledger.Ledger, error) {
		if l := b.opened(readOnly); l != nil {
			return l, nil
		}
		if err := b.stillDown(); err != nil {
			return nil, err
		}
		l, err := sqlstore.Open(ctx, b.address, sqlstore.Options{ReadOnly: readOnly, Now: b.Now, Lease: b.Lease, Earlier: b.signOfEarlierLedger})
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

// HeardOf keeps evidence of a former ledger: an empty file in its place is then damage, not a new ledger.
func (b *Book) HeardOf(sign string) { b.sign.Store(&sign) }

// signOfEarlierLedger returns the evidence of an earlier ledger at the address, without opening it.
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

// notReached reports whether a shared ledger does not answer, as opposed to refusing.
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

// opened returns an open ledger that fits. It ignores a reader of a missing ledger, which another process may
// have created since.
func (b *Book) opened(readOnly bool) *ledger.Ledger {
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

func (b *Book) keep(l *ledger.Ledger, readOnly bool) error {
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
		_ = b.ro.Close() // it was empty
	}
	b.ro = l
	return nil
}

// Close releases the ledger. The book is unusable afterwards.
func (b *Book) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	var errs []error
	for _, l := range []*ledger.Ledger{b.ro, b.rw} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	b.ro, b.rw = nil, nil
	return errors.Join(errs...)
}
