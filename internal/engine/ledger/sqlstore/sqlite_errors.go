package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const damagedFile = "the file is damaged or is not a ledger: copy it and its -wal file, move them away, and restore a backup; " +
	"sandboxes can still be read and destroyed from their state, and found by their labels"

func classifySQLite(err error, what string) error {
	wrapped := fmt.Errorf("%s: %w", what, err)
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return fault.New(fault.Stopped(err), "", wrapped)
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return fault.New(extensions.KindUnavailable, "",
			wrapped).WithRemedy("the disk is full: free some space, then run again; this step was not recorded")
	case sqlite3.SQLITE_IOERR:
		return fault.New(extensions.KindUnavailable, "",
			wrapped).WithRemedy("the disk reported an error: check its space, quota and health, then run again; this step was not recorded")
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		return fault.New(extensions.KindUnavailable, "", wrapped).WithRemedy("another program has the ledger locked: wait for it, then run again")
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return fault.New(extensions.KindUnavailable, "", wrapped).WithRemedy("check who owns the ledger and its folder")
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fault.New(extensions.KindInternal, "", wrapped).WithRemedy("%s", damagedFile)
	}
	return fault.New(extensions.KindInternal, "", wrapped)
}

func uniqueSQLite(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// checkSQLite asks SQLite whether the file is sound.
func checkSQLite(ctx context.Context, db *sql.DB) ([]string, error) {
	lines, err := linesOfSQLite(ctx, db, "SELECT * FROM pragma_integrity_check")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, line := range lines {
		if line != "ok" {
			out = append(out, "integrity_check: "+line)
		}
	}
	tables, err := linesOfSQLite(ctx, db, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
	if err != nil {
		return nil, err
	}
	for _, table := range tables { // one by one, so that a table without a key hides nothing of the others
		lines, err := linesOfSQLite(ctx, db, danglingSQLite, table)
		if mismatchSQLite(err) {
			lines, err = []string{err.Error()}, nil
		}
		if err != nil {
			return nil, err
		}
		for _, line := range lines {
			out = append(out, "foreign_key_check: "+line)
		}
	}
	return out, nil
}

// danglingSQLite names row, table, column and target of every dangling reference. A row without a rowid
// has no number.
const danglingSQLite = `SELECT 'row' || coalesce(' ' || c.rowid, '') || ' of table ' || c."table" || ': ' ||
  (SELECT group_concat(f."from", ', ') FROM pragma_foreign_key_list(c."table") f WHERE f.id = c.fkid)
	|| ' refers to a row of table ' || c.parent || ' that is not there'
FROM pragma_foreign_key_check(?) c`

// mismatchSQLite reports that a table references columns that are no key: a defect of the file, which
// SQLite returns as an error.
func mismatchSQLite(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_ERROR && strings.Contains(e.Error(), "foreign key mismatch")
}

// linesOfSQLite returns the rows of a query with one text column.
func linesOfSQLite(ctx context.Context, db *sql.DB, stmt string, args ...any) (out []string, err error) {
	rows, err := db.QueryContext(ctx, stmt, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, err
		}
		out = append(out, line)
	}
	return out, rows.Err()
}
