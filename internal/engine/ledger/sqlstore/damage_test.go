package sqlstore_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/pgtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// damaged demands that neither readers nor writers open it, and that they leave
// all as it is.
func damaged(t *testing.T, path string, earlier func() string, want string) {
	t.Helper()
	before := listing(t, filepath.Dir(path))
	for _, readOnly := range []bool{true, false} {
		l, err := sqlstore.Open(ctx, "sqlite://"+path, sqlstore.Options{ReadOnly: readOnly, Earlier: earlier})
		if l != nil {
			_ = l.Close()
		}
		if !extensions.IsKind(err, extensions.KindInternal) || !strings.Contains(err.Error(), want) ||
			!strings.Contains(extensions.RemedyOf(err), "from their state") {
			t.Errorf("read only %t: %v (remedy %q)", readOnly, err, extensions.RemedyOf(err))
		}
	}
	after := listing(t, filepath.Dir(path))
	for p, content := range before {
		if !strings.HasSuffix(p, "-shm") && after[p] != content {
			t.Errorf("%s was changed", p)
		}
	}
}

func TestAnEmptyFileIsDamageWhereSomethingTellsOfAnEarlierLedger(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(path string) (earlier func() string, err error){
		"a log": func(path string) (func() string, error) {
			return nil, os.WriteFile(path+"-wal", []byte("frames"), 0o600)
		},
		"shared memory": func(path string) (func() string, error) { return nil, os.WriteFile(path+"-shm", nil, 0o600) },
		"a journal": func(path string) (func() string, error) {
			return nil, os.WriteFile(path+"-journal", []byte("pages"), 0o600)
		},
		"holders": func(path string) (func() string, error) {
			return nil, os.MkdirAll(filepath.Join(filepath.Dir(path), "holders", "ledger.db"), 0o700)
		},
		"a receipt's word": func(string) (func() string, error) { return func() string { return "a receipt" }, nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "ledger.db")
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			earlier, err := leave(path)
			if err != nil {
				t.Fatal(err)
			}
			damaged(t, path, earlier, "it was not empty before")
		})
	}
}

func TestALedgerThatWasEmptiedIsDamaged(t *testing.T) {
	t.Parallel()
	l, path := file(t)
	ran(t, l, "n")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	damaged(t, path, nil, filepath.Join("holders", "ledger.db"))
}

func TestALedgerBesideAnotherOneIsBegunInAnEmptyFile(t *testing.T) {
	t.Parallel()
	l, path := file(t)
	ran(t, l, "n")
	beside := filepath.Join(filepath.Dir(path), "beside.db")
	if err := os.WriteFile(beside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := opened(t, beside, sqlstore.Options{ReadOnly: true}); r.ID() != "" {
		t.Errorf("an empty file is the ledger %q", r.ID())
	}
	b := opened(t, beside, sqlstore.Options{})
	ran(t, b, "n")
	if b.ID() == l.ID() {
		t.Error("both are one")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(beside, 0); err != nil {
		t.Fatal(err)
	}
	damaged(t, beside, nil, filepath.Join("holders", "beside.db"))
}

// Whoever has the ledger by another name has to see that its holders live.
func TestHoldersAreThoseOfTheFileALinkLeadsTo(t *testing.T) {
	t.Parallel()
	l, path := file(t)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	id, err := l.Holder(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if alive, err := opened(t, link, sqlstore.Options{}).HolderAlive(ctx, id); err != nil || !alive {
		t.Errorf("%s lives %t, %v", id, alive, err)
	}
}

func TestAnEmptyFileWithoutAPastIsBegun(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	l := opened(t, link, sqlstore.Options{Earlier: func() string { return "" }})
	s := ran(t, l, "n")
	if got, err := opened(t, path, sqlstore.Options{ReadOnly: true}).Get(ctx, s.ID); err != nil || got.ID != s.ID {
		t.Error("the link leads elsewhere now:", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
}

// SQLite removes a log whose database is gone, and with it all that was not in
// the database yet.
func TestALogWithoutItsLedgerIsKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	if err := os.WriteFile(path+"-wal", []byte("frames"), 0o600); err != nil {
		t.Fatal(err)
	}
	damaged(t, path, nil, "is missing")
}

func TestALedgerThatIsNotWholeIsDamaged(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]struct {
		statements []string
		want       string
	}{
		"a table is gone":             {[]string{"DROP TABLE outbox"}, "no table outbox"},
		"its migrations are gone":     {[]string{"DROP TABLE migrations"}, "no table migrations"},
		"no migration is noted":       {[]string{"DELETE FROM migrations"}, "has lost its identity"},
		"its id is gone":              {[]string{"DELETE FROM meta WHERE key = 'ledger_id'"}, "has lost its identity"},
		"it is somebody else's table": {nil, "none of a ledger's tables"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "ledger.db")
			if spoil.statements == nil {
				if _, err := raw(t, path).Exec("CREATE TABLE mine (a TEXT)"); err != nil {
					t.Fatal(err)
				}
			} else {
				l := opened(t, path, sqlstore.Options{})
				ran(t, l, "n")
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			}
			db := raw(t, path)
			for _, stmt := range spoil.statements {
				if _, err := db.Exec(stmt); err != nil {
					t.Fatal(err)
				}
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			damaged(t, path, nil, spoil.want)
		})
	}
}

func TestAPostgresThatIsNotWholeIsDamaged(t *testing.T) {
	t.Parallel()
	for _, statement := range []string{"DROP TABLE outbox", "DROP TABLE migrations", "DELETE FROM meta WHERE key = 'ledger_id'"} {
		address := pgtest.New(t)
		opened := func(readOnly bool) error {
			l, err := sqlstore.Open(ctx, address, sqlstore.Options{ReadOnly: readOnly})
			if err == nil {
				err = l.Close()
			}
			return err
		}
		if err := opened(false); err != nil {
			t.Fatal(err)
		}
		pgtest.Exec(t, address, statement)
		for _, readOnly := range []bool{true, false} {
			if err := opened(readOnly); !extensions.IsKind(err, extensions.KindInternal) || !strings.Contains(extensions.RemedyOf(err), "backup") {
				t.Errorf("%s, read only %t: %v (remedy %q)", statement, readOnly, err, extensions.RemedyOf(err))
			}
		}
	}
}

// Whoever reads meanwhile finds nothing, or a ledger, and never damage: the
// first one to be done leaves signs of a ledger that a slower one must not take
// for an earlier one's.
func TestManyBeginAnEmptyFileAtOnce(t *testing.T) {
	t.Parallel()
	for range 5 {
		path := filepath.Join(t.TempDir(), "ledger.db")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				l, err := sqlstore.Open(ctx, "sqlite://"+path, sqlstore.Options{ReadOnly: i%2 == 0})
				if err != nil {
					t.Error(err)
					return
				}
				if i%2 != 0 {
					if _, err := l.Holder(ctx); err != nil {
						t.Error(err)
					}
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}
