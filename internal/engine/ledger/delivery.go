package ledger

import "time"

// retryWindow is how long after its first attempt a delivery may be repeated: receivers remember ids for
// about a day.
const retryWindow = 24 * time.Hour

// WithheldState says why an event is not resent automatically. Stored: append only.
type WithheldState string

// States of a withheld event.
const (
	WithheldRejected  WithheldState = "rejected"  // the sink refused this event
	WithheldAmbiguous WithheldState = "ambiguous" // sent, never answered, and the sink may have forgotten its id
)

// Outbox records how far a sink has received a stream. A new sink starts with the first event of the
// chain.
type Outbox struct {
	Sink, Stream string
	// Delivered is the last event up to which the sink has everything, except Withheld.
	Delivered int64
	// Attempted is the last event that is under way, or was sent and not answered. Those after Delivered
	// are resent first, and alone.
	Attempted      int64
	Attempts       int64
	FirstAttemptAt time.Time  // of the events under way; zero = none
	Withheld       []Withheld // by Seq
}

// Withheld is an event that is resent only on request.
type Withheld struct {
	Seq            int64
	State          WithheldState
	Reason         string
	Attempts       int64
	FirstAttemptAt time.Time
}

// OutboxStep is one step of a delivery. Zero fields do nothing; the others apply in the order of the
// fields. Repeating a step changes only the count of attempts.
type OutboxStep struct {
	Sink, Stream string
	// Attempt is the last event about to be sent.
	Attempt int64
	// Withhold sets events apart; they no longer count as under way.
	Withhold []Withheld
	// Delivered is the last event up to which the sink has everything, except withheld ones.
	Delivered int64
	// Withdraw says that no undelivered event up to this one reached the sink. It applies only after a
	// single attempt.
	Withdraw int64
	// Release drops withheld events that the sink received after all.
	Release []int64
}

// open reports whether events are under way.
func (o *Outbox) open() bool { return o.Attempted > o.Delivered }

// Expire moves events that were sent too long ago to Withheld as ambiguous, and returns them.
func (o *Outbox) Expire(now time.Time) []Withheld {
	if !o.open() || now.Before(o.FirstAttemptAt.Add(retryWindow)) {
		return nil
	}
	var out []Withheld
	for seq := o.Delivered + 1; seq <= o.Attempted; seq++ {
		out = append(out, Withheld{Seq: seq, State: WithheldAmbiguous, Reason: "sent, but not answered within a day",
			Attempts: o.Attempts, FirstAttemptAt: o.FirstAttemptAt})
	}
	o.Withheld = append(o.Withheld, out...)
	o.Advance(o.Attempted)
	return out
}

// Advance marks everything up to to as delivered.
func (o *Outbox) Advance(to int64) {
	o.Delivered = max(o.Delivered, to)
	if !o.open() {
		o.Attempted, o.Attempts, o.FirstAttemptAt = o.Delivered, 0, time.Time{}
	}
}

// Attempt marks everything up to to as under way.
func (o *Outbox) Attempt(to int64, now time.Time) {
	if to <= o.Delivered {
		return
	}
	if !o.open() || o.FirstAttemptAt.After(now) { // a clock that ran ahead must not extend the retries
		o.FirstAttemptAt = now
	}
	o.Attempted = max(o.Attempted, to)
	o.Attempts++
}

// Withdraw takes back a first attempt that reached nobody.
func (o *Outbox) Withdraw(to int64) {
	if o.Attempts <= 1 && o.Attempted == to {
		o.Attempted = o.Delivered
		o.Advance(o.Delivered)
	}
}
