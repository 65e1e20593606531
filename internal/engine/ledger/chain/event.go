package chain

import (
	"encoding/json"
	"time"
)

// Event is one immutable fact. Its id is its hash; Seq, never time, orders the events of a stream.
type Event struct {
	Stream    string
	Seq       int64 // 1 is the first
	ID        string
	PrevHash  string // "" for the first
	Type      string
	Subject   string // sandbox or snapshot id, or host name
	Operation string // the Key of the change
	Time      time.Time
	// CloudEvent is the whole event as canonical CloudEvents 1.0 JSON; see ParseEvent.
	CloudEvent json.RawMessage
}

// Head is the end of a chain.
type Head struct {
	Ledger string `json:"ledger"`
	Stream string `json:"stream"`
	Seq    int64  `json:"seq"`
	Hash   string `json:"hash"`
}

// Report is the result of Verify.
type Report struct {
	Ledger    string
	Heads     []Head // recomputed, by stream
	Events    int64
	Sandboxes int64
	Problems  []string // empty = consistent
}
