package sqlstore

import (
	"context"
	"database/sql"
)

// dialect holds everything in which databases differ.
type dialect struct {
	name string
	// rebind turns ? placeholders into the database's own.
	rebind func(query string) string
	// nowMicros is an SQL expression for the clock of a shared server, in Unix microseconds; "" for a file.
	nowMicros string
	// forUpdate ends a SELECT whose rows the transaction is about to change.
	forUpdate string
	// concurrent says that several transactions may write at a time, so rows are locked one by one.
	concurrent bool
	// view starts a transaction that sees one consistent state of the ledger.
	view *sql.TxOptions
	// again reports a transient failure: another transaction was in the way, or the connection was lost.
	again func(err error) bool
	// classify turns a driver's error into an error of the contract.
	classify func(err error, what string) error
	// unique reports a violated unique index.
	unique func(err error) bool
	// tables returns which of names exist where the ledger is, or would be created.
	tables func(ctx context.Context, q queryer, names []string) ([]string, error)
	// damaged says what to do about a damaged store.
	damaged string
	// check lists defects of the store itself, for Verify.
	check func(ctx context.Context, db *sql.DB) ([]string, error)
	// indexes and actions are the statements that audit.schema runs.
	indexes, actions string
}
