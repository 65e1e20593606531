package sqlstore_test

import (
	"os"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/pgtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// guide tells people which rights to grant; the tests grant those.
const guide = "../../../../docs/guides/shared-ledger.md"

// granted runs the statements of the guide for roles of the test's own, the
// first block before and the second one after the tables were made.
func granted(t *testing.T, address string) (owner, writer, reader string) {
	t.Helper()
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```sql\n")
	if len(blocks) != 3 {
		t.Fatalf("the guide has %d blocks of SQL", len(blocks)-1)
	}
	_, grants, _ := strings.Cut("\n"+blocks[2], "\n")
	grants, _, _ = strings.Cut(grants, "```")
	var users [3]string
	for i, role := range []string{"sandboxer_owner", "sandboxer_writer", "sandboxer_reader"} {
		if !strings.Contains(blocks[1], "CREATE ROLE "+role) {
			t.Fatalf("the guide makes no %s", role)
		}
		var name string
		name, users[i] = pgtest.User(t, address, "hush-hush")
		grants = strings.ReplaceAll(grants, role, name)
		if i == 0 {
			pgtest.Exec(t, address, "ALTER SCHEMA public OWNER TO "+name)
			t.Cleanup(func() { pgtest.Exec(t, address, "ALTER SCHEMA public OWNER TO postgres") })
		}
	}
	l, err := sqlstore.Open(ctx, users[0], sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, users[0], grants)
	return users[0], users[1], users[2]
}

func TestARoleWithTheRightsOfTheGuideIsEnough(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	_, writer, reader := granted(t, address)
	w, err := sqlstore.Open(ctx, writer, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	id, err := extensions.NewID(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.PutHost(ctx, ledger.Host{Account: "acme/web", Name: "one"}); err != nil {
		t.Error(err)
	}
	if err := w.PutFacts(ctx, ledger.Facts{Account: "acme/web", Extension: "ext.far", Host: "one", HostRef: "{}"}); err != nil {
		t.Error(err)
	}
	if err := w.DeleteHost(ctx, "acme/web", "one"); err != nil { // with what was found there
		t.Error(err)
	}
	if err := aLife(ctx, w, id); err != nil {
		t.Fatal(err)
	}
	for _, step := range []ledger.OutboxStep{
		{Attempt: 2}, {Withhold: []ledger.Withheld{{Seq: 1, State: ledger.WithheldRejected, Reason: "no"}}, Delivered: 2}, {Release: []int64{1}},
	} {
		step.Sink, step.Stream = "hub", "acme"
		if _, err := w.MoveOutbox(ctx, step); err != nil {
			t.Error(err)
		}
	}
	if o, err := w.Outbox(ctx, "hub", "acme"); err != nil || o.Delivered != 2 || len(o.Withheld) != 0 {
		t.Error(o, err)
	}
	if err := pgtest.TryExec(writer, `DO $$ DECLARE shut TEXT; BEGIN
		SELECT string_agg(relname, ', ') INTO shut FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
			AND relname NOT IN ('meta', 'migrations') AND NOT has_table_privilege(oid, 'INSERT');
		IF shut IS NOT NULL THEN RAISE EXCEPTION 'a writer cannot write %', shut; END IF; END $$`); err != nil {
		t.Error(err)
	}
	story(t, writer)
	holder, err := w.Holder(ctx)
	if err != nil {
		t.Fatal(err)
	}
	tell := &teller{t, w, holder}
	held := tell.step(tell.begin("acme/web", "held", nil), "hold", ledger.Change{Lease: &ledger.Lease{ID: "one"}})
	tell.step(held, "release", ledger.Change{Release: []string{"one"}})
	for _, forbidden := range []string{"UPDATE events SET body = ''", "DELETE FROM events", "UPDATE charges SET amount = 0",
		"DELETE FROM charges",
		"UPDATE meta SET value = '0'", "CREATE TABLE mine (a INT)", "DROP TABLE events", "TRUNCATE outbox", "DELETE FROM sandboxes"} {
		if err := pgtest.TryExec(writer, forbidden); err == nil {
			t.Errorf("a writer may %s", forbidden)
		}
	}
	r, err := sqlstore.Open(ctx, reader, sqlstore.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if row, err := r.Get(ctx, id); err != nil || row.ID != id {
		t.Error(row, err)
	}
	if report, err := r.Verify(ctx); err != nil || len(report.Problems) > 0 {
		t.Error(report, err)
	}
	if alive, err := r.HolderAlive(ctx, "nobody"); err != nil || alive {
		t.Error(alive, err)
	}
	// Where nothing has to be made, opening alone needs no right.
	o, err := sqlstore.Open(ctx, reader, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if _, err := o.PutHost(ctx, ledger.Host{Account: "acme/web", Name: "one"}); !extensions.IsKind(err, extensions.KindUnauthorized) {
		t.Errorf("a reader writes: %v", err)
	}
}
