package ledger

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// States of an outbox row. Stored: append only.
const (
	outboxPending   = "pending"
	outboxAmbiguous = "ambiguous"
)

// retryWindow is how long after its first attempt a delivery is repeated:
// receivers remember ids for about a day.
const retryWindow = 24 * time.Hour

func (s *store) Events(ctx context.Context, stream string, fromSeq int64, limit int) ([]Event, error) {
	tail, args := "WHERE stream = ? AND seq >= ? ORDER BY seq", []any{stream, fromSeq}
	if limit > 0 {
		tail, args = tail+" LIMIT ?", append(args, limit)
	}
	rows, err := readAll(ctx, s, "events", eventFields, tail, args...)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if rows[i].CloudEvent, err = withID(rows[i]); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func eventFields(e *Event) []field { return e.fields(new(bool)) }

// withID is the event as others see it: with its id, and that of the one
// before, so that each can be checked by itself.
func withID(e Event) (json.RawMessage, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(e.CloudEvent, &m); err != nil {
		return nil, failuref(extensions.KindInternal, "event %s/%d is not JSON: %w", e.Stream, e.Seq, err)
	}
	m["id"] = json.RawMessage(`"` + e.ID + `"`)
	if e.PrevHash != "" {
		m["prevhash"] = json.RawMessage(`"` + e.PrevHash + `"`)
	}
	return encode(m)
}

func (s *store) Head(ctx context.Context, stream string) (Head, error) {
	h := Head{Ledger: s.id, Stream: stream}
	_, err := readAll(ctx, s, "streams", func(*struct{}) []field {
		return []field{number("seq", &h.Seq), text("hash", &h.Hash)}
	}, "WHERE stream = ?", stream)
	return h, err
}

func (s *store) Outbox(ctx context.Context, sink string, limit int) ([]Delivery, error) {
	tail, args := "WHERE sink = ? AND state = ? ORDER BY stream, seq", []any{sink, outboxPending}
	if limit > 0 {
		tail, args = tail+" LIMIT ?", append(args, limit)
	}
	rows, err := readAll(ctx, s, "outbox", func(d *Delivery) []field {
		return []field{text("sink", &d.Sink), text("stream", &d.Event.Stream), number("seq", &d.Event.Seq),
			number("attempts", &d.Attempts), stamp("first_attempt_at", &d.FirstAttemptAt)}
	}, tail, args...)
	for i := range rows {
		evs, err := s.Events(ctx, rows[i].Event.Stream, rows[i].Event.Seq, 1)
		if err != nil {
			return nil, err
		}
		if len(evs) == 0 || evs[0].Seq != rows[i].Event.Seq {
			return nil, failuref(extensions.KindInternal, "the outbox of %s names event %s/%d, which is missing", sink, rows[i].Event.Stream, rows[i].Event.Seq)
		}
		rows[i].Event = evs[0]
	}
	return rows, err
}

func (s *store) MarkDelivered(ctx context.Context, sink, stream string, seq int64) error {
	return s.write(ctx, func(t *tx) error {
		_, err := t.exec("ledger.outbox", "DELETE FROM outbox WHERE sink = ? AND stream = ? AND seq = ?", sink, stream, seq)
		return err
	})
}

func (s *store) MarkFailed(ctx context.Context, sink, stream string, seq int64) error {
	return s.write(ctx, func(t *tx) error {
		now := toMicros(t.now)
		_, err := t.exec("ledger.outbox", `UPDATE outbox SET attempts = attempts + 1,
			first_attempt_at = CASE WHEN first_attempt_at = 0 THEN ? ELSE first_attempt_at END,
			state = CASE WHEN first_attempt_at <> 0 AND first_attempt_at <= ? THEN ? ELSE state END
			WHERE sink = ? AND stream = ? AND seq = ?`,
			now, now-retryWindow.Microseconds(), outboxAmbiguous, sink, stream, seq)
		return err
	})
}
