package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// ledgers opens the ledger when it is first needed: read-only for plans,
// quotes and reads, which must leave no trace, for writing once something is
// to be changed.
type ledgers struct {
	mu     sync.Mutex
	ro, rw ledger.Ledger
}

func (e *Engine) ledgerURL() string {
	if e.opts.Ledger != "" {
		return e.opts.Ledger
	}
	return ledger.DefaultURL(e.stateDir)
}

// reader gives the ledger for reading; a missing one reads as empty.
func (e *Engine) reader(ctx context.Context) (ledger.Ledger, error) {
	e.books.mu.Lock()
	defer e.books.mu.Unlock()
	if e.books.rw != nil {
		return e.books.rw, nil
	}
	if e.books.ro != nil && e.books.ro.ID() != "" {
		return e.books.ro, nil
	}
	// One that was missing may have been made by another process since.
	l, err := ledger.Open(ctx, e.ledgerURL(), ledger.Options{ReadOnly: true, Now: e.now})
	if err != nil {
		return nil, err
	}
	if e.books.ro != nil {
		_ = e.books.ro.Close() // it held nothing
	}
	e.books.ro = l
	return l, nil
}

// writer gives the ledger for writing and makes it if it is missing.
func (e *Engine) writer(ctx context.Context) (ledger.Ledger, error) {
	e.books.mu.Lock()
	defer e.books.mu.Unlock()
	if e.books.rw != nil {
		return e.books.rw, nil
	}
	l, err := ledger.Open(ctx, e.ledgerURL(), ledger.Options{Now: e.now})
	if err != nil {
		return nil, err
	}
	e.books.rw = l
	return l, nil
}

func (b *ledgers) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, l := range []ledger.Ledger{b.ro, b.rw} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	b.ro, b.rw = nil, nil
	return errors.Join(errs...)
}
