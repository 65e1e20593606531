package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/pgtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func openedStore(t *testing.T, address string) *store {
	t.Helper()
	l, err := Open(context.Background(), address, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Identity.(*store)
}

// A migration that fails when it is run twice shows whether it was.
func TestMigrationsRunOnceThoughSeveralBegin(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]string{"postgres": "", "sqlite": DefaultURL(t.TempDir())} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if address == "" {
				address = pgtest.New(t)
			}
			steps, err := migrations()
			if err != nil {
				t.Fatal(err)
			}
			for round := range 5 {
				sql := fmt.Sprintf("ALTER TABLE holders ADD COLUMN extra%d TEXT;\nCREATE TABLE later%d (a TEXT);\nINSERT INTO later%d VALUES ('once');\n", round, round, round)
				steps = append(steps, migration{int64(len(steps) + 1), fmt.Sprintf("later%d", round), chain.SHA256([]byte(sql)), sql})
				var stores []*store
				for range 8 {
					stores = append(stores, openedStore(t, address))
				}
				var wg sync.WaitGroup
				ids := make([]string, len(stores))
				for i, s := range stores {
					wg.Go(func() {
						unlock, err := s.lock(context.Background())
						if err != nil {
							t.Error(err)
							return
						}
						defer unlock()
						if ids[i], err = s.migrateShared(context.Background(), steps); err != nil {
							t.Errorf("process %d: %v", i, err)
						}
					})
				}
				wg.Wait()
				if slices.ContainsFunc(ids, func(id string) bool { return id != stores[0].id }) {
					t.Errorf("the ledger's name: %q", ids)
				}
				var rows int
				if err := stores[0].reader.QueryRowContext(context.Background(),
					fmt.Sprintf("SELECT count(*) FROM later%d", round)).Scan(&rows); err != nil || rows != 1 {
					t.Errorf("round %d: it ran %d times, %v", round, rows, err)
				}
			}
		})
	}
}

// Otherwise a ledger that another process makes meanwhile looks damaged: some of its tables are new, others are not there.
func TestTheTablesThatAreThereAreThoseOfOneMoment(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	s := openedStore(t, address)
	then, err := s.reader.BeginTx(context.Background(), s.dialect.view)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = then.Rollback() }()
	if _, err := metaValue(context.Background(), s, then, "ledger_id"); err != nil { // whose moment is now
		t.Fatal(err)
	}
	pgtest.Exec(t, address, "ALTER TABLE charges RENAME TO was; CREATE TABLE charges (id INT)")
	names := []string{"meta", "charges", "events"}
	if there, err := s.dialect.tables(context.Background(), then, names); err != nil || !slices.Equal(there, names) {
		t.Errorf("%q, %v", there, err)
	}
}

func TestAMigrationThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	s := openedStore(t, pgtest.New(t))
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	sql := "CREATE TABLE later (a TEXT);\nINSERT INTO nowhere VALUES (1);\n"
	if _, err := s.migrateShared(context.Background(),
		append(steps, migration{int64(len(steps) + 1), "broken", chain.SHA256([]byte(sql)), sql})); err == nil {
		t.Fatal("it succeeded")
	}
	var there bool
	if err := s.reader.QueryRowContext(context.Background(), "SELECT to_regclass('later') IS NOT NULL").Scan(&there); err != nil || there {
		t.Errorf("half a migration is left: %t, %v", there, err)
	}
	if _, err := s.PutHost(context.Background(), ledger.Host{Account: "acme/web", Name: "one"}); err != nil {
		t.Errorf("the ledger as it was is of no use: %v", err)
	}
}

func TestANewerProgramsPostgresIsReadAndNotWritten(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	s := openedStore(t, address)
	if _, err := s.PutHost(context.Background(), ledger.Host{Account: "acme/web", Name: "one"}); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, address, "UPDATE meta SET value = '2' WHERE key = 'min_writer_version'")
	if _, err := s.PutHost(context.Background(), ledger.Host{Account: "acme/web", Name: "two"}); !extensions.IsKind(err,
		extensions.KindUnsupported) {
		t.Errorf("written by one that was open before: %v", err)
	}
	if _, err := Open(context.Background(), address, Options{}); !extensions.IsKind(err, extensions.KindUnsupported) {
		t.Errorf("opened for writing: %v", err)
	}
	r, err := Open(context.Background(), address, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if hosts, err := r.Hosts(context.Background(), "acme/web"); err != nil || len(hosts) != 1 {
		t.Errorf("%v, %v", hosts, err)
	}
}

func TestAnOlderSchemaIsNotReadWrongly(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]string{"postgres": "", "sqlite": DefaultURL(t.TempDir())} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if address == "" {
				address = pgtest.New(t)
			}
			s := openedStore(t, address)
			steps, err := migrations()
			if err != nil {
				t.Fatal(err)
			}
			sql := "CREATE TABLE later (a TEXT);\n"
			steps = append(steps, migration{int64(len(steps) + 1), "later", chain.SHA256([]byte(sql)), sql})
			err = s.readable(context.Background(), s.reader, steps)
			if !errors.Is(err, ledger.ErrOldSchema) || !extensions.IsKind(err, extensions.KindUnsupported) || extensions.RemedyOf(err) == "" {
				t.Errorf("by a newer program: %v", err)
			}
		})
	}
}

func TestAnotherMigrationIsRefusedByPostgresToo(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	openedStore(t, address)
	pgtest.Exec(t, address, "UPDATE migrations SET sha256 = 'other'")
	if _, err := Open(context.Background(), address, Options{}); !extensions.IsKind(err, extensions.KindInternal) ||
		extensions.RemedyOf(err) == "" {
		t.Errorf("another migration is taken for ours: %v", err)
	}
}
