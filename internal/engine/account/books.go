// Package account tells what an account has, uses and owes: grants, budgets,
// usage, prices, what its hosts cost, exports, and whether the ledger is sound.
// It reads the ledger and the catalog, and calls no place.
package account

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// Books is the open ledger as accounts need it.
type Books interface {
	// Reader gives the ledger for reading; a missing one reads as empty.
	Reader(ctx context.Context) (ledger.Ledger, error)
	// Writer makes the ledger if it is missing.
	Writer(ctx context.Context) (ledger.Ledger, error)
	// Changer is Writer after what is noted for the ledger was taken down.
	Changer(ctx context.Context) (ledger.Ledger, error)
	// URL is where the ledger is, without credentials.
	URL() string
	// Now is the time by the ledger's clock.
	Now() time.Time
}

// Account is one account, "org/workspace", and its ledger.
type Account struct {
	name    string
	catalog *catalog.Catalog
	books   Books
}

// New makes the view of an account. It reads nothing.
func New(name string, c *catalog.Catalog, b Books) *Account { return &Account{name, c, b} }
