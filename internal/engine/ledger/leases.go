package ledger

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/lease"
)

// nowMicros is the clock of a PostgreSQL server in Unix microseconds, as an
// expression.
const nowMicros = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"

// leases is the registry of those who make themselves heard: a row each, with
// an end by the database's clock, so that machines whose clocks differ agree.
type leases struct {
	store *store
	term  time.Duration
}

// leased is a row that this process keeps from running out.
type leased struct {
	*lease.Lease
	leases *leases
	id     HolderID
}

func (l *leased) holder() HolderID    { return l.id }
func (l *leased) left() time.Duration { return l.Left() }

// release gives the lease up, so that others need not wait for its end.
func (l *leased) release() error {
	l.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), postgresConnect)
	defer cancel()
	_ = l.leases.grant(ctx, l.id, 0) // what cannot be given up runs out by itself
	return nil
}

func (r *leases) register(ctx context.Context, now time.Time) (registration, error) {
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
	return &leased{kept, r, id}, nil
}

// grant lets id live for the term from now on, or no more.
func (r *leases) grant(ctx context.Context, id HolderID, term time.Duration) error {
	unlock, err := r.store.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	stmt, args := "DELETE FROM holders WHERE id = ?", []any{string(id)}
	if term > 0 {
		stmt, args = "INSERT INTO holders (id, expires_at) VALUES (?, "+nowMicros+" + ?) "+
			"ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at", append(args, term.Microseconds())
	}
	_, err = r.store.writer.ExecContext(ctx, r.store.dialect.rebind(stmt), args...)
	return err
}

func (r *leases) alive(ctx context.Context, id HolderID) (bool, error) {
	if r.store.reader == nil {
		return false, nil
	}
	var alive int64
	stmt := r.store.dialect.rebind("SELECT count(*) FROM holders WHERE id = ? AND expires_at > " + nowMicros)
	err := r.store.ask(ctx, func() error { return r.store.reader.QueryRowContext(ctx, stmt, string(id)).Scan(&alive) })
	if err != nil {
		return false, r.store.dialect.classify(err, "reading "+r.store.url)
	}
	return alive > 0, nil
}

// sweep forgets holders that ended long ago.
func (r *leases) sweep(ctx context.Context) {
	unlock, err := r.store.lock(ctx)
	if err != nil {
		return
	}
	defer unlock()
	stmt := r.store.dialect.rebind("DELETE FROM holders WHERE expires_at < " + nowMicros + " - ?")
	_, _ = r.store.writer.ExecContext(ctx, stmt, (24 * time.Hour).Microseconds())
}
