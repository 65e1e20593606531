package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore/lease"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Timeouts that our sessions request from the server unless the address sets its own.
const (
	postgresConnect   = 10 * time.Second
	postgresStatement = 60 * time.Second // one statement
	postgresIdle      = 60 * time.Second // a transaction whose client is gone
)

func postgresDialect() dialect {
	return dialect{name: "postgres", rebind: numbered, forUpdate: " FOR UPDATE", concurrent: true,
		nowMicros: "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)",
		view:      &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true},
		again:     againPostgres, classify: classifyPostgres, unique: uniquePostgres, tables: tablesInPostgres, damaged: damagedDatabase,
		check:   func(context.Context, *sql.DB) ([]string, error) { return nil, nil },
		indexes: postgresIndexes, actions: postgresActions}
}

// numbered turns ? into $1, $2, …. Our statements have no other question marks.
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
func openPostgres(ctx context.Context, address string, o Options) (*ledger.Ledger, error) {
	o = o.filled()
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
	s := &store{url: shownURL(cfg), options: o, dialect: postgresDialect(),
		lock: func(context.Context) (func(), error) { return func() {}, nil }}
	open := s.openSharedToWrite
	if o.ReadOnly {
		open = s.openSharedToRead
	}
	if err := open(ctx, cfg); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s.views(), nil
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
	s.writer = s.pool(cfg, 4, false)
	s.reader = s.pool(cfg, 4, true)
	steps, err := migrations()
	if err != nil {
		return fault.New(extensions.KindInternal, "", err)
	}
	if s.id, err = s.migrateShared(ctx, steps); err != nil {
		return err
	}
	s.holders = &holderRows{store: s, term: lease.Term(s.options.Lease)}
	return nil
}

// migrateShared retries when another process creates the same tables at once: the two clash, and one of
// them succeeds.
func (s *store) migrateShared(ctx context.Context, steps []migration) (id string, err error) {
	err = s.repeat(ctx, func() (bool, error) {
		id, err = s.migrate(ctx, steps, true)
		return err != nil && (s.dialect.again(err) || s.dialect.unique(err)), err
	})
	return id, err
}

// openSharedToRead reads a database without our tables as empty.
func (s *store) openSharedToRead(ctx context.Context, cfg *pgx.ConnConfig) error {
	steps, err := migrations()
	if err != nil {
		return fault.New(extensions.KindInternal, "", err)
	}
	db := s.pool(cfg, 4, true)
	err = s.ask(ctx, func() (err error) {
		if err = s.readable(ctx, db, steps); err == nil && s.id != "" {
			s.reader = db
		}
		return err
	})
	if s.reader == nil {
		_ = db.Close()
	}
	s.holders = &holderRows{store: s, term: lease.Term(s.options.Lease)}
	return err
}

const damagedDatabase = "restore a backup of the database, or use an empty one; where the tables are another program's, or the ledger's " +
	"own are in another schema, " +
	"name a schema for the ledger alone (search_path=… in the address); sandboxes are read and destroyed by their state all the same, and " +
	"are found by their labels"

// tablesInPostgres looks in one schema of the user's search_path: the one that holds the ledger's own
// tables, else the one where new tables would be created. Tables of the same name elsewhere belong to
// other programs. It asks the catalog's tables alone, since functions such as to_regclass also see what other
// processes commit during the query.
func tablesInPostgres(ctx context.Context, q queryer, names []string) (there []string, err error) {
	rows, err := q.QueryContext(ctx, "SELECT p.name::text, COALESCE(c.relname::text, '') "+
		"FROM unnest(current_schemas(false)) WITH ORDINALITY AS p (name, place) LEFT JOIN "+
		"(pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND c.relname IN ('"+strings.Join(names, "', '")+"')) "+
		"ON n.nspname = p.name ORDER BY p.place")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	ours, in := "", map[string]string{} // the schema for new tables, and the first that has each
	for rows.Next() {
		var schema, name string
		if err := rows.Scan(&schema, &name); err != nil {
			return nil, err
		}
		ours = cmp.Or(ours, schema)
		in[name] = cmp.Or(in[name], schema)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if ours == "" { // tables that we may not use look absent
		return nil, errNoSchema
	}
	if in["meta"] != "" && in["meta"] == in["migrations"] {
		ours = in["meta"]
	}
	for _, name := range names {
		if in[name] == ours {
			there = append(there, name)
		}
	}
	return there, nil
}

// oldestPostgres is the oldest release still supported upstream when this was written. Compatible servers
// report which release they match.
const oldestPostgres = 13

func recentServer(_ context.Context, conn *pgconn.PgConn) error {
	version := conn.ParameterStatus("server_version")
	major, _, _ := strings.Cut(version, ".")
	n := 0
	if _, err := fmt.Sscanf(major, "%d", &n); err != nil || n < oldestPostgres {
		return &oldServer{version}
	}
	return nil
}
