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
	// concurrent: several transactions may write at a time, so that locks are
	// taken row by row.
	concurrent bool
	// view is a transaction that sees one state of the whole ledger.
	view *sql.TxOptions
	// again reports that a transaction failed for what will pass: another one
	// was in the way, or the connection was lost.
	again func(err error) bool
	// classify turns a driver's error into one of the contract.
	classify func(err error, what string) error
	// unique reports a violated unique index.
	unique func(err error) bool
	// tables lists which of those named are where the ledger is, or would be made.
	tables func(ctx context.Context, q queryer, names []string) ([]string, error)
	// damaged says what to do about a store that is not whole.
	damaged string
	// check lists defects of the store itself, for Verify.
	check func(ctx context.Context, db *sql.DB) ([]string, error)
	// indexes and actions are the statements of audit.schema.
	indexes, actions string
}
