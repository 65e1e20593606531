package ledger

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// minSQLite is the first release without the bug that can corrupt a database
// when its write-ahead log is reset.
const minSQLite = 3_051_003

// busyMillis is SQLite's own wait; the writer lock makes it rarely needed.
const busyMillis = 10_000

func sqliteDialect() dialect {
	return dialect{name: "sqlite", rebind: func(q string) string { return q }, again: func(error) bool { return false },
		nowMicros: "CAST(unixepoch('now', 'subsec') * 1000000 AS INTEGER)",
		classify:  classifySQLite, unique: uniqueSQLite, made: madeInSQLite, check: checkSQLite,
		indexes: sqliteIndexes, actions: sqliteActions}
}

// openSQLite opens the file; path is absolute.
func openSQLite(ctx context.Context, path string, o Options) (Ledger, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.LockTimeout == 0 {
		o.LockTimeout = time.Minute
	}
	if o.NewID == "" {
		o.NewID = strings.ToLower(rand.Text())
	}
	if sqlite3.SQLITE_VERSION_NUMBER < minSQLite {
		return nil, failuref(extensions.KindInternal, "built with SQLite %s, which can corrupt a ledger; 3.51.3 is needed", sqlite3.SQLITE_VERSION)
	}
	s := &store{url: fileURL(path), options: o, dialect: sqliteDialect()}
	s.holders = filesAndLeases{lockFiles{folder: filepath.Join(filepath.Dir(path), "holders"), readOnly: o.ReadOnly}, &leases{store: s}}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, failuref(extensions.KindInvalid, "the ledger %s is not a file", s.url).WithRemedy("name a file")
	}
	open := s.openToWrite
	if o.ReadOnly {
		open = s.openToRead
	}
	if err := open(ctx, path); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// openToWrite creates what is missing. All of it happens under the writer
// lock, so any number of processes may open a new ledger at once.
func (s *store) openToWrite(ctx context.Context, path string) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return failuref(extensions.KindUnavailable, "making the ledger's folder: %w", err).WithRemedy("name a folder you may write to")
	}
	if err := checkPlace(folder); err != nil {
		return err
	}
	lock := newWriterLock(path+".lock", s.options.LockTimeout)
	s.lock = lock.acquire
	unlock, err := lock.acquire(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := private(path); err != nil {
		return failuref(extensions.KindUnavailable, "making the ledger file: %w", err).WithRemedy("name a file you may write to")
	}
	if s.writer, err = s.connect(path, 1, "_txlock=immediate", "_pragma=synchronous(full)", "_pragma=foreign_keys(on)"); err != nil {
		return err
	}
	if err := s.journal(ctx); err != nil {
		return err
	}
	steps, err := migrations()
	if err != nil {
		return failure(extensions.KindInternal, "", err)
	}
	if s.id, err = s.migrate(ctx, steps); err != nil {
		return err
	}
	s.reader, err = s.connect(path, 4, "_pragma=query_only(on)")
	return err
}

// private makes the file if missing, for its owner alone. A file that exists
// is never opened here: closing it would drop the locks that SQLite holds on
// it elsewhere in this process.
func private(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return os.Chmod(path, 0o600)
	}
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if folder, err := os.Open(filepath.Dir(path)); err == nil {
		_ = folder.Sync() // the name too survives a power cut, where the system can do that
		_ = folder.Close()
	}
	return nil
}

func (s *store) connect(path string, connections int, params ...string) (*sql.DB, error) {
	params = append([]string{fmt.Sprintf("_busy_timeout=%d", busyMillis), "_defensive=1"}, params...)
	address := "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?" + strings.Join(params, "&")
	db, err := sql.Open("sqlite", address)
	if err != nil {
		return nil, failuref(extensions.KindInternal, "opening %s: %w", s.url, err)
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// journal turns on the write-ahead log, which the file then keeps.
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
		return failuref(extensions.KindUnsupported, "%s: this file system cannot keep a write-ahead log (%s)", s.url, mode).
			WithRemedy("put the ledger on a local disk")
	}
	return nil
}

// openToRead opens what is there; a missing file, and one that its first
// writer has not finished, read as empty.
func (s *store) openToRead(ctx context.Context, path string) error {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return failuref(extensions.KindUnavailable, "reading the ledger: %w", err).WithRemedy("check who owns the ledger and its folder")
	}
	if err := checkPlace(filepath.Dir(path)); err != nil {
		return err
	}
	db, err := s.connect(path, 4, "mode=ro", "_pragma=query_only(on)")
	if err != nil {
		return err
	}
	ready, err := s.readable(ctx, db)
	if err != nil && sideFilesMissing(err, path) {
		// Nobody writes, and we may not make the side files either.
		_ = db.Close()
		if db, err = s.connect(path, 4, "mode=ro", "immutable=1", "_pragma=query_only(on)"); err != nil {
			return err
		}
		ready, err = s.readable(ctx, db)
	}
	if err != nil || !ready {
		return errors.Join(err, db.Close())
	}
	s.reader = db
	s.id, err = metaValue(ctx, s, db, "ledger_id")
	return err
}

func madeInSQLite(ctx context.Context, q queryer) (made bool, err error) {
	rows, err := q.QueryContext(ctx, "SELECT 1 FROM sqlite_schema WHERE name = 'migrations'")
	if err != nil {
		return false, err
	}
	defer func() { _ = rows.Close() }()
	made = rows.Next()
	return made, rows.Err()
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
