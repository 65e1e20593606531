package ledger

import (
	"encoding/json"
	"time"
)

// PriceBook is dated price data as it was when used.
type PriceBook struct {
	Source  string
	Version string
	AsOf    string // date, RFC 3339
	SHA256  string // of the canonical Body; set by the ledger
	Body    json.RawMessage
}

// Quote is a price given before a create. It is stored under the SHA-256 of its canonical body.
type Quote struct {
	Digest    string // set by the ledger
	Body      json.RawMessage
	Prices    []PriceBook
	CreatedAt time.Time
}
