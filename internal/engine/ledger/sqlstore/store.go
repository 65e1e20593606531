package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// store implements Ledger over one SQL database.
type store struct {
	url     string
	id      string
	options Options
	dialect dialect
	reader  *sql.DB // nil = a missing ledger, which reads as empty
	writer  *sql.DB // nil = read-only
	lock    func(ctx context.Context) (unlock func(), err error)
	holders registry

	mu     sync.Mutex
	holder registration
	closed bool
}

// views returns the ledger as its callers see it.
func (s *store) views() *ledger.Ledger {
	return &ledger.Ledger{Identity: s, Operations: s, Sandboxes: s, Snapshots: s, Machines: s, Evidence: s, Money: s, Usages: s, Record: s}
}

func (s *store) ID() string  { return s.id }
func (s *store) URL() string { return s.url }

func (s *store) now() time.Time { return s.options.Now().UTC().Truncate(time.Microsecond) }

func (s *store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	if s.holder != nil {
		errs = append(errs, s.holder.release())
	}
	for _, db := range []*sql.DB{s.reader, s.writer} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// queryer is a transaction or a database.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// tx is one write transaction.
type tx struct {
	*store
	ctx context.Context
	sql *sql.Tx
	now time.Time
	// rows are the digests of what was written since the last event, by row name.
	rows map[string]string
	// clashed says that a row of the same key existed, perhaps created by another transaction since this
	// one looked. Only set where several transactions write at a time.
	clashed bool
}

// transactionLimit ends a transaction that the disk does not complete.
const transactionLimit = 2 * time.Minute

// write runs f in one transaction while no other process writes. A transaction that has begun is not
// cancelled, so its outcome is known; it takes milliseconds.
func (s *store) write(ctx context.Context, f func(*tx) error) error {
	if s.writer == nil {
		return fault.Errorf(extensions.KindUnsupported, "the ledger %s was opened for reading only", s.url)
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := ctx.Err(); err != nil {
		return fault.Errorf(fault.Stopped(err), "nothing was written: %w", err)
	}
	return s.repeat(ctx, func() (bool, error) { return s.writeOnce(ctx, f) })
}

// repeat runs f until it succeeds, reports that repeating will not help, or exceeds the time limit; one
// dial to a silent server may take all of it.
func (s *store) repeat(ctx context.Context, f func() (again bool, err error)) error {
	begun := time.Now()
	for attempt := 1; ; attempt++ {
		again, err := f()
		if err == nil || !again || attempt == writeAttempts || ctx.Err() != nil || time.Since(begun) > repeatFor {
			return err
		}
		time.Sleep(time.Duration(rand.Int64N(int64(writePause << attempt)))) //nolint:gosec // to part two that clash
	}
}

// ask runs an idempotent statement outside a transaction, and repeats it if the connection was lost.
func (s *store) ask(ctx context.Context, f func() error) error {
	return s.repeat(ctx, func() (bool, error) {
		err := f()
		return err != nil && s.dialect.again(err), err
	})
}

// A transaction that another one blocked, or whose connection was lost, is repeated. Its operation key
// makes it happen once, even if it was committed and only the answer was lost.
const (
	writeAttempts = 8
	writePause    = 5 * time.Millisecond
	repeatFor     = 5 * time.Second
)

func (s *store) writeOnce(ctx context.Context, f func(*tx) error) (again bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), transactionLimit)
	defer cancel()
	t := &tx{store: s, ctx: ctx, now: s.now()}
	err = s.transact(t, f)
	return err != nil && (t.clashed || s.dialect.again(err)), err
}

func (s *store) transact(t *tx, f func(*tx) error) error {
	ctx := t.ctx
	if err := failpoint.Hit(ctx, "ledger.begin"); err != nil {
		return fault.New(extensions.KindInternal, "", err)
	}
	sqlTx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return s.dialect.classify(err, "beginning a transaction in "+s.url)
	}
	defer func() { _ = sqlTx.Rollback() }()
	t.sql = sqlTx
	if err := t.checkWriter(); err != nil {
		return err
	}
	if err := f(t); err != nil {
		return err
	}
	if len(t.rows) > 0 {
		return fault.Errorf(extensions.KindInternal, "rows were written without an event: %q", slices.Sorted(maps.Keys(t.rows)))
	}
	if err := failpoint.Hit(ctx, "ledger.commit"); err != nil {
		return fault.New(extensions.KindInternal, "", err)
	}
	if err := sqlTx.Commit(); err != nil {
		return s.dialect.classify(err, "committing to "+s.url)
	}
	if err := failpoint.Hit(ctx, "ledger.committed"); err != nil {
		return fault.New(extensions.KindIndeterminate, "", err)
	}
	return nil
}

// unreadable is a row whose columns do not have the types that were written.
type unreadable struct {
	url   string
	cause error
}

func (e *unreadable) Error() string {
	return "the ledger " + e.url + " holds a row that cannot be read: " + e.cause.Error()
}

func (e *unreadable) Unwrap() error { return e.cause }

// query runs a SELECT and calls row for each result; row scans it by calling scan with its targets.
func query(ctx context.Context, s *store, q queryer, stmt string, args []any, row func(scan func(...any) error) error) error {
	rows, err := q.QueryContext(ctx, s.dialect.rebind(stmt), args...)
	if err != nil {
		return s.dialect.classify(err, "reading "+s.url)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return fault.New(extensions.KindInternal, "", &unreadable{s.url, err})
		}
	}
	if err := rows.Err(); err != nil {
		return s.dialect.classify(err, "reading "+s.url)
	}
	return nil
}

// selectAll reads rows of a type through its fields.
func selectAll[T any](ctx context.Context, s *store, q queryer, table string, fields func(*T) []field, tail string,
	args ...any) ([]T, error) {
	var probe T
	var out []T
	err := query(ctx, s, q, "SELECT "+names(fields(&probe))+" FROM "+table+" "+tail, args, func(scan func(...any) error) error {
		var v T
		if err := scan(targets(fields(&v))...); err != nil {
			return err
		}
		out = append(out, v)
		return nil
	})
	return out, err
}

// readAll is selectAll outside a transaction; a missing ledger reads as empty.
func readAll[T any](ctx context.Context, s *store, table string, fields func(*T) []field, tail string, args ...any) ([]T, error) {
	if s.reader == nil {
		return nil, nil
	}
	var rows []T
	err := s.ask(ctx, func() (err error) {
		rows, err = selectAll(ctx, s, s.reader, table, fields, tail, args...)
		return err
	})
	return rows, err
}

func one[T any](rows []T, err error, what, id string) (T, error) {
	var zero T
	if err != nil {
		return zero, err
	}
	if len(rows) == 0 {
		return zero, fault.New(extensions.KindNotFound, "", fmt.Errorf("the ledger has no %s %q", what, id))
	}
	return rows[0], nil
}
