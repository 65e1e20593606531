package sqlstore_test

import (
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/pgtest"
)

// What the database holds to by itself is part of the ledger: a unique index
// that is gone decides nothing any more, and a trigger writes what no event tells.
func TestVerifyFindsAnAlteredSchema(t *testing.T) {
	t.Parallel()
	const sqlite, postgres = "sqlite", "postgres"
	for name, c := range map[string]struct {
		words string
		stmts map[string][]string
	}{
		"an index dropped": {"table meters lacks its index (closed_at, id)",
			both("DROP INDEX meters_closed")},
		"a partial index made whole": {"table meters lacks its partial index (closed_at)",
			both("DROP INDEX meters_mixed", "CREATE INDEX meters_mixed ON meters (closed_at)")},
		"operations that are not unique any more": {"table intents lacks its unique index (open_key)", map[string][]string{
			sqlite:   {"CREATE TABLE t AS SELECT * FROM intents", "DROP TABLE intents", "ALTER TABLE t RENAME TO intents"},
			postgres: {"ALTER TABLE intents DROP CONSTRAINT intents_open_key_key"}}},
		"a trigger": {`table events has "t"`, map[string][]string{
			sqlite: {"CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM charges; END"},
			postgres: {"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN DELETE FROM charges; RETURN NEW; END'",
				"CREATE TRIGGER t AFTER INSERT ON events EXECUTE FUNCTION f()"}}},
		"a rule": {`table charges has "r"`, map[string][]string{postgres: {"CREATE RULE r AS ON DELETE TO charges DO INSTEAD NOTHING"}}},
		"an index more, and another's table": {"",
			both("CREATE INDEX own ON charges (memo)", "CREATE TABLE another (a TEXT)")},
	} {
		for engine, address := range map[string]func(testing.TB) string{sqlite: newFile, postgres: pgtest.New} {
			if c.stmts[engine] == nil {
				continue
			}
			t.Run(name+"/"+engine, func(t *testing.T) {
				t.Parallel()
				v := newVault(t, address(t))
				for _, stmt := range c.stmts[engine] {
					v.exec(stmt)
				}
				found := strings.Join(v.verify(), "\n")
				if c.words == "" && found != "" || !strings.Contains(found, c.words) {
					t.Errorf("want %q, found %q", c.words, found)
				}
			})
		}
	}
}

func both(stmts ...string) map[string][]string {
	return map[string][]string{"sqlite": stmts, "postgres": stmts}
}
