package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// writerVersion rises when older programs must no longer write. A migration that requires this stores it
// as min_writer_version.
const writerVersion = 1

type migration struct {
	version int64
	name    string
	sha256  string
	sql     string
}

// migrations lists the files NNNN_name.sql in order. Released files never change; numbers have no gaps.
var migrations = sync.OnceValues(func() ([]migration, error) {
	files, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var out []migration
	for i, f := range files { // Glob sorts
		b, err := migrationFiles.ReadFile(f)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(f, "migrations/"), ".sql")
		number, _, _ := strings.Cut(name, "_")
		if n, err := strconv.Atoi(number); err != nil || n != i+1 {
			return nil, fmt.Errorf("migration %s is out of order", f)
		}
		out = append(out, migration{int64(i + 1), name, chain.SHA256(b), string(b)})
	}
	return slices.Clip(out), nil
})

// bootstrap are the tables that describe the ledger itself.
const bootstrap = `
CREATE TABLE IF NOT EXISTS meta (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS migrations (version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL,
	sha256 TEXT NOT NULL, applied_at BIGINT NOT NULL);`

// tableNames lists the ledger's tables by the migration that created them.
var tableNames = sync.OnceValues(func() (map[int64][]string, error) {
	steps, err := migrations()
	if err != nil {
		return nil, err
	}
	out := map[int64][]string{0: created(bootstrap)}
	for _, m := range steps {
		out[m.version] = created(m.sql)
	}
	return out, nil
})

var createTable = regexp.MustCompile(`(?m)^CREATE TABLE (?:IF NOT EXISTS )?(\w+)`)

func created(statements string) (names []string) {
	for _, m := range createTable.FindAllStringSubmatch(statements, -1) {
		names = append(names, m[1])
	}
	return names
}

// found returns the id of the existing ledger and the migrations that created it; both are empty without a
// ledger. Only some of its tables is damage.
func (s *store) found(ctx context.Context, q queryer) (id string, done map[int64]string, err error) {
	of, err := tableNames()
	if err != nil {
		return "", nil, fault.New(extensions.KindInternal, "", err)
	}
	var all []string
	for _, names := range of {
		all = append(all, names...)
	}
	there, err := s.dialect.tables(ctx, q, all)
	if err != nil || len(there) == 0 {
		return "", nil, s.cannotOpen(err)
	}
	missing := func(version int64) error {
		for _, name := range of[version] {
			if !slices.Contains(there, name) {
				return s.notWhole("has no table " + name)
			}
		}
		return nil
	}
	if err := missing(0); err != nil {
		return "", nil, err
	}
	if done, err = applied(ctx, s, q); err != nil {
		return "", nil, err
	}
	for version := range done {
		if err := missing(version); err != nil {
			return "", nil, err
		}
	}
	if id, err = metaValue(ctx, s, q, "ledger_id"); err == nil && (id == "" || len(done) == 0) {
		err = s.notWhole("has lost its identity")
	}
	return id, done, err
}

func (s *store) notWhole(how string) error {
	return fault.Errorf(extensions.KindInternal, "the ledger %s is damaged, or is not a ledger: it %s", s.url, how).WithRemedy("%s",
		s.dialect.damaged)
}

// readable finds the ledger; its id is "" if there is none. One that lacks some of the steps is an error: an
// older program created it.
func (s *store) readable(ctx context.Context, db *sql.DB, steps []migration) error {
	id, done, err := s.found(ctx, db)
	if err != nil || id == "" {
		return err
	}
	if len(done) < len(steps) {
		return fault.Errorf(extensions.KindUnsupported, "the ledger %s cannot be read yet: %w (%d of %d)", s.url, ledger.ErrOldSchema, len(done),
			len(steps)).
			WithRemedy("run an apply or `sandboxer sweep` to migrate it")
	}
	s.id = id
	return nil
}

func (s *store) cannotOpen(err error) error {
	if err == nil {
		return nil
	}
	return s.dialect.classify(err, "opening "+s.url)
}

