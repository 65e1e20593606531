package engine

import (
	"context"
	"errors"
	"io/fs"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// Charges reads a sandbox's settled charges.
func (e *Engine) Charges(ctx context.Context, id ID) ([]Charge, error) {
	l, err := e.reader(ctx)
	if err != nil {
		return nil, err
	}
	cs, err := l.Charges(ctx, id)
	return chargesOf(cs), err
}

// LedgerURL is where the ledger is, without credentials.
func (e *Engine) LedgerURL() string {
	return ledger.ShownURL(e.ledgerURL())
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
