package ledger

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// writerVersion rises when an older program must not write any more. A
// migration that needs that stores it as min_writer_version.
const writerVersion = 1

type migration struct {
	version int64
	name    string
	sha256  string
	sql     string
}

// migrations lists the files NNNN_name.sql, which are never changed once
// released; each must have the next number.
func migrations() ([]migration, error) {
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
		out = append(out, migration{int64(i + 1), name, sha256Hex(b), string(b)})
	}
	return out, nil
}

// bootstrap are the tables that describe the ledger itself.
const bootstrap = `
CREATE TABLE IF NOT EXISTS meta (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS migrations (version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT NOT NULL, applied_at BIGINT NOT NULL);`

// readable reports whether the schema is there; one that an older program
// made is an error.
func (s *store) readable(ctx context.Context, db *sql.DB) (bool, error) {
	made, err := s.dialect.made(ctx, db)
	if err != nil || !made {
		return false, s.cannotOpen(err)
	}
	done, err := applied(ctx, s, db)
	if err != nil {
		return false, err
	}
	steps, err := migrations()
	if err != nil {
		return false, failure(extensions.KindInternal, "", err)
	}
	if len(done) < len(steps) {
		return false, failuref(extensions.KindUnsupported, "the ledger %s has an older schema (%d of %d)", s.url, len(done), len(steps)).
			WithRemedy("run an apply, or `sandboxer sweep`, which brings it forward")
	}
	return true, nil
}

func (s *store) cannotOpen(err error) error {
	if err == nil {
		return nil
	}
	return s.dialect.classify(err, "opening "+s.url)
}

// migrate brings the schema forward in one transaction and returns the
// ledger's id. Where it is as it should be, nothing is written, which a user
// may not be allowed to. The caller holds the writer lock, if there is one.
func (s *store) migrate(ctx context.Context, steps []migration) (id string, err error) {
	sqlTx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return "", s.dialect.classify(err, "preparing "+s.url)
	}
	defer func() { _ = sqlTx.Rollback() }()
	t := &tx{store: s, ctx: ctx, sql: sqlTx, now: s.now()}
	made, err := s.dialect.made(ctx, sqlTx)
	if err != nil {
		return "", s.cannotOpen(err)
	}
	if made {
		left, err := t.pending(steps)
		if err != nil {
			return "", err
		}
		if id, err = metaValue(ctx, s, sqlTx, "ledger_id"); err != nil || id != "" && len(left) == 0 {
			return id, err
		}
	}
	if err := t.bringForward(steps, made); err != nil {
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

// bringForward runs the migrations that are not done. Of several processes one
// goes first; the others wait for its transaction and find nothing left.
func (t *tx) bringForward(steps []migration, made bool) error {
	if !made {
		if _, err := t.exec("ledger.begin", bootstrap); err != nil {
			return err
		}
	}
	if _, err := t.exec("ledger.begin", "INSERT INTO meta (key, value) VALUES ('migrating', '') ON CONFLICT DO NOTHING"); err != nil {
		return err
	}
	if _, err := t.exec("ledger.begin", "UPDATE meta SET value = '' WHERE key = 'migrating'"); err != nil { // the lock
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
	_, err = t.exec("ledger.begin", "INSERT INTO meta (key, value) VALUES ('ledger_id', ?), ('min_writer_version', '1') ON CONFLICT DO NOTHING", t.options.NewID)
	return err
}

// pending lists the migrations that are not done, once it is sure that this
// program may write and that those done are its own.
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
			return nil, failuref(extensions.KindInternal, "the ledger %s was made with another migration %s", t.url, m.name).
				WithRemedy("this program and the ledger do not belong together: install the release that made it, or restore a copy")
		}
	}
	return left, nil
}

func (t *tx) migrateTo(m migration) error {
	for _, stmt := range strings.Split(m.sql, ";\n") {
		if strings.TrimSpace(stmt) == "" {
			continue
		}
		if _, err := t.sql.ExecContext(t.ctx, stmt); err != nil {
			return t.dialect.classify(err, "migration "+m.name+" of "+t.url)
		}
	}
	_, err := t.exec("ledger.begin", "INSERT INTO migrations (version, name, sha256, applied_at) VALUES (?, ?, ?, ?)", m.version, m.name, m.sha256, toMicros(t.now))
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

// checkWriter refuses to write to a ledger that a newer program has taken
// over. It runs in every transaction: the other may do so at any time.
func (t *tx) checkWriter() error {
	v, err := metaValue(t.ctx, t.store, t.sql, "min_writer_version")
	if err != nil || v == "" {
		return err
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n > writerVersion {
		return failuref(extensions.KindUnsupported, "the ledger %s belongs to a newer version of this program (writer version %s, this is %d)", t.url, v, writerVersion).
			WithRemedy("upgrade; plans and reads still work with this version")
	}
	return nil
}
