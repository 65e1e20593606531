package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// retryWindow is how long after its first attempt a delivery is repeated:
// receivers remember ids for about a day.
const retryWindow = 24 * time.Hour

// HeldState says why an event is not sent again by itself. Stored: append only.
type HeldState string

// States of a held event.
const (
	HeldRejected  HeldState = "rejected"  // the sink has refused this event
	HeldAmbiguous HeldState = "ambiguous" // sent, never answered, and the sink may have forgotten its id
)

// Outbox is how far a sink has got with a stream. One that nothing was ever
// sent to has got nothing, so it starts with the first event of the chain.
type Outbox struct {
	Sink, Stream string
	// Delivered: the sink has every event up to here, apart from Held.
	Delivered int64
	// Attempted: those after Delivered up to here are under way, or were sent
	// and not answered. They go first, and with no others.
	Attempted      int64
	Attempts       int64
	FirstAttemptAt time.Time // of those; zero = none
	Held           []Held    // by Seq
}

// Held is an event that is not sent again unless somebody asks for it.
type Held struct {
	Seq            int64
	State          HeldState
	Reason         string
	Attempts       int64
	FirstAttemptAt time.Time
}

// OutboxStep is one step of a delivery; what is zero does nothing. Parts
// happen in the order of the fields. Repeated, it changes nothing but the
// count of attempts.
type OutboxStep struct {
	Sink, Stream string
	// Attempt comes before events are sent: up to here.
	Attempt int64
	// Hold keeps events apart, which are then not part of what is under way.
	Hold []Held
	// Delivered: the sink has all up to here, but for those held.
	Delivered int64
	// Withdraw: nothing of what was to be sent up to here, and is not delivered,
	// has reached the sink. It only counts where there was no other attempt.
	Withdraw int64
	// Release forgets held events, which the sink has got after all.
	Release []int64
}

func (o *Outbox) fields() []field {
	return []field{
		text("sink", &o.Sink), text("stream", &o.Stream), number("delivered", &o.Delivered), number("attempted", &o.Attempted),
		number("attempts", &o.Attempts), stamp("first_attempt_at", &o.FirstAttemptAt),
	}
}

func (h *Held) fields(o *Outbox) []field {
	return []field{
		text("sink", &o.Sink), text("stream", &o.Stream), number("seq", &h.Seq), text("state", &h.State), text("reason", &h.Reason),
		number("attempts", &h.Attempts), stamp("first_attempt_at", &h.FirstAttemptAt),
	}
}

// open reports events under way.
func (o *Outbox) open() bool { return o.Attempted > o.Delivered }

// expire turns what was sent too long ago into ambiguous events and returns
// those, which are in Held too.
func (o *Outbox) expire(now time.Time) []Held {
	if !o.open() || now.Before(o.FirstAttemptAt.Add(retryWindow)) {
		return nil
	}
	var out []Held
	for seq := o.Delivered + 1; seq <= o.Attempted; seq++ {
		out = append(out, Held{Seq: seq, State: HeldAmbiguous, Reason: "sent, and not answered for a day",
			Attempts: o.Attempts, FirstAttemptAt: o.FirstAttemptAt})
	}
	o.Held = append(o.Held, out...)
	o.advance(o.Attempted)
	return out
}

func (o *Outbox) advance(to int64) {
	o.Delivered = max(o.Delivered, to)
	if !o.open() {
		o.Attempted, o.Attempts, o.FirstAttemptAt = o.Delivered, 0, time.Time{}
	}
}

func (o *Outbox) attempt(to int64, now time.Time) {
	if to <= o.Delivered {
		return
	}
	if !o.open() || o.FirstAttemptAt.After(now) { // a clock that was ahead must not repeat it for longer
		o.FirstAttemptAt = now
	}
	o.Attempted = max(o.Attempted, to)
	o.Attempts++
}

func (o *Outbox) withdraw(to int64) {
	if o.Attempts <= 1 && o.Attempted == to {
		o.Attempted = o.Delivered
		o.advance(o.Delivered)
	}
}

func (s *store) Outbox(ctx context.Context, sink, stream string) (Outbox, error) {
	o := Outbox{Sink: sink, Stream: stream}
	if s.reader == nil {
		return o, nil
	}
	err := s.ask(ctx, func() (err error) {
		o, err = s.outbox(ctx, s.reader, sink, stream, "")
		return err
	})
	o.expire(s.now())
	return o, err
}

func (s *store) outbox(ctx context.Context, q queryer, sink, stream, lock string) (Outbox, error) {
	rows, err := selectAll(ctx, s, q, "sinks", (*Outbox).fields, "WHERE sink = ? AND stream = ?"+lock, sink, stream)
	o := Outbox{Sink: sink, Stream: stream}
	if err != nil {
		return o, err
	}
	if len(rows) > 0 {
		o = rows[0]
	}
	o.Held, err = selectAll(ctx, s, q, "outbox", func(h *Held) []field { return h.fields(&Outbox{}) },
		"WHERE sink = ? AND stream = ? ORDER BY seq", sink, stream)
	return o, err
}

