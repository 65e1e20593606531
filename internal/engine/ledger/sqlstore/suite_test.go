package sqlstore_test

import (
	"path/filepath"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/ledgertest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/pgtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

func newFile(t testing.TB) string { return sqlstore.DefaultURL(filepath.Join(t.TempDir(), "state")) }

func TestSQLite(t *testing.T) {
	t.Parallel()
	ledgertest.Exercise(t, newFile)
}

func TestMain(m *testing.M) { ledgertest.Main(m, pgtest.Stop) }

func TestPostgres(t *testing.T) {
	t.Parallel()
	ledgertest.Exercise(t, pgtest.New)
}

func BenchmarkPostgres(b *testing.B) { ledgertest.Benchmark(b, pgtest.New) }

func BenchmarkSQLite(b *testing.B) { ledgertest.Benchmark(b, newFile) }

func TestBothDatabasesKeepTheSameBooks(t *testing.T) {
	exttest.Alone(t)
	t.Parallel()
	ledgertest.Twins(t, newFile, pgtest.New)
}
