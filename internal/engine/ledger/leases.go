package ledger

import (
	"context"
	"sync"
	"time"
)

// maxLease is how long a holder counts as alive after it was last heard of; it
// makes itself heard three times as often. The database's clock decides, so
// that machines whose clocks differ agree.
const maxLease = 30 * time.Second

const serverMicros = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"

// leases is the registry of a database that machines share.
type leases struct {
	store *store
	term  time.Duration
}

// lease is a row that this process keeps from running out.
type lease struct {
	*leases
	id   HolderID
	stop context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex
	heard time.Time // when the renewal that is the latest to have succeeded was sent
}

func (l *lease) holder() HolderID { return l.id }

// release gives the lease up, so that others need not wait for its end.
func (l *lease) release() error {
	l.stop()
	l.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), postgresConnect)
	defer cancel()
	// What cannot be given up runs out by itself.
	_, _ = l.store.writer.ExecContext(ctx, "DELETE FROM holders WHERE id = $1", string(l.id))
	return nil
}

func (r *leases) register(ctx context.Context, now time.Time) (registration, error) {
	id := newHolderID(now)
	l := &lease{leases: r, id: id}
	if err := r.store.ask(ctx, func() error { return l.extend(ctx) }); err != nil {
		return nil, r.store.dialect.classify(err, "writing to "+r.store.url)
	}
	ctx, l.stop = context.WithCancel(context.Background())
	l.done.Go(func() { l.renew(ctx) })
	return l, nil
}

// left counts from when the renewal was sent, and ends a sixth of the term
// before the server's end. Both clocks of this machine are asked: one stands
// still while it sleeps, the other may be set back.
func (l *lease) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	passed := max(time.Since(l.heard), time.Since(l.heard.Round(0)))
	return l.term - l.term/6 - passed
}

func (l *lease) extend(ctx context.Context) error {
	sent := time.Now()
	_, err := l.store.writer.ExecContext(ctx, "INSERT INTO holders (id, expires_at) VALUES ($1, "+serverMicros+" + $2) "+
		"ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at", string(l.id), l.term.Microseconds())
	if err == nil {
		l.mu.Lock()
		l.heard = sent
		l.mu.Unlock()
	}
	return err
}

// renew runs until the lease is released. A renewal that fails is tried again
// at the next turn: the term outlasts two of them.
func (l *lease) renew(ctx context.Context) {
	turn := time.NewTicker(l.term / 3)
	defer turn.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-turn.C:
		}
		once, cancel := context.WithTimeout(ctx, l.term/3)
		_ = l.extend(once)
		cancel()
	}
}

func (r *leases) alive(ctx context.Context, id HolderID) (bool, error) {
	if r.store.reader == nil {
		return false, nil
	}
	var alive bool
	err := r.store.ask(ctx, func() error {
		return r.store.reader.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM holders WHERE id = $1 AND expires_at > "+serverMicros+")", string(id)).Scan(&alive)
	})
	if err != nil {
		return false, r.store.dialect.classify(err, "reading "+r.store.url)
	}
	return alive, nil
}

// sweep forgets holders that ended long ago.
func (r *leases) sweep(ctx context.Context) {
	_, _ = r.store.writer.ExecContext(ctx, "DELETE FROM holders WHERE expires_at < "+serverMicros+" - $1", (24 * time.Hour).Microseconds())
}
