package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// These statements show what the database enforces by itself: its indexes, above all the unique ones, and
// that nobody else writes (triggers). Each dialect has both.
const (
	// sqliteIndexes and postgresIndexes select table, unique, partial, columns.
	sqliteIndexes = `SELECT t.name, i."unique", i.partial,
  (SELECT group_concat(name, ',') FROM (SELECT x.name FROM pragma_index_info(i.name) x ORDER BY x.seqno))
FROM sqlite_master t, pragma_index_list(t.name) i WHERE t.type = 'table'`
	postgresIndexes = `SELECT c.relname, i.indisunique, i.indpred IS NOT NULL,
  (SELECT string_agg(a.attname, ',' ORDER BY k.at) FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(n, at)
   JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.n)
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
WHERE c.relkind IN ('r', 'p') AND i.indisvalid AND pg_table_is_visible(c.oid)`

	// sqliteActions and postgresActions select table and name of what the database runs by itself when a
	// row is written.
	sqliteActions   = "SELECT tbl_name, name FROM sqlite_master WHERE type = 'trigger'"
	postgresActions = `SELECT c.relname, t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE NOT t.tgisinternal AND pg_table_is_visible(c.oid)
UNION ALL SELECT c.relname, r.rulename FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
WHERE c.relkind IN ('r', 'p') AND pg_table_is_visible(c.oid)`
)

// madeIndexes are the indexes that the migrations create, by table, read once from an empty in-memory
// database.
var madeIndexes = sync.OnceValues(func() (_ map[string][]string, err error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	steps, err := migrations()
	if err != nil {
		return nil, err
	}
	all := bootstrap
	for _, m := range steps {
		all += "\n" + m.sql
	}
	ctx := context.Background()
	if _, err := db.ExecContext(ctx, all); err != nil {
		return nil, err
	}
	return readIndexes(ctx, db, sqliteIndexes)
})

func readIndexes(ctx context.Context, q queryer, stmt string) (map[string][]string, error) {
	out := map[string][]string{}
	rows, err := q.QueryContext(ctx, stmt)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var table string
		var unique, partial bool
		var columns sql.NullString // null for an expression
		if err := rows.Scan(&table, &unique, &partial, &columns); err != nil {
			return nil, err
		}
		out[table] = append(out[table], describeIndex(columns.String, unique, partial))
	}
	return out, rows.Err()
}

func describeIndex(columns string, unique, partial bool) string {
	kind := "index"
	if unique {
		kind = "unique index"
	}
	if partial {
		kind = "partial " + kind
	}
	return fmt.Sprintf("%s (%s)", kind, strings.ReplaceAll(columns, ",", ", "))
}

// schema compares the indexes with those that the migrations create, and finds triggers. It ignores
// additional indexes.
func (a *audit) schema() error {
	want, err := madeIndexes()
	if err != nil {
		return err
	}
	has, err := readIndexes(a.ctx, a.q, a.dialect.indexes)
	if err != nil {
		return a.dialect.classify(err, "reading "+a.url)
	}
	for _, table := range slices.Sorted(maps.Keys(want)) {
		for _, index := range want[table] {
			if !slices.Contains(has[table], index) {
				a.Problem("table %s lacks its %s", table, index)
			}
		}
	}
	rows, err := a.q.QueryContext(a.ctx, a.dialect.actions)
	if err != nil {
		return a.dialect.classify(err, "reading "+a.url)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var table, name string
		if err := rows.Scan(&table, &name); err != nil {
			return a.dialect.classify(err, "reading "+a.url)
		}
		if _, ours := want[table]; ours {
			a.Problem("table %s has %q, a trigger or rule that sandboxer did not create", table, name)
		}
	}
	if err := rows.Err(); err != nil {
		return a.dialect.classify(err, "reading "+a.url)
	}
	return nil
}
