package ledger

import (
	"context"
	"database/sql"
)

// dialect is everything in which databases differ.
type dialect struct {
	name string
	// rebind turns ? placeholders into the database's own.
	rebind func(query string) string
	// forUpdate ends a SELECT whose rows the transaction is about to change.
	forUpdate string
	// classify turns a driver's error into one of the contract.
	classify func(err error, what string) error
	// unique reports a violated unique index.
	unique func(err error) bool
	// check lists defects of the store itself, for Verify.
	check func(ctx context.Context, db *sql.DB) ([]string, error)
}
