package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func classifySQLite(err error, what string) error {
	wrapped := fmt.Errorf("%s: %w", what, err)
	var e *sqlite.Error
	if !errors.As(err, &e) {
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			return failure(extensions.KindTimeout, "", wrapped)
		}
		return failure(extensions.KindInternal, "", wrapped)
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return failure(extensions.KindUnavailable, "", wrapped).WithRemedy("the disk is full: free some space, then run again; nothing of this step was recorded")
	case sqlite3.SQLITE_IOERR:
		return failure(extensions.KindUnavailable, "", wrapped).WithRemedy("the disk refused: check its space, quota and health, then run again; nothing of this step was recorded")
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		return failure(extensions.KindUnavailable, "", wrapped).WithRemedy("another program has the ledger locked: wait for it, then run again")
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return failure(extensions.KindUnavailable, "", wrapped).WithRemedy("check who owns the ledger and its folder")
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return failure(extensions.KindInternal, "", wrapped).WithRemedy("the file is damaged or is no ledger: keep a copy of it and of its -wal file, " +
			"move them away, and restore a backup; sandboxes can still be found by their labels")
	}
	return failure(extensions.KindInternal, "", wrapped)
}

func uniqueSQLite(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// checkSQLite asks SQLite whether the file is sound.
func checkSQLite(ctx context.Context, db *sql.DB) ([]string, error) {
	var out []string
	for _, pragma := range []string{"integrity_check", "foreign_key_check"} {
		rows, err := db.QueryContext(ctx, "SELECT * FROM pragma_"+pragma) //nolint:gosec // two constants
		if err != nil {
			return nil, err
		}
		cols, err := rows.Columns()
		if err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		for rows.Next() {
			vs, ptrs := make([]any, len(cols)), make([]any, len(cols))
			for i := range vs {
				ptrs[i] = &vs[i]
			}
			if err := rows.Scan(ptrs...); err != nil {
				return nil, errors.Join(err, rows.Close())
			}
			if line := fmt.Sprint(vs...); line != "ok" {
				out = append(out, pragma+": "+line)
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return nil, err
		}
	}
	return out, nil
}
