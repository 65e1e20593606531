package engine

import (
	"context"
	"errors"
	"io/fs"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// Charges reads a sandbox's settled charges.
func (e *Engine) Charges(ctx context.Context, id ID) ([]Charge, error) {
	l, err := e.book.Reader(ctx)
	if err != nil {
		return nil, err
	}
	cs, err := l.Charges(ctx, id)
	return chargesOf(cs), err
}

// LedgerExists is nil where the ledger holds anything, KindNotFound where there
// is none yet, else why it could not be read.
func (e *Engine) LedgerExists(ctx context.Context) error { return e.book.Exists(ctx) }

// SharedLedger reports an address whose ledger is on another machine, or may be.
func SharedLedger(address string) bool { return ledger.Shared(address) }

// heardOf keeps that a receipt tells of a ledger.
func (e *Engine) heardOf(rec Receipt) {
	if rec.Ledger != "" {
		e.book.HeardOf("the receipt of sandbox " + string(rec.ID))
	}
}

// CheckLedger checks the form of a ledger's address. What it leads to is not
// looked at: neither the place nor the files it names.
func CheckLedger(address string) error {
	err := ledger.CheckURL(address)
	var file *fs.PathError
	if errors.As(err, &file) {
		return nil
	}
	return err
}
