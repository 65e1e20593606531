package sqlstore_test

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/pgtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// unjudged are the columns that no event answers for, with the reason. All
// others are covered: an alteration is found. docs/design/ledger-reference.md lists them.
var unjudged = map[string]string{
	"intents.holder":          "its name is drawn at random, and the same operations give the same chain everywhere",
	"holders.id":              "who lives is known to the database's clock alone, and changes every few seconds",
	"holders.expires_at":      "as above",
	"migrations.applied_at":   "when the schema was made; nothing depends on it",
	"sinks.sink":              "what was delivered is noted here and nowhere else",
	"sinks.delivered":         "as above; that the events exist is checked",
	"sinks.attempted":         "as above; that the events exist is checked",
	"sinks.attempts":          "as above",
	"sinks.first_attempt_at":  "as above",
	"outbox.sink":             "what a sink refused is noted here and nowhere else",
	"outbox.seq":              "as above; that the event exists is checked",
	"outbox.state":            "as above; that it is a known state is checked",
	"outbox.reason":           "as above",
	"outbox.attempts":         "as above",
	"outbox.first_attempt_at": "as above",
}

// tables whose rows come and go without an event; see unjudged.
var unjudgedRows = []string{"holders", "outbox", "sinks"}

// edits are the values a cell is altered to.
func (t *table) edits(column string, was any) []any {
	var out []any
	switch v := was.(type) {
	case int64:
		out = append(out, v+1, v-1, int64(0))
	case string:
		out = append(out, v+"x", "")
		if len(v) > 1 {
			out = append(out, v[:len(v)-1])
		}
	case nil:
		out = append(out, "", "x")
	}
	if t.nullable[column] {
		out = append(out, nil)
	}
	return slices.DeleteFunc(out, func(x any) bool { return x == was })
}

func TestVerifyFindsEveryCellAlteredAndEveryRowRemoved(t *testing.T) {
	exttest.Alone(t)
	t.Parallel()
	for name, address := range map[string]func(testing.TB) string{"sqlite": newFile, "postgres": pgtest.New} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVault(t, address(t))
			judged := 0
			for _, name := range slices.Sorted(maps.Keys(v.tables)) {
				judged += v.alterCells(name)
				v.removeRows(name)
				v.copyRow(name)
			}
			if found := v.verify(); len(found) > 0 {
				t.Fatalf("the test left something altered: %q", found)
			}
			t.Logf("%d alterations of cells", judged)
		})
	}
}

// alterCells alters each column of the first row that an edit changes, in each
// way; and the last row in one.
func (v *vault) alterCells(name string) (judged int) {
	v.t.Helper()
	t := v.tables[name]
	for i, column := range t.columns {
		if _, ok := unjudged[name+"."+column]; ok {
			continue
		}
		for r, row := range t.rows {
			edits := t.edits(column, row[i])
			switch {
			case r == 0:
			case r == len(t.rows)-1 && len(edits) > 0:
				edits = edits[:1]
			default:
				continue
			}
			for _, to := range edits {
				cond, args := t.where(row)
				if err := v.try("UPDATE "+name+" SET "+column+" = ? WHERE "+cond, append([]any{to}, args...)...); err != nil {
					continue // the database itself refuses
				}
				if found := v.verify(); len(found) == 0 {
					v.t.Errorf("%s.%s: %v became %v, and nobody noticed", name, column, row[i], to)
				}
				judged++
				v.restore(name)
			}
		}
	}
	return judged
}

func (v *vault) removeRows(name string) {
	v.t.Helper()
	if slices.Contains(unjudgedRows, name) {
		return
	}
	t := v.tables[name]
	for _, row := range t.rows {
		cond, args := t.where(row)
		v.exec("DELETE FROM "+name+" WHERE "+cond, args...)
		if found := v.verify(); len(found) == 0 {
			v.t.Errorf("%s: the row %v was removed, and nobody noticed", name, row)
		}
		v.restore(name)
	}
}

// copyRow adds the first row a second time, under another key.
func (v *vault) copyRow(name string) {
	v.t.Helper()
	if slices.Contains(unjudgedRows, name) {
		return
	}
	t := v.tables[name]
	for _, row := range t.rows[:1] {
		twin := slices.Clone(row)
		for i, column := range t.columns {
			switch {
			case t.nullable[column]:
				twin[i] = nil // it would clash
			case slices.Contains(t.key, column) || column == "hash" || column == "fence":
				if n, ok := row[i].(int64); ok {
					twin[i] = n + 1000
				} else {
					twin[i] = row[i].(string) + "2"
				}
			}
		}
		v.insert(name, twin)
		if found := v.verify(); len(found) == 0 {
			v.t.Errorf("%s: the row %v was added, and nobody noticed", name, twin)
		}
		v.restore(name)
	}
}

