package ledger

import (
	"encoding/json"
	"net/url"
	"strings"
)

// digestSize is how many hex digits of a row's SHA-256 an event carries: 128
// bits, which nobody finds another row for.
const digestSize = 32

// rowKeys are the tables whose every row an event answers for, with the columns
// that tell one row from another. Of the rest, Verify says what it can.
var rowKeys = map[string][]string{
	"sandboxes":      {"id"},
	"intents":        {"op_key"},
	"snapshots":      {"id"},
	"hosts":          {"account", "name"},
	"quotes":         {"digest"},
	"price_books":    {"sha256"},
	"meters":         {"id"},
	"meter_segments": {"meter_id", "seq"},
	"charges":        {"meter_id", "segment", "component"},
	"accounts":       {"id"},
	"transfers":      {"id"},
	"budgets":        {"id"},
}

// notDigested are columns that the same operations would fill differently
// in another ledger: a holder is named at random when a ledger is opened. And
// those that a migration fills, since they follow from other rows: Verify adds
// them up.
var notDigested = map[string]bool{"intents.holder": true,
	"meters.running_ms": true, "meters.paused_ms": true, "meters.wallet": true, "meters.own_key": true, "meters.own_place": true, "meters.mixed": true}

// orNull are columns that hold NULL for nothing, never an empty text.
var orNull = map[string]bool{"claim": true, "open_key": true, "pending_id": true}

// written notes the row as it is after a statement. The next event of the
// transaction carries its digest, so that whoever alters the row has to alter
// the chain too.
func (t *tx) written(table string, fs []field, vs []any) error {
	if _, ok := rowKeys[table]; !ok {
		return nil
	}
	row := make(map[string]any, len(fs))
	for i, f := range fs {
		row[f.name] = vs[i]
	}
	sum, err := rowDigest(table, row)
	if err != nil {
		return err
	}
	if t.rows == nil {
		t.rows = map[string]string{}
	}
	t.rows[rowName(table, row)] = sum
	return nil
}

// removed notes that the row is no more.
func (t *tx) removed(table string, row map[string]any) {
	if t.rows == nil {
		t.rows = map[string]string{}
	}
	t.rows[rowName(table, row)] = ""
}

// rowName is the table and the row's key, the parts apart by slashes.
func rowName(table string, row map[string]any) string {
	parts := []string{table}
	for _, column := range rowKeys[table] {
		text, ok := row[column].(string)
		if !ok {
			b, _ := json.Marshal(row[column]) //nolint:errchkjson // of what a database returns
			text = string(b)
		}
		parts = append(parts, url.PathEscape(text))
	}
	return strings.Join(parts, "/")
}

// rowDigest is over the columns that are not NULL, 0 or empty, so that a column
// that a later migration adds leaves the digests of older rows as they are.
func rowDigest(table string, row map[string]any) (string, error) {
	set := make(map[string]any, len(row))
	for column, v := range row {
		if v != nil && (v != "" || orNull[column]) && v != int64(0) && !notDigested[table+"."+column] {
			set[column] = v
		}
	}
	raw, err := encode(set)
	if err != nil {
		return "", err
	}
	return sha256Hex(raw)[:digestSize], nil
}
