package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// minSQLite is the first release without the bug that can corrupt a database when its write-ahead log is
// reset.
const minSQLite = 3_051_003

// busyMillis is SQLite's own wait in milliseconds; the writer lock makes it rarely needed.
const busyMillis = 10_000

func sqliteDialect() dialect {
	return dialect{name: "sqlite", rebind: func(q string) string { return q }, again: func(error) bool { return false },
		classify: classifySQLite, unique: uniqueSQLite, tables: tablesInSQLite, damaged: damagedFile, check: checkSQLite,
		indexes: sqliteIndexes, actions: sqliteActions}
}

// openSQLite opens the file; path is absolute.
func openSQLite(ctx context.Context, path string, o Options) (*ledger.Ledger, error) {
	if sqlite3.SQLITE_VERSION_NUMBER < minSQLite {
		return nil, fault.Errorf(extensions.KindInternal, "built with SQLite %s, which can corrupt a ledger; 3.51.3 is needed",
			sqlite3.SQLITE_VERSION)
	}
	s := &store{url: fileURL(path), options: o.filled(), dialect: sqliteDialect()}
	if place, err := placeOf(path); err == nil { // otherwise the link leads nowhere, which is reported when a ledger would be created
		path = place
	}
	s.holders = lockFiles{folder: holdersOf(path), readOnly: o.ReadOnly}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fault.Errorf(extensions.KindInvalid, "the ledger %s is not a regular file", s.url).WithRemedy("give the path of a file")
	}
	open := s.openToWrite
	if o.ReadOnly {
		open = s.openToRead
	}
	if err := open(ctx, path); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s.views(), nil
}

// openToWrite creates what is missing. It does so under the writer lock, so any number of processes may
// open a new ledger at once.
func (s *store) openToWrite(ctx context.Context, path string) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fault.Errorf(extensions.KindUnavailable, "creating the ledger's folder: %w", err).
			WithRemedy("use a folder that you can write to")
	}
	if err := checkFileSystem(folder); err != nil {
		return err
	}
	lock := newWriterLock(path+".lock", s.options.LockTimeout)
	s.lock = lock.acquire
	unlock, err := lock.acquire(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	there, err := s.there(path)
	if err == nil && !there {
		err = s.begin(ctx, path)
	}
	if err != nil {
		return err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return fault.Errorf(extensions.KindUnavailable, "restricting the ledger file to its owner: %w",
			err).WithRemedy("use a file that you can write to")
	}
	if s.writer, err = s.connect(path, 1, writing...); err != nil {
		return err
	}
	steps, err := migrations()
	if err != nil {
		return fault.New(extensions.KindInternal, "", err)
	}
	if s.id, err = s.migrate(ctx, steps, false); err != nil {
		return err
	}
	if err := s.journal(ctx); err != nil {
		return err
	}
	s.reader, err = s.connect(path, 4, "_pragma=query_only(on)")
	return err
}

var writing = []string{"_txlock=immediate", "_pragma=synchronous(full)", "_pragma=foreign_keys(on)"}

func (s *store) connect(path string, connections int, params ...string) (*sql.DB, error) {
	params = append([]string{fmt.Sprintf("_busy_timeout=%d", busyMillis), "_defensive=1"}, params...)
	address := "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?" + strings.Join(params, "&")
	db, err := sql.Open("sqlite", address)
	if err != nil {
		return nil, fault.Errorf(extensions.KindInternal, "opening %s: %w", s.url, err)
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// journal turns on the write-ahead log; the file remembers the setting.
func (s *store) journal(ctx context.Context) error {
	var mode string
	if err := s.writer.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return s.dialect.classify(err, "opening "+s.url)
	}
	if mode != "wal" {
		if err := s.writer.QueryRowContext(ctx, "PRAGMA journal_mode = wal").Scan(&mode); err != nil {
			return s.dialect.classify(err, "opening "+s.url)
		}
	}
	if mode != "wal" {
		return fault.Errorf(extensions.KindUnsupported, "%s: this file system cannot keep a write-ahead log (%s)", s.url, mode).
			WithRemedy("put the ledger on a local disk")
	}
	return nil
}

// openToRead opens what exists; a ledger that was not begun reads as empty.
func (s *store) openToRead(ctx context.Context, path string) error {
	there, err := s.there(path)
	if err != nil || !there {
		return err
	}
	if err := checkFileSystem(filepath.Dir(path)); err != nil {
		return err
	}
	steps, err := migrations()
	if err != nil {
		return fault.New(extensions.KindInternal, "", err)
	}
	db, err := s.connect(path, 4, "mode=ro", "_pragma=query_only(on)")
	if err != nil {
		return err
	}
	err = s.readable(ctx, db, steps)
	if err != nil && sideFilesMissing(err, path) {
		// Nobody writes, and we may not create the side files either.
		_ = db.Close()
		if db, err = s.connect(path, 4, "mode=ro", "immutable=1", "_pragma=query_only(on)"); err != nil {
			return err
		}
		err = s.readable(ctx, db, steps)
	}
	if err == nil && s.id == "" {
		err = s.notWhole("has none of a ledger's tables")
	}
	if err != nil {
		return errors.Join(err, db.Close())
	}
	s.reader = db
	return nil
}

func tablesInSQLite(ctx context.Context, q queryer, names []string) (there []string, err error) {
	rows, err := q.QueryContext(ctx, "SELECT name FROM sqlite_schema WHERE type = 'table'")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		if slices.Contains(names, name) {
			there = append(there, name)
		}
	}
	return there, rows.Err()
}

func sideFilesMissing(err error, path string) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	if code := e.Code() & 0xff; code != sqlite3.SQLITE_CANTOPEN && code != sqlite3.SQLITE_READONLY {
		return false
	}
	wal, statErr := os.Stat(path + "-wal")
	return errors.Is(statErr, fs.ErrNotExist) || statErr == nil && wal.Size() == 0
}
