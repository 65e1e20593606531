package sqlstore

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
)

// Durability rests on these; the driver would take a misspelt one for none.
func TestEveryConnectionIsSetUp(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	address := DefaultURL(filepath.Join(t.TempDir(), "state"))
	l, err := Open(ctx, address, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r, err := Open(ctx, address, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for name, c := range map[string]struct {
		db   *sql.DB
		want map[string]string
	}{
		"writer": {l.Identity.(*store).writer, map[string]string{"journal_mode": "wal", "synchronous": "2", "busy_timeout": "10000",
			"foreign_keys": "1", "query_only": "0"}},
		"reader":    {l.Identity.(*store).reader, map[string]string{"busy_timeout": "10000", "query_only": "1"}},
		"read-only": {r.Identity.(*store).reader, map[string]string{"busy_timeout": "10000", "query_only": "1"}},
	} {
		for pragma, want := range c.want {
			var got string
			if err := c.db.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
				t.Errorf("%s: %s is %q, want %q: %v", name, pragma, got, want, err)
			}
		}
	}
}

// A transaction takes the write lock when it begins, not at its first write.
func TestWritersBeginImmediately(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	folder := t.TempDir()
	l, err := Open(ctx, DefaultURL(folder), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	tx, err := l.Identity.(*store).writer.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	other, err := sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(folder, "ledger.db"))+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if second, err := other.BeginTx(ctx, nil); err == nil {
		_ = second.Rollback()
		t.Fatal("two write transactions at once")
	}
}
