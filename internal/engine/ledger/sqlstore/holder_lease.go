package sqlstore

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore/lease"
)

// holderRows is the registry of holders that renew a lease: one row each, which ends by the database's clock,
// so machines with different clocks agree.
type holderRows struct {
	store *store
	term  time.Duration
}

// holderRow is the lease of this process, which it keeps renewing.
type holderRow struct {
	*lease.Lease
	rows *holderRows
	id   ledger.HolderID
}

func (l *holderRow) holder() ledger.HolderID { return l.id }
func (l *holderRow) left() time.Duration     { return l.Left() }

// release gives the lease up, so others need not wait for it to end.
func (l *holderRow) release() error {
	l.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), postgresConnect)
	defer cancel()
	_ = l.rows.grant(ctx, l.id, 0) // a lease that cannot be given up ends by itself
	return nil
}

func (r *holderRows) register(ctx context.Context, now time.Time) (registration, error) {
	id := newHolderID(now)
	first := true
	kept, err := lease.Keep(ctx, r.term, func(ctx context.Context) error {
		extend := func() error { return r.grant(ctx, id, r.term) }
		if first {
			first = false
			return r.store.ask(ctx, extend)
		}
		return extend()
	})
	if err != nil {
		return nil, r.store.dialect.classify(err, "writing to "+r.store.url)
	}
	return &holderRow{kept, r, id}, nil
}

// grant extends id's lease to term from now; 0 ends it.
func (r *holderRows) grant(ctx context.Context, id ledger.HolderID, term time.Duration) error {
	unlock, err := r.store.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	stmt, args := "DELETE FROM holders WHERE id = ?", []any{string(id)}
	if term > 0 {
		stmt, args = "INSERT INTO holders (id, expires_at) VALUES (?, "+r.store.dialect.nowMicros+" + ?) "+
			"ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at", append(args, term.Microseconds())
	}
	_, err = r.store.writer.ExecContext(ctx, r.store.dialect.rebind(stmt), args...)
	return err
}

func (r *holderRows) alive(ctx context.Context, id ledger.HolderID) (bool, error) {
	if r.store.reader == nil {
		return false, nil
	}
	var alive int64
	stmt := r.store.dialect.rebind("SELECT count(*) FROM holders WHERE id = ? AND expires_at > " + r.store.dialect.nowMicros)
	err := r.store.ask(ctx, func() error { return r.store.reader.QueryRowContext(ctx, stmt, string(id)).Scan(&alive) })
	if err != nil {
		return false, r.store.dialect.classify(err, "reading "+r.store.url)
	}
	return alive > 0, nil
}

// sweep deletes holders that ended long ago.
func (r *holderRows) sweep(ctx context.Context) {
	unlock, err := r.store.lock(ctx)
	if err != nil {
		return
	}
	defer unlock()
	stmt := r.store.dialect.rebind("DELETE FROM holders WHERE expires_at < " + r.store.dialect.nowMicros + " - ?")
	_, _ = r.store.writer.ExecContext(ctx, stmt, (24 * time.Hour).Microseconds())
}

// ServerTime implements Ledger.
func (s *store) ServerTime(ctx context.Context) (time.Time, error) {
	if s.reader == nil || s.dialect.nowMicros == "" {
		return time.Time{}, nil
	}
	var at int64
	err := s.ask(ctx, func() error { return s.reader.QueryRowContext(ctx, "SELECT "+s.dialect.nowMicros).Scan(&at) })
	if err != nil {
		return time.Time{}, s.dialect.classify(err, "reading the time of "+s.url)
	}
	return fromMicros(at), nil
}
