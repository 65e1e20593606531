package sqlstore_test

import (
	"database/sql"
	"slices"
	"strconv"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
)

// vault is a ledger of which every table has rows, and a way to its database
// that goes past the ledger.
type vault struct {
	t        *testing.T
	address  string
	postgres bool
	db       *sql.DB
	l        *ledger.Ledger // for reading
	tables   map[string]*table
}

type table struct {
	columns  []string
	nullable map[string]bool
	number   map[string]bool
	key      []string
	rows     [][]any
}

func newVault(t *testing.T, address string) *vault {
	t.Helper()
	story(t, address)
	v := &vault{t: t, address: address, postgres: strings.HasPrefix(address, "postgres"), tables: map[string]*table{}}
	if v.postgres {
		v.db = rawPostgres(t, address)
	} else {
		v.db = connection(t, "sqlite", "file:"+strings.TrimPrefix(address, "sqlite://"))
	}
	var err error
	quick := []string{"PRAGMA synchronous = off"}
	if v.postgres {
		quick = []string{"SET session_replication_role = replica", "SET synchronous_commit = off"} // whoever owns the database can do that
	}
	for _, stmt := range quick {
		v.exec(stmt)
	}
	if v.l, err = sqlstore.Open(ctx, address, sqlstore.Options{ReadOnly: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.l.Close() })
	v.readSchema()
	if found := v.verify(); len(found) > 0 {
		t.Fatalf("not consistent before: %q", found)
	}
	return v
}

func rawPostgres(t *testing.T, address string) *sql.DB {
	t.Helper()
	return connection(t, "pgx", address)
}

// connection is one connection to a database, past the ledger.
func connection(t *testing.T, driver, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func (v *vault) exec(stmt string, args ...any) {
	v.t.Helper()
	if err := v.try(stmt, args...); err != nil {
		v.t.Fatalf("%s: %v", stmt, err)
	}
}

func (v *vault) try(stmt string, args ...any) error {
	if v.postgres {
		for n := 1; strings.Contains(stmt, "?"); n++ {
			stmt = strings.Replace(stmt, "?", "$"+strconv.Itoa(n), 1)
		}
	}
	_, err := v.db.ExecContext(ctx, stmt, args...)
	return err
}

func (v *vault) verify(pinned ...ledger.Head) []string {
	v.t.Helper()
	r, err := v.l.Verify(ctx, pinned...)
	if err != nil {
		v.t.Fatal(err)
	}
	return r.Problems
}

// all reads a query's rows.
func (v *vault) all(stmt string) (columns []string, rows [][]any) {
	v.t.Helper()
	found, err := v.db.QueryContext(ctx, stmt)
	if err != nil {
		v.t.Fatalf("%s: %v", stmt, err)
	}
	defer found.Close()
	if columns, err = found.Columns(); err != nil {
		v.t.Fatal(err)
	}
	for found.Next() {
		row, at := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			at[i] = &row[i]
		}
		if err := found.Scan(at...); err != nil {
			v.t.Fatal(err)
		}
		rows = append(rows, row)
	}
	if err := found.Err(); err != nil {
		v.t.Fatal(err)
	}
	return columns, rows
}

// readSchema asks the database for its tables and columns, so that one that is
// added later is covered.
func (v *vault) readSchema() {
	v.t.Helper()
	columns := `SELECT m.name, p.name, p.type = 'BIGINT', p."notnull" = 0, p.pk > 0 FROM sqlite_schema m, pragma_table_info(m.name) p
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, p.cid`
	if v.postgres {
		columns = `SELECT c.table_name, c.column_name, (c.data_type = 'bigint')::int::bigint, (c.is_nullable = 'YES')::int::bigint,
			(EXISTS (SELECT 1 FROM information_schema.key_column_usage k
				JOIN information_schema.table_constraints t USING (constraint_name, table_name)
				WHERE t.constraint_type = 'PRIMARY KEY' AND k.table_name = c.table_name AND k.column_name = c.column_name))::int::bigint
			FROM information_schema.columns c WHERE c.table_schema = 'public' ORDER BY c.table_name, c.ordinal_position`
	}
	_, rows := v.all(columns)
	for _, r := range rows {
		name, column := r[0].(string), r[1].(string)
		t := v.tables[name]
		if t == nil {
			t = &table{nullable: map[string]bool{}, number: map[string]bool{}}
			v.tables[name] = t
		}
		t.columns = append(t.columns, column)
		t.number[column], t.nullable[column] = r[2] == int64(1), r[3] == int64(1)
		if r[4] == int64(1) {
			t.key = append(t.key, column)
		}
	}
	for name, t := range v.tables {
		_, t.rows = v.all("SELECT " + strings.Join(t.columns, ", ") + " FROM " + name + " ORDER BY " + strings.Join(t.columns, ", "))
		if len(t.rows) == 0 && name != "holders" {
			v.t.Errorf("the story leaves %s empty", name)
		}
	}
}

// restore puts a table back as it was.
func (v *vault) restore(names ...string) {
	v.t.Helper()
	for _, name := range names {
		v.exec("DELETE FROM " + name)
		for _, row := range v.tables[name].rows {
			v.insert(name, row)
		}
	}
}

func (v *vault) insert(name string, row []any) {
	v.t.Helper()
	if err := v.tryInsert(name, row); err != nil {
		v.t.Fatalf("%s: %v", name, err)
	}
}

func (v *vault) tryInsert(name string, row []any) error {
	t := v.tables[name]
	marks := strings.TrimSuffix(strings.Repeat("?, ", len(t.columns)), ", ")
	return v.try("INSERT INTO "+name+" ("+strings.Join(t.columns, ", ")+") VALUES ("+marks+")", row...)
}

// where selects one row by its key.
func (t *table) where(row []any) (cond string, args []any) {
	var parts []string
	for _, k := range t.key {
		parts = append(parts, k+" = ?")
		args = append(args, row[slices.Index(t.columns, k)])
	}
	return strings.Join(parts, " AND "), args
}
