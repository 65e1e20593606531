package ledger

import (
	"encoding/json"
	"strings"
	"time"
)

// Note is what a caller adds to the event of its change.
type Note struct {
	Type string          // "" = derived from the change
	Data json.RawMessage // an object, without secrets; nil = none
}

// NewNote makes a note of strings, numbers and times.
func NewNote(kind string, data map[string]any) Note {
	b, err := json.Marshal(data)
	if err != nil {
		b = nil
	}
	return Note{Type: kind, Data: b}
}

// Event is one immutable fact. Its id is its hash, and its place in the chain
// is Seq: events of a stream are ordered by it, never by time.
type Event struct {
	Stream    string
	Seq       int64 // 1 is the first
	ID        string
	PrevHash  string // "" for the first
	Type      string
	Subject   string // sandbox or snapshot id, or host name
	Operation string // the Key of the change
	Time      time.Time
	// CloudEvent is the whole event as CloudEvents 1.0 JSON, canonical; see ParseEvent.
	CloudEvent json.RawMessage
}

// Head is the end of a chain.
type Head struct {
	Ledger string `json:"ledger"`
	Stream string `json:"stream"`
	Seq    int64  `json:"seq"`
	Hash   string `json:"hash"`
}

// StreamOf returns the chain an account's events go to: the org before "/".
func StreamOf(account string) string {
	org, _, _ := strings.Cut(account, "/")
	return org
}

// Report is what Verify found.
type Report struct {
	Ledger    string
	Heads     []Head // as recomputed, by stream
	Events    int64
	Sandboxes int64
	Problems  []string // empty = consistent
}

// OK reports a consistent ledger.
func (r Report) OK() bool { return len(r.Problems) == 0 }
