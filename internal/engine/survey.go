package engine

import (
	"context"
)

// Survey lists the places of every extension, and with ask what they offer now; see [life.Manager.Survey].
func (e *Engine) Survey(ctx context.Context, ask bool) ([]Pool, error) {
	return e.life.Survey(ctx, ask)
}

// LedgerURL returns the ledger's address without its password.
func (e *Engine) LedgerURL() string { return e.book.URL() }