// chained gives every event of a stream from seq on the hash it must have, as
// whoever rewrites a chain would.
func (v *vault) chained(stream string) {
	v.t.Helper()
	_, rows := v.all("SELECT seq, body FROM events WHERE stream = '" + stream + "' ORDER BY seq")
	prev := ""
	for _, r := range rows {
		sum := sha256.Sum256([]byte(prev + "\n" + r[1].(string)))
		hash := hex.EncodeToString(sum[:])
		v.exec("UPDATE events SET prev_hash = ?, hash = ? WHERE stream = '"+stream+"' AND seq = ?", prev, hash, r[0])
		prev = hash
	}
	v.exec("UPDATE streams SET hash = ?, seq = ? WHERE stream = '"+stream+"'", prev, rows[len(rows)-1][0])
}

// Alterations of several rows at once. A chain that was made anew as a whole
// is consistent: only a head that somebody kept elsewhere shows it.
func TestVerifyFindsAChainThatWasPutTogetherAnew(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: it takes seconds")
	}
	const last = "(SELECT max(seq) FROM events WHERE stream = 'umbrella')"
	for name, c := range map[string]struct {
		alter func(*vault)
		words string // of the bare chain; "" = it shows nothing
	}{
		"two events swapped": {func(v *vault) {
			v.exec("UPDATE events SET seq = -5 WHERE stream = 'acme' AND seq = 5")
			v.exec("UPDATE events SET seq = 5 WHERE stream = 'acme' AND seq = 4")
			v.exec("UPDATE events SET seq = 4 WHERE stream = 'acme' AND seq = -5")
		}, "does not follow"},
		"two events swapped, and the hashes made anew": {func(v *vault) {
			v.exec("UPDATE events SET seq = -5 WHERE stream = 'acme' AND seq = 5")
			v.exec("UPDATE events SET seq = 5 WHERE stream = 'acme' AND seq = 4")
			v.exec("UPDATE events SET seq = 4 WHERE stream = 'acme' AND seq = -5")
			v.chained("acme")
		}, "its columns differ"},
		"an event put in between": {func(v *vault) {
			v.exec("UPDATE events SET seq = seq + 1000 WHERE stream = 'acme' AND seq > 4")
			v.exec("UPDATE events SET seq = seq - 999 WHERE stream = 'acme' AND seq > 1000")
			v.exec("INSERT INTO events SELECT stream, 5, 'x', prev_hash, type, subject, NULL, time, body FROM events WHERE stream = 'acme' AND " +
				"seq = 4")
			v.chained("acme")
		}, "its columns differ"},
		"an event taken out, and the rest moved up": {func(v *vault) {
			v.exec("DELETE FROM events WHERE stream = 'acme' AND seq = 4")
			v.exec("UPDATE events SET seq = seq - 1 WHERE stream = 'acme' AND seq > 4")
			v.chained("acme")
		}, "its columns differ"},
		"an amount altered in an event, and the hashes made anew": {func(v *vault) {
			v.exec(`UPDATE events SET body = replace(body, '"amount":100', '"amount":200') WHERE stream = 'acme' AND seq = 1`)
			v.chained("acme")
		}, "transfer grant-1 differs from its event"},
		"the same, and the transfer": {func(v *vault) {
			v.exec(`UPDATE events SET body = replace(body, '"amount":100', '"amount":200') WHERE stream = 'acme' AND seq = 1`)
			v.exec("UPDATE transfers SET amount = 200 WHERE id = 'grant-1'")
			v.chained("acme")
		}, "row transfers/grant-1 differs from its last event"},
		"a note altered, and the hashes made anew": {func(v *vault) {
			v.exec(`UPDATE events SET body = replace(body, '"why":"hello"', '"why":"bribe"') WHERE stream = 'acme' AND seq = 1`)
			v.chained("acme")
		}, ""},
		"the last event cut off, with the rows it describes and the head": {func(v *vault) {
			for _, s := range []string{"DELETE FROM intents WHERE account = 'umbrella/x'", "DELETE FROM sandboxes WHERE account = 'umbrella/x'",
				"DELETE FROM outbox WHERE stream = 'umbrella'", "DELETE FROM events WHERE stream = 'umbrella' AND seq = " +
					last, "DELETE FROM streams WHERE stream = 'umbrella'"} {
				v.exec(s)
			}
		}, ""},
		"all of it": {func(v *vault) {
			for name := range v.tables {
				if name != "meta" && name != "migrations" {
					v.exec("DELETE FROM " + name)
				}
			}
		}, ""},
	} {
		for engine, address := range map[string]func(testing.TB) string{"sqlite": newFile, "postgres": pgtest.New} {
			t.Run(name+"/"+engine, func(t *testing.T) {
				t.Parallel()
				v := newVault(t, address(t))
				before, err := v.l.Verify(ctx)
				if err != nil || len(before.Heads) != 2 {
					t.Fatal(before.Heads, err)
				}
				c.alter(v)
				bare := strings.Join(v.verify(), "\n")
				if c.words == "" && bare != "" || !strings.Contains(bare, c.words) {
					t.Errorf("want %q, found %q", c.words, bare)
				}
				if found := strings.Join(v.verify(before.Heads...), "\n"); c.words == "" && !strings.Contains(found, "cut off or rewritten") {
					t.Errorf("the heads of before show nothing: %q", found)
				}
			})
		}
	}
}
