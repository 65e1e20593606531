package sqlstore

import (
	"encoding/json"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// fact is the content of an event before its place in the chain is known.
type fact struct {
	account   string
	kind      string
	subject   string
	operation string
	data      chain.Data
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

// json returns a column's value as events show it.
func (f field) json(v any) (json.RawMessage, error) {
	if s, ok := v.(string); ok && f.embedded {
		if s == "" {
			return json.RawMessage("null"), nil
		}
		return json.RawMessage(s), nil
	}
	return chain.Encode(v)
}

// append adds the event to its account's stream. It reads the stream's row under its lock, which is the
// last lock that a transaction takes.
func (t *tx) append(f fact) error {
	stream := ledger.StreamOf(f.account)
	if err := t.queue(f.account); err != nil {
		return err
	}
	head, err := t.head(stream)
	if err != nil {
		return err
	}
	f.data.Account, f.data.Rows, t.rows = f.account, t.rows, nil
	if f.data.Note, err = chain.Canonical(f.data.Note); err != nil {
		return fault.Errorf(extensions.KindInvalid, "the note of event %s: %w", f.kind, err)
	}
	ev := chain.Event{Stream: stream, Seq: head.Seq + 1, PrevHash: head.Hash, Type: f.kind, Subject: f.subject, Operation: f.operation,
		Time: t.now}
	if ev.CloudEvent, err = chain.Body(t.id, ev, f.data); err != nil {
		return fault.Errorf(extensions.KindInvalid, "event %s: %w", f.kind, err)
	}
	ev.ID = chain.Hash(ev.PrevHash, ev.CloudEvent)
	hasOperation := ev.Operation != ""
	if err := t.insert("ledger.event", "events", eventRow(&ev, &hasOperation)); err != nil {
		return t.clash(err, f.operation)
	}
	return t.advance(head, ev)
}

// queue makes this transaction the only writer for the account's org: what it counts from here on (names,
// room) stays valid until it ends. Only the rows of the change itself are locked later.
func (t *tx) queue(account string) error {
	if !t.dialect.concurrent {
		return nil
	}
	stream := ledger.StreamOf(account)
	if _, err := t.exec("ledger.stream", "INSERT INTO streams (stream, seq, hash) VALUES (?, 0, '') ON CONFLICT DO NOTHING",
		stream); err != nil {
		return err
	}
	_, err := t.head(stream)
	return err
}

func (t *tx) head(stream string) (chain.Head, error) {
	h := chain.Head{Ledger: t.id, Stream: stream}
	err := query(t.ctx, t.store, t.sql, "SELECT seq, hash FROM streams WHERE stream = ?"+t.dialect.forUpdate, []any{stream},
		func(scan func(...any) error) error { return scan(&h.Seq, &h.Hash) })
	return h, err
}

func (t *tx) advance(head chain.Head, ev chain.Event) error {
	if head.Seq == 0 && !t.dialect.concurrent {
		_, err := t.exec("ledger.stream", "INSERT INTO streams (stream, seq, hash) VALUES (?, ?, ?)", ev.Stream, ev.Seq, ev.ID)
		return err
	}
	n, err := t.exec("ledger.stream", "UPDATE streams SET seq = ?, hash = ? WHERE stream = ? AND seq = ?", ev.Seq, ev.ID, ev.Stream, head.Seq)
	if err == nil && n != 1 {
		err = fault.Errorf(extensions.KindInternal, "the stream %q moved under its lock", ev.Stream)
	}
	return err
}

func (t *tx) clash(err error, key string) error {
	if t.dialect.unique(err) {
		return fault.Errorf(extensions.KindConflict, "the operation key %q is used already", key)
	}
	return err
}

// replayed returns the subject of the change that used the key before. It runs under the locks of the
// change, so it waits for an earlier attempt whose answer was lost and which may still be running.
func (t *tx) replayed(key string) (subject string, done bool, err error) {
	err = query(t.ctx, t.store, t.sql, "SELECT subject FROM events WHERE operation = ?", []any{key},
		func(scan func(...any) error) error { done = true; return scan(&subject) })
	return subject, done, err
}