func (s *store) MoveOutbox(ctx context.Context, step OutboxStep) (Outbox, error) {
	for _, r := range []struct{ name, value string }{{"sink", step.Sink}, {"stream", step.Stream}} {
		if err := plain(r.name, r.value); err != nil {
			return Outbox{}, err
		}
	}
	var o Outbox
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

// known refuses a step about events that are not in the chain.
func (t *tx) known(step OutboxStep) error {
	var end int64
	err := query(t.ctx, t.store, t.sql, "SELECT seq FROM streams WHERE stream = ?", []any{step.Stream}, func(scan func(...any) error) error { return scan(&end) })
	if err != nil {
		return err
	}
	named := append([]int64{step.Attempt, step.Delivered, step.Withdraw}, step.Release...)
	for _, h := range step.Hold {
		named = append(named, h.Seq)
		if h.Seq == 0 || h.State != HeldRejected && h.State != HeldAmbiguous {
			return failuref(extensions.KindInvalid, "event %s/%d cannot be held as %q", step.Stream, h.Seq, h.State)
		}
	}
	for _, seq := range named {
		if seq < 0 || seq > end {
			return failuref(extensions.KindInvalid, "the stream %q has no event %d", step.Stream, seq)
		}
	}
	return nil
}

func (t *tx) moveOutbox(step OutboxStep) error {
	_, err := t.exec("outbox.sink", "INSERT INTO sinks (sink, stream, delivered, attempted, attempts, first_attempt_at) VALUES (?, ?, 0, 0, 0, 0) ON CONFLICT DO NOTHING",
		step.Sink, step.Stream)
	if err != nil {
		return err
	}
	o, err := t.outbox(t.ctx, t.sql, step.Sink, step.Stream, t.dialect.forUpdate)
	if err != nil {
		return err
	}
	held := o.expire(t.now)
	o.attempt(step.Attempt, t.now)
	for _, h := range step.Hold {
		if h.Attempts == 0 {
			h.Attempts, h.FirstAttemptAt = o.Attempts, o.FirstAttemptAt
		}
		held = append(held, h)
	}
	o.advance(step.Delivered)
	o.withdraw(step.Withdraw)
	for _, h := range held {
		if err := t.hold(o, h); err != nil {
			return err
		}
	}
	for _, seq := range step.Release {
		if _, err := t.exec("outbox.release", "DELETE FROM outbox WHERE sink = ? AND stream = ? AND seq = ?", step.Sink, step.Stream, seq); err != nil {
			return err
		}
	}
	return t.update("outbox.move", "sinks", o.fields(), "sink = ? AND stream = ?", step.Sink, step.Stream)
}

// hold keeps one event apart. What was said of it first stays, but for the
// word of the sink itself, which is worth more than a guess.
func (t *tx) hold(o Outbox, h Held) error {
	_, err := t.exec("outbox.hold", `INSERT INTO outbox (sink, stream, seq, state, reason, attempts, first_attempt_at) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (sink, stream, seq) DO UPDATE SET state = excluded.state, reason = excluded.reason
		WHERE excluded.state = '`+string(HeldRejected)+`'`,
		o.Sink, o.Stream, h.Seq, string(h.State), extensions.Clean(h.Reason, 500), h.Attempts, toMicros(h.FirstAttemptAt))
	return err
}

// outboxes checks that what is said of deliveries is about events that exist.
func (a *audit) outboxes([]Head) error {
	for _, c := range []struct{ what, stmt string }{
		{"which is missing", `SELECT sink, stream, seq FROM outbox o
			WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.stream = o.stream AND e.seq = o.seq) ORDER BY sink, stream, seq`},
		{"which is after the chain's end", `SELECT sink, stream, attempted FROM sinks s
			WHERE attempted > (SELECT coalesce(max(e.seq), 0) FROM events e WHERE e.stream = s.stream) ORDER BY sink, stream`},
		{"held for no known reason", `SELECT sink, stream, seq FROM outbox
			WHERE state NOT IN ('` + string(HeldRejected) + `', '` + string(HeldAmbiguous) + `') ORDER BY sink, stream, seq`},
		{"which is before what is delivered", `SELECT sink, stream, attempted FROM sinks WHERE attempted < delivered ORDER BY sink, stream`},
	} {
		err := query(a.ctx, a.store, a.q, c.stmt, nil, func(scan func(...any) error) error {
			var sink, stream string
			var seq int64
			err := scan(&sink, &stream, &seq)
			a.problem("the outbox of %s names event %s, %s", sink, fmt.Sprintf("%s/%d", stream, seq), c.what)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
