package ledger

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// specVersion is that of CloudEvents.
const specVersion = "1.0"

// fact is what an event says before it has its place in the chain.
type fact struct {
	account   string
	kind      string
	subject   string
	operation string
	data      factData
}

// factData is an event's data. The Set maps of a subject's events, applied in
// order, give the columns of its row: Verify relies on it.
type factData struct {
	Account    string                     `json:"account"`
	From       string                     `json:"from,omitempty"`
	State      string                     `json:"state,omitempty"`
	Generation int64                      `json:"generation,omitempty"`
	Row        string                     `json:"row"` // table; "" = of none
	Set        map[string]json.RawMessage `json:"set,omitempty"`
	Deleted    bool                       `json:"deleted,omitempty"`
	Finished   *intentFact                `json:"intent_finished,omitempty"`
	Opened     *intentFact                `json:"intent_opened,omitempty"`
	Meter      *meterFact                 `json:"meter,omitempty"`
	Funds      []Transfer                 `json:"funds,omitempty"`
	Budget     *Budget                    `json:"budget,omitempty"`
	Note       json.RawMessage            `json:"note,omitempty"`
	// Rows are the digests of all rows that were written with the event, by
	// table and key; "" = removed.
	Rows map[string]string `json:"rows,omitempty"`
}

type intentFact struct {
	Key    string `json:"key"`
	Kind   string `json:"kind"`
	State  string `json:"state"`
	Fence  int64  `json:"fence"`
	Reason string `json:"reason,omitempty"`
}

func (i Intent) fact() *intentFact {
	return &intentFact{Key: i.Key, Kind: string(i.Kind), State: string(i.State), Fence: i.Fence, Reason: i.Reason}
}

// changed lists the columns in which after differs from before, as JSON.
func changed(before, after []field) (map[string]json.RawMessage, error) {
	old, err := values(before)
	if err != nil {
		return nil, err
	}
	now, err := values(after)
	if err != nil {
		return nil, err
	}
	out := map[string]json.RawMessage{}
	for i, f := range after {
		if old[i] == now[i] {
			continue
		}
		if out[f.name], err = f.json(now[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// json shows a column's value in an event.
func (f field) json(v any) (json.RawMessage, error) {
	if s, ok := v.(string); ok && f.embedded {
		if s == "" {
			return json.RawMessage("null"), nil
		}
		return json.RawMessage(s), nil
	}
	return encode(v)
}

// append adds the event to its account's stream. The stream's row is read
// under its lock, and is the last thing locked in a transaction.
func (t *tx) append(f fact) error {
	stream := StreamOf(f.account)
	if err := t.queue(f.account); err != nil {
		return err
	}
	head, err := t.head(stream)
	if err != nil {
		return err
	}
	f.data.Account, f.data.Rows, t.rows = f.account, t.rows, nil
	if f.data.Note, err = canonical(f.data.Note); err != nil {
		return failuref(extensions.KindInvalid, "the note of event %s: %w", f.kind, err)
	}
	ev := Event{Stream: stream, Seq: head.Seq + 1, PrevHash: head.Hash, Type: f.kind, Subject: f.subject, Operation: f.operation, Time: t.now}
	if ev.CloudEvent, err = t.body(ev, f.data); err != nil {
		return failuref(extensions.KindInvalid, "event %s: %w", f.kind, err)
	}
	ev.ID = chainHash(ev.PrevHash, ev.CloudEvent)
	hasOperation := ev.Operation != ""
	if err := t.insert("ledger.event", "events", ev.fields(&hasOperation)); err != nil {
		return t.clash(err, f.operation)
	}
	return t.advance(head, ev)
}

// body is the canonical event without its id, which is its hash.
func (t *tx) body(ev Event, data factData) (json.RawMessage, error) {
	m := map[string]any{
		"specversion":     specVersion,
		"source":          sourcePrefix + t.id,
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
	raw, err := encode(m)
	if err != nil {
		return nil, err
	}
	return canonical(raw)
}

// chainHash is SHA-256 over the previous hash and the event, in lower-case hex.
func chainHash(prev string, body []byte) string {
	return sha256Hex([]byte(prev), []byte("\n"), body)
}

// queue makes this transaction the only one that writes for the account's
// org: what it counts from here on (names, room) stays as counted until it
// ends. It is the last lock but the rows of the change itself.
func (t *tx) queue(account string) error {
	if !t.dialect.concurrent {
		return nil
	}
	stream := StreamOf(account)
	if _, err := t.exec("ledger.stream", "INSERT INTO streams (stream, seq, hash) VALUES (?, 0, '') ON CONFLICT DO NOTHING", stream); err != nil {
		return err
	}
	_, err := t.head(stream)
	return err
}

func (t *tx) head(stream string) (Head, error) {
	h := Head{Ledger: t.id, Stream: stream}
	err := query(t.ctx, t.store, t.sql, "SELECT seq, hash FROM streams WHERE stream = ?"+t.dialect.forUpdate, []any{stream},
		func(scan func(...any) error) error { return scan(&h.Seq, &h.Hash) })
	return h, err
}

func (t *tx) advance(head Head, ev Event) error {
	if head.Seq == 0 && !t.dialect.concurrent {
		_, err := t.exec("ledger.stream", "INSERT INTO streams (stream, seq, hash) VALUES (?, ?, ?)", ev.Stream, ev.Seq, ev.ID)
		return err
	}
	n, err := t.exec("ledger.stream", "UPDATE streams SET seq = ?, hash = ? WHERE stream = ? AND seq = ?", ev.Seq, ev.ID, ev.Stream, head.Seq)
	if err == nil && n != 1 {
		err = failuref(extensions.KindInternal, "the stream %q moved under its lock", ev.Stream)
	}
	return err
}

func (t *tx) clash(err error, key string) error {
	if t.dialect.unique(err) {
		return failuref(extensions.KindConflict, "the operation key %q is used already", key)
	}
	return err
}

// replayed returns the subject of the change that used the key before. It is
// asked under the locks of the change: one whose answer was lost may still be
// on its way, and is waited for there.
func (t *tx) replayed(key string) (subject string, done bool, err error) {
	err = query(t.ctx, t.store, t.sql, "SELECT subject FROM events WHERE operation = ?", []any{key},
		func(scan func(...any) error) error { done = true; return scan(&subject) })
	return subject, done, err
}
