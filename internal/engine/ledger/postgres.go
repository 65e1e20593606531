package ledger

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"database/sql"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// What a session of ours asks of the server, unless the address says otherwise.
const (
	postgresConnect   = 10 * time.Second
	postgresStatement = 60 * time.Second // one statement
	postgresIdle      = 60 * time.Second // a transaction whose client is gone
)

func postgresDialect() dialect {
	return dialect{name: "postgres", rebind: numbered, forUpdate: " FOR UPDATE", concurrent: true,
		again: againPostgres, classify: classifyPostgres, unique: uniquePostgres,
		check: func(context.Context, *sql.DB) ([]string, error) { return nil, nil }}
}

// numbered turns ? into $1, $2, …; our statements have no other question marks.
func numbered(q string) string {
	var b strings.Builder
	n := 0
	for {
		before, after, found := strings.Cut(q, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		n++
		b.WriteString("$" + strconv.Itoa(n))
		q = after
	}
}

// openPostgres opens a database that several machines may share.
func openPostgres(ctx context.Context, address string, o Options) (Ledger, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.LockTimeout = cmp.Or(o.LockTimeout, time.Minute)
	o.NewID = cmp.Or(o.NewID, strings.ToLower(rand.Text()))
	cfg, err := parsePostgres(address)
	if err != nil {
		return nil, err
	}
	for name, d := range map[string]time.Duration{"statement_timeout": max(postgresStatement, o.LockTimeout), "lock_timeout": o.LockTimeout,
		"idle_in_transaction_session_timeout": postgresIdle} {
		if _, given := cfg.RuntimeParams[name]; !given {
			cfg.RuntimeParams[name] = strconv.FormatInt(d.Milliseconds(), 10)
		}
	}
	s := &store{url: shownURL(cfg), options: o, dialect: postgresDialect(), lock: func(context.Context) (func(), error) { return func() {}, nil }}
	open := s.openSharedToWrite
	if o.ReadOnly {
		open = s.openSharedToRead
	}
	if err := open(ctx, cfg); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func parsePostgres(address string) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(address)
	if err != nil { // its text shows the address, perhaps with the password
		return nil, failuref(extensions.KindInvalid, "the ledger address is not one of PostgreSQL").
			WithRemedy("write it as postgres://user@host:5432/database?sslmode=verify-full; the password may come from PGPASSWORD or ~/.pgpass")
	}
	if cfg.Database == "" {
		return nil, failuref(extensions.KindInvalid, "the ledger address names no database").
			WithRemedy("write it as postgres://user@host:5432/database")
	}
	cfg.ConnectTimeout = cmp.Or(cfg.ConnectTimeout, postgresConnect)
	cfg.RuntimeParams["application_name"] = cmp.Or(cfg.RuntimeParams["application_name"], "sandboxer")
	return cfg, nil
}

func leaseTerm(o Options) time.Duration {
	if o.Lease <= 0 || o.Lease > maxLease {
		return maxLease
	}
	return o.Lease
}

// plaintext reports a connection over a network that may go on without TLS.
func plaintext(cfg *pgx.ConnConfig) bool {
	local := func(host string) bool {
		return strings.HasPrefix(host, "/") || host == "localhost" || host == "127.0.0.1" || host == "::1"
	}
	bare := func(host string, t *tls.Config) bool { return t == nil && !local(host) }
	if bare(cfg.Host, cfg.TLSConfig) {
		return true
	}
	for _, f := range cfg.Fallbacks {
		if bare(f.Host, f.TLSConfig) {
			return true
		}
	}
	return false
}

// shownURL is the address for messages, without the password.
func shownURL(cfg *pgx.ConnConfig) string {
	u := url.URL{Scheme: "postgres", Host: fmt.Sprintf("%s:%d", cfg.Host, cfg.Port), Path: "/" + cfg.Database}
	if strings.HasPrefix(cfg.Host, "/") {
		u.Host, u.RawQuery = "", "host="+cfg.Host
	}
	if cfg.User != "" {
		u.User = url.User(cfg.User)
	}
	return u.String()
}

func (s *store) pool(cfg *pgx.ConnConfig, connections int, readOnly bool) *sql.DB {
	own := cfg.Copy()
	if readOnly {
		own.RuntimeParams["default_transaction_read_only"] = "on"
	}
	db := stdlib.OpenDB(*own)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	db.SetConnMaxIdleTime(30 * time.Second)
	return db
}

func (s *store) openSharedToWrite(ctx context.Context, cfg *pgx.ConnConfig) error {
	if plaintext(cfg) {
		return failuref(extensions.KindInvalid, "the ledger %s would be spoken to without encryption", s.url).
			WithRemedy("add sslmode=verify-full to the address (sslrootcert=… for a CA of your own)")
	}
	s.writer = s.pool(cfg, 4, false)
	s.reader = s.pool(cfg, 4, true)
	for attempt := 1; ; attempt++ {
		id, err := s.migrate(ctx)
		if err == nil {
			s.id = id
			break
		}
		// Two that make the same tables at once clash; one of them is done then.
		if !s.dialect.again(err) && !s.dialect.unique(err) || attempt == writeAttempts || ctx.Err() != nil {
			return err
		}
		time.Sleep(writePause << attempt)
	}
	s.holders = &leases{store: s, term: leaseTerm(s.options)}
	return nil
}

// openSharedToRead reads a database without our tables as empty.
func (s *store) openSharedToRead(ctx context.Context, cfg *pgx.ConnConfig) error {
	if plaintext(cfg) {
		return failuref(extensions.KindInvalid, "the ledger %s would be spoken to without encryption", s.url).
			WithRemedy("add sslmode=verify-full to the address (sslrootcert=… for a CA of your own)")
	}
	db := s.pool(cfg, 4, true)
	ready, err := s.tablesThere(ctx, db)
	if err != nil || !ready {
		_ = db.Close()
		return err
	}
	s.reader = db
	s.holders = &leases{store: s, term: leaseTerm(s.options)}
	s.id, err = metaValue(ctx, s, db, "ledger_id")
	return err
}

func (s *store) tablesThere(ctx context.Context, db *sql.DB) (bool, error) {
	var there bool
	if err := db.QueryRowContext(ctx, "SELECT to_regclass('migrations') IS NOT NULL").Scan(&there); err != nil {
		return false, s.dialect.classify(err, "opening "+s.url)
	}
	if !there {
		return false, nil
	}
	return s.schemaCurrent(ctx, db)
}
