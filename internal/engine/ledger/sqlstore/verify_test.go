package sqlstore_test

import (
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
)

// Each alteration behind the ledger's back must be found, with these words.
func TestVerifyFindsEveryKindOfDamage(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: it takes seconds")
	}
	for name, c := range map[string]struct {
		sql   string
		words string
	}{
		"an event altered": {"UPDATE events SET body = replace(body, '\"state\":\"ready\"', '\"state\":\"lost\"') WHERE seq = 3",
			"was altered"},
		"an event's column":      {"UPDATE events SET type = 'sandbox.other' WHERE seq = 2", "its columns differ"},
		"an event removed":       {"DELETE FROM events WHERE seq = 2", "something is missing"},
		"the last event removed": {"DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)", "should end at event"},
		"a link cut":             {"UPDATE events SET prev_hash = hash WHERE seq = 3", "does not follow"},
		"the head removed":       {"DELETE FROM streams", "no head"},
		"a state":                {"UPDATE sandboxes SET state = 'failed' WHERE name = 'over'", "column state differs from its events"},
		"an unknown state":       {"UPDATE sandboxes SET state = 'melted' WHERE name = 'over'", "unknown state"},
		"an end":                 {"UPDATE sandboxes SET expires_at = expires_at + 1 WHERE name = 'over'", "column expires_at"},
		"a handle":               {"UPDATE sandboxes SET handle = '{\"extension\":\"local\"}' WHERE name = 'over'", "column handle"},
		"a name claimed again":   {"UPDATE sandboxes SET claim = name WHERE name = 'over'", "still claims its name"},
		"a row made up":          {"INSERT INTO hosts VALUES ('acme/web', 'ghost', '', '', 0, 0)", "has no events"},
		"a row removed":          {"DELETE FROM hosts", "no row"},
		"an intent removed":      {"DELETE FROM intents WHERE open_key IS NOT NULL", "without a holder"},
		"an intent reopened": {"UPDATE intents SET open_key = subject, state = 'dispatched' WHERE kind = 'destroy'",
			"has ended but has an open intent"},
		"an intent half closed": {"UPDATE intents SET open_key = NULL WHERE open_key IS NOT NULL", "open in one column"},
		"a fence":               {"UPDATE intents SET fence = 9 WHERE kind = 'destroy'", "a fence that differs"},
		"an intent of nothing": {"INSERT INTO intents SELECT 'x', kind, 'sbx-none', account, state, open_key, holder, 9, generation, " +
			"detail, reason, started_at, finished_at, metered FROM intents WHERE kind = 'destroy'", "belongs to nothing"},
		"a meter reopened":    {"UPDATE meters SET closed_at = 0, open_key = sandbox_id", "has 1 open meters"},
		"a segment moved":     {"UPDATE meter_segments SET started_at = started_at - 1", "does not start where"},
		"a segment shortened": {"UPDATE meter_segments SET ended_at = ended_at - 1", "segments"},
		"a segment removed":   {"DELETE FROM meter_segments", "do not fill its life"},
		"a charge altered":    {"UPDATE charges SET amount = 0", "its charges differ"},
		"a charge removed":    {"DELETE FROM charges", "its charges differ"},
		"a charge made up": {"INSERT INTO charges SELECT meter_id, 0, 'extra', 1, '', 1, 1, 'USD', '', '' FROM charges",
			"its charges differ"},
		"the outbox":               {"INSERT INTO outbox VALUES ('hub', 'acme', 99, 'rejected', 0, 0, '')", "which is missing"},
		"a delivery not yet made":  {"INSERT INTO sinks VALUES ('hub', 'acme', 99, 99, 0, 0)", "after the chain's end"},
		"a delivery before itself": {"INSERT INTO sinks VALUES ('hub', 'acme', 2, 1, 0, 0)", "before the last delivered event"},
		"the ledger's own name":    {"UPDATE meta SET value = 'other' WHERE key = 'ledger_id'", "its columns differ"},
		"a reference into nothing": {"UPDATE meters SET sandbox_id = 'sbx-none'",
			"foreign_key_check: row 1 of table meters: sandbox_id refers to a row of table sandboxes that is not there"},
		"a key others refer by": {"CREATE TABLE anew AS SELECT * FROM sandboxes; DROP TABLE sandboxes; ALTER TABLE anew RENAME TO " +
			"sandboxes; UPDATE sandboxes SET name = name", "foreign key mismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, path := file(t)
			ran(t, l, "over")
			begun(t, l, "open")
			if _, err := l.PutHost(ctx, ledger.Host{Account: "acme/web", Name: "one", Ref: "{}"}); err != nil {
				t.Fatal(err)
			}
			if r, err := l.Verify(ctx); err != nil || len(r.Problems) > 0 {
				t.Fatal("not consistent before:", r.Problems, err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			alter(t, path, c.sql)
			r, err := opened(t, path, sqlstore.Options{ReadOnly: true}).Verify(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if all := strings.Join(r.Problems, "\n"); !strings.Contains(all, c.words) {
				t.Errorf("want %q, found:\n%s", c.words, all)
			}
		})
	}
}

func TestVerifyFindsACleanCutByAReceipt(t *testing.T) {
	t.Parallel()
	l, path := file(t)
	begun(t, l, "n")
	head, err := l.Head(ctx, "acme")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	// Who owns the file can remove everything and its head together.
	alter(t, path, "DELETE FROM intents", "DELETE FROM sandboxes", "DELETE FROM events", "DELETE FROM streams")
	r := opened(t, path, sqlstore.Options{ReadOnly: true})
	if report, err := r.Verify(ctx); err != nil || len(report.Problems) > 0 {
		t.Fatal("the bare chain cannot show this:", report.Problems, err)
	}
	if report, err := r.Verify(ctx, head); err != nil || len(report.Problems) != 1 || !strings.Contains(report.Problems[0], "receipt") {
		t.Fatal(report.Problems, err)
	}
}