// migrate upgrades the schema in one transaction and returns the ledger's id. If there is no ledger, it
// creates one if mayMake. An up-to-date schema is not written, since the user may lack the right. The
// caller holds the writer lock, if there is one.
func (s *store) migrate(ctx context.Context, steps []migration, mayMake bool) (id string, err error) {
	sqlTx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return "", s.dialect.classify(err, "preparing "+s.url)
	}
	defer func() { _ = sqlTx.Rollback() }()
	t := &tx{store: s, ctx: ctx, sql: sqlTx, now: s.now()}
	id, _, err = s.found(ctx, sqlTx)
	switch {
	case err != nil:
		return "", err
	case id == "" && !mayMake:
		return "", s.notWhole("has none of a ledger's tables")
	case id != "":
		left, err := t.pending(steps)
		if err != nil || len(left) == 0 {
			return id, err
		}
	}
	if err := t.bringForward(steps, id != ""); err != nil {
		return "", err
	}
	if id, err = metaValue(ctx, s, sqlTx, "ledger_id"); err != nil {
		return "", err
	}
	if err := sqlTx.Commit(); err != nil {
		return "", s.dialect.classify(err, "preparing "+s.url)
	}
	return id, nil
}

// bringForward runs the missing migrations. Of several processes, one goes first; the others wait for its
// transaction and find nothing left to do.
func (t *tx) bringForward(steps []migration, made bool) error {
	if !made {
		if _, err := t.exec("ledger.begin", bootstrap); err != nil {
			return err
		}
	}
	if _, err := t.exec("ledger.begin", "INSERT INTO meta (key, value) VALUES ('migrating', '') ON CONFLICT DO NOTHING"); err != nil {
		return err
	}
	if _, err := t.exec("ledger.begin", "UPDATE meta SET value = '' WHERE key = 'migrating'"); err != nil { // takes the lock
		return err
	}
	left, err := t.pending(steps)
	if err != nil {
		return err
	}
	for _, m := range left {
		if err := t.migrateTo(m); err != nil {
			return err
		}
	}
	id, err := t.options.newID()
	if err != nil {
		return err
	}
	_, err = t.exec("ledger.begin", "INSERT INTO meta (key, value) VALUES ('ledger_id', ?), ('min_writer_version', '1') "+
		"ON CONFLICT DO NOTHING", id)
	return err
}

// pending lists the missing migrations, after checking that this program may write and that the applied
// ones are its own.
func (t *tx) pending(steps []migration) ([]migration, error) {
	done, err := applied(t.ctx, t.store, t.sql)
	if err != nil {
		return nil, err
	}
	if err := t.checkWriter(); err != nil {
		return nil, err
	}
	var left []migration
	for _, m := range steps {
		sum, ok := done[m.version]
		if !ok {
			left = append(left, m)
			continue
		}
		if sum != m.sha256 {
			return nil, fault.Errorf(extensions.KindInternal, "the ledger %s was created with a different migration %s", t.url, m.name).
				WithRemedy("this release does not match the ledger: install the release that created it, or restore a backup")
		}
	}
	return left, nil
}

func (t *tx) migrateTo(m migration) error {
	if _, err := t.sql.ExecContext(t.ctx, m.sql); err != nil { // all its statements at once
		return t.dialect.classify(err, "migration "+m.name+" of "+t.url)
	}
	_, err := t.exec("ledger.begin", "INSERT INTO migrations (version, name, sha256, applied_at) VALUES (?, ?, ?, ?)", m.version, m.name,
		m.sha256, toMicros(t.now))
	return err
}

func applied(ctx context.Context, s *store, q queryer) (map[int64]string, error) {
	out := map[int64]string{}
	err := query(ctx, s, q, "SELECT version, sha256 FROM migrations", nil, func(scan func(...any) error) error {
		var v int64
		var sum string
		if err := scan(&v, &sum); err != nil {
			return err
		}
		out[v] = sum
		return nil
	})
	return out, err
}

func metaValue(ctx context.Context, s *store, q queryer, key string) (v string, err error) {
	err = query(ctx, s, q, "SELECT value FROM meta WHERE key = ?", []any{key}, func(scan func(...any) error) error { return scan(&v) })
	return v, err
}

// checkWriter refuses to write to a ledger that a newer program has taken over. It runs in every
// transaction, since that may happen at any time.
func (t *tx) checkWriter() error {
	v, err := metaValue(t.ctx, t.store, t.sql, "min_writer_version")
	if err != nil || v == "" {
		return err
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n > writerVersion {
		return fault.Errorf(extensions.KindUnsupported,
			"the ledger %s belongs to a newer version of this program (writer version %s, this is %d)", t.url, v, writerVersion).
			WithRemedy("upgrade; plans and reads still work with this version")
	}
	return nil
}
