// Package account reports what an account has, uses and owes: grants, budgets, usage, prices, cost of its
// hosts, exports, and whether the ledger is sound. It reads the ledger and the catalog and calls no place.
package account

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// Books is the open ledger as this package needs it.
type Books interface {
	// Reader returns the ledger for reading; a missing one reads as empty.
	Reader(ctx context.Context) (*ledger.Ledger, error)
	// Changer returns it for writing, after recording what was noted for it. It creates a missing ledger.
	Changer(ctx context.Context) (*ledger.Ledger, error)
	// URL returns where the ledger is, without credentials.
	URL() string
	// Now returns the time by the ledger's clock.
	Now() time.Time
}

// Account is one account, "org/workspace", and its ledger.
type Account struct {
	name    string
	catalog *catalog.Catalog
	books   Books
}

// New returns the view of an account. It reads nothing.
func New(name string, c *catalog.Catalog, b Books) *Account { return &Account{name, c, b} }
