package chain

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
)

// specVersion is the version of CloudEvents.
const specVersion = "1.0"

// Data is an event's data. The Set maps of a subject's events, applied in order, yield the columns of its
// row; Verify relies on it.
type Data struct {
	Account    string                     `json:"account"`
	From       string                     `json:"from,omitempty"`
	State      string                     `json:"state,omitempty"`
	Generation int64                      `json:"generation,omitempty"`
	Row        string                     `json:"row"` // table; "" = no row
	Set        map[string]json.RawMessage `json:"set,omitempty"`
	Deleted    bool                       `json:"deleted,omitempty"`
	Finished   *IntentFact                `json:"intent_finished,omitempty"`
	Opened     *IntentFact                `json:"intent_opened,omitempty"`
	Meter      *MeterFact                 `json:"meter,omitempty"`
	Funds      []bank.Transfer            `json:"funds,omitempty"`
	Budget     *bank.Budget               `json:"budget,omitempty"`
	Note       json.RawMessage            `json:"note,omitempty"`
	// Rows are the digests of all rows written with the event, by table and key; "" = removed.
	Rows map[string]string `json:"rows,omitempty"`
}

// IntentFact is what an event says about an intent.
type IntentFact struct {
	Key    string `json:"key"`
	Kind   string `json:"kind"`
	State  string `json:"state"`
	Fence  int64  `json:"fence"`
	Reason string `json:"reason,omitempty"`
}

// Body returns the canonical event of a ledger without its id, which is its hash.
func Body(ledger string, ev Event, data Data) (json.RawMessage, error) {
	m := map[string]any{
		"specversion":     specVersion,
		"source":          sourcePrefix + ledger,
		"type":            ev.Type,
		"subject":         ev.Subject,
		"time":            ev.Time.Format(time.RFC3339Nano),
		"datacontenttype": "application/json",
		"sequence":        fmt.Sprintf("%020d", ev.Seq),
		"stream":          ev.Stream,
		"data":            data,
	}
	if ev.Operation != "" {
		m["operation"] = ev.Operation
	}
	raw, err := Encode(m)
	if err != nil {
		return nil, err
	}
	return Canonical(raw)
}

// Hash returns SHA-256 over the previous hash and the event, in lower-case hex.
func Hash(prev string, body []byte) string {
	return SHA256([]byte(prev), []byte("\n"), body)
}
