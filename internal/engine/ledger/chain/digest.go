package chain

import (
	"encoding/json"
	"net/url"
	"strings"
)

// digestSize is how many hex digits of a row's SHA-256 an event carries: 128 bits, too many to find
// another row for.
const digestSize = 32

// RowKeys are the tables whose every row is covered by an event, with the columns that identify a row.
// Verify checks the other tables as far as it can.
var RowKeys = map[string][]string{
	"sandboxes":      {"id"},
	"intents":        {"op_key"},
	"snapshots":      {"id"},
	"hosts":          {"account", "name"},
	"facts":          {"account", "extension", "host"},
	"leases":         {"sandbox_id", "id"},
	"quotes":         {"digest"},
	"price_books":    {"sha256"},
	"meters":         {"id"},
	"meter_segments": {"meter_id", "seq"},
	"charges":        {"meter_id", "segment", "component"},
	"accounts":       {"id"},
	"transfers":      {"id"},
	"budgets":        {"id"},
}

// notDigested are columns that the same operations fill differently in another ledger (a holder gets a
// random name when a ledger is opened), and those that follow from other rows, which Verify
// recomputes.
var notDigested = map[string]bool{"intents.holder": true,
	"meters.running_ms": true, "meters.paused_ms": true, "meters.wallet": true, "meters.own_key": true, "meters.own_place": true,
	"meters.mixed": true}

// orNull are columns that store NULL, never an empty text.
var orNull = map[string]bool{"claim": true, "open_key": true, "pending_id": true}

// RowName returns the table and the row's key, joined by slashes.
func RowName(table string, row map[string]any) string {
	parts := []string{table}
	for _, column := range RowKeys[table] {
		text, ok := row[column].(string)
		if !ok {
			b, _ := json.Marshal(row[column]) //nolint:errchkjson // of what a database returns
			text = string(b)
		}
		parts = append(parts, url.PathEscape(text))
	}
	return strings.Join(parts, "/")
}

// RowDigest covers the columns that are not NULL, 0 or empty, so a column added by a later migration
// leaves the digests of older rows unchanged.
func RowDigest(table string, row map[string]any) (string, error) {
	set := make(map[string]any, len(row))
	for column, v := range row {
		if v != nil && (v != "" || orNull[column]) && v != int64(0) && !notDigested[table+"."+column] {
			set[column] = v
		}
	}
	raw, err := Encode(set)
	if err != nil {
		return "", err
	}
	return SHA256(raw)[:digestSize], nil
}
