package sqlstore

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func outboxRow(o *ledger.Outbox) []field {
	return []field{
		text("sink", &o.Sink), text("stream", &o.Stream), number("delivered", &o.Delivered), number("attempted", &o.Attempted),
		number("attempts", &o.Attempts), stamp("first_attempt_at", &o.FirstAttemptAt),
	}
}

func withheldRow(h *ledger.Withheld, o *ledger.Outbox) []field {
	return []field{
		text("sink", &o.Sink), text("stream", &o.Stream), number("seq", &h.Seq), text("state", &h.State), text("reason", &h.Reason),
		number("attempts", &h.Attempts), stamp("first_attempt_at", &h.FirstAttemptAt),
	}
}

func (s *store) Outbox(ctx context.Context, sink, stream string) (ledger.Outbox, error) {
	o := ledger.Outbox{Sink: sink, Stream: stream}
	if s.reader == nil {
		return o, nil
	}
	err := s.ask(ctx, func() (err error) {
		o, err = s.outbox(ctx, s.reader, sink, stream, "")
		return err
	})
	o.Expire(s.now())
	return o, err
}

func (s *store) outbox(ctx context.Context, q queryer, sink, stream, lock string) (ledger.Outbox, error) {
	rows, err := selectAll(ctx, s, q, "sinks", outboxRow, "WHERE sink = ? AND stream = ?"+lock, sink, stream)
	o := ledger.Outbox{Sink: sink, Stream: stream}
	if err != nil {
		return o, err
	}
	if len(rows) > 0 {
		o = rows[0]
	}
	o.Withheld, err = selectAll(ctx, s, q, "outbox", func(h *ledger.Withheld) []field { return withheldRow(h, &ledger.Outbox{}) },
		"WHERE sink = ? AND stream = ? ORDER BY seq", sink, stream)
	return o, err
}

func (s *store) MoveOutbox(ctx context.Context, step ledger.OutboxStep) (ledger.Outbox, error) {
	for _, r := range []struct{ name, value string }{{"sink", step.Sink}, {"stream", step.Stream}} {
		if err := plain(r.name, r.value); err != nil {
			return ledger.Outbox{}, err
		}
	}
	var o ledger.Outbox
	err := s.write(ctx, func(t *tx) error {
		if err := t.known(step); err != nil {
			return err
		}
		if err := t.moveOutbox(step); err != nil {
			return err
		}
		var err error
		o, err = s.outbox(t.ctx, t.sql, step.Sink, step.Stream, "")
		return err
	})
	return o, err
}

// known refuses a step that names events outside the chain.
func (t *tx) known(step ledger.OutboxStep) error {
	var end int64
	err := query(t.ctx, t.store, t.sql, "SELECT seq FROM streams WHERE stream = ?", []any{step.Stream},
		func(scan func(...any) error) error { return scan(&end) })
	if err != nil {
		return err
	}
	named := append([]int64{step.Attempt, step.Delivered, step.Withdraw}, step.Release...)
	for _, h := range step.Withhold {
		named = append(named, h.Seq)
		if h.Seq == 0 || h.State != ledger.WithheldRejected && h.State != ledger.WithheldAmbiguous {
			return fault.Errorf(extensions.KindInvalid, "event %s/%d cannot be held as %q", step.Stream, h.Seq, h.State)
		}
	}
	for _, seq := range named {
		if seq < 0 || seq > end {
			return fault.Errorf(extensions.KindInvalid, "the stream %q has no event %d", step.Stream, seq)
		}
	}
	return nil
}

func (t *tx) moveOutbox(step ledger.OutboxStep) error {
	_, err := t.exec("outbox.sink", "INSERT INTO sinks (sink, stream, delivered, attempted, attempts, first_attempt_at) VALUES (?, ?, 0, 0, "+
		"0, 0) ON CONFLICT DO NOTHING",
		step.Sink, step.Stream)
	if err != nil {
		return err
	}
	o, err := t.outbox(t.ctx, t.sql, step.Sink, step.Stream, t.dialect.forUpdate)
	if err != nil {
		return err
	}
	held := o.Expire(t.now)
	o.Attempt(step.Attempt, t.now)
	for _, h := range step.Withhold {
		if h.Attempts == 0 {
			h.Attempts, h.FirstAttemptAt = o.Attempts, o.FirstAttemptAt
		}
		held = append(held, h)
	}
	o.Advance(step.Delivered)
	o.Withdraw(step.Withdraw)
	for _, h := range held {
		if err := t.withhold(o, h); err != nil {
			return err
		}
	}
	for _, seq := range step.Release {
		if _, err := t.exec("outbox.release", "DELETE FROM outbox WHERE sink = ? AND stream = ? AND seq = ?", step.Sink, step.Stream,
			seq); err != nil {
			return err
		}
	}
	return t.update("outbox.move", "sinks", outboxRow(&o), "sink = ? AND stream = ?", step.Sink, step.Stream)
}

// withhold keeps one event apart. The first reason stays, unless the sink itself gives one, which outweighs a
// guess.
func (t *tx) withhold(o ledger.Outbox, h ledger.Withheld) error {
	_, err := t.exec("outbox.hold", `INSERT INTO outbox (sink, stream, seq, state, reason, attempts, first_attempt_at)
		VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (sink, stream, seq) DO UPDATE SET state = excluded.state, reason = excluded.reason
		WHERE excluded.state = '`+string(ledger.WithheldRejected)+`'`,
		o.Sink, o.Stream, h.Seq, string(h.State), extensions.Clean(h.Reason, 500), h.Attempts, toMicros(h.FirstAttemptAt))
	return err
}
