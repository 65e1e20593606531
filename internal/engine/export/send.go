package export

import (
	"context"
	"errors"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// wrongPlace is how many events a receiver may refuse while it takes none of a
// batch, until it is taken for something else than a receiver of events. Then
// the batch is not held: the fault is not the events'.
const wrongPlace = 5

// Sending tells what came of it.
type Sending struct {
	Sink string
	// Events of the chain and Usage events made of them that were taken.
	Events, Usage int64
	Delivered     int64         // up to this event of the chain
	Held          []ledger.Held // all that wait for somebody's word
}

// Options of Send.
type Options struct {
	Target
	// Resend sends what is held, and nothing else.
	Resend  bool
	Retries Retries // zero = the default
}

// Send delivers what the receiver has not got of the stream, in order: each
// event of the chain, and after it a usage event for every charge that it
// settles. Every event arrives at least once and always under the same id. One
// that the receiver refuses (400, 409, 413, 422) is held, if it takes others, and
// so is one that was sent a day ago and never answered; the rest goes on. What else goes
// wrong ends the run, and the next one goes on from there.
//
// Errors: KindInvalid for a wrong target, KindUnauthorized, KindUnavailable
// and KindUnreachable of the receiver, KindInterrupted, and those of the
// ledger. The Sending is told with an error, too.
func Send(ctx context.Context, l Ledger, stream string, o Options) (Sending, error) {
	e, err := newEndpoint(o.Target)
	if err != nil {
		return Sending{}, err
	}
	if o.Retries == (Retries{}) {
		o.Retries = defaultRetries
	}
	s := &sender{ledger: l, stream: stream, poster: e.poster(o.Retries), out: Sending{Sink: e.sink}}
	defer s.close()
	if o.Resend {
		err = s.resend(ctx)
	} else {
		err = s.all(ctx)
	}
	return s.out, errors.Join(err, s.tell(context.WithoutCancel(ctx)))
}

type sender struct {
	*poster
	ledger  Ledger
	stream  string
	out     Sending
	took    bool          // anything, in this run
	refused []ledger.Held // as long as it took nothing; not noted yet
	no      *refusal      // the last one of those
	doubt   bool          // of one of those: an attempt before was lost
	held    int           // and nothing taken
}

// tell completes the result with what the ledger says now.
func (s *sender) tell(ctx context.Context) error {
	o, err := s.ledger.Outbox(ctx, s.sink, s.stream)
	s.out.Held, s.out.Delivered = o.Held, o.Delivered
	return err
}

func (s *sender) move(ctx context.Context, step ledger.OutboxStep) (ledger.Outbox, error) {
	step.Sink, step.Stream = s.sink, s.stream
	return s.ledger.MoveOutbox(ctx, step)
}

// all sends batch after batch until the chain has no more.
func (s *sender) all(ctx context.Context) error {
	for {
		o, err := s.ledger.Outbox(ctx, s.sink, s.stream)
		if err != nil {
			return err
		}
		batch, err := s.batch(ctx, o)
		if err != nil || len(batch) == 0 {
			return err
		}
		if err := ctx.Err(); err != nil {
			return s.lost(ctx, err)
		}
		if err := s.batchOut(ctx, batch); err != nil {
			return err
		}
	}
}

// batchOut notes that the batch is about to be sent, sends it, and notes what
// came of it. Who dies in between leaves the time of the first attempt behind.
func (s *sender) batchOut(ctx context.Context, batch []parcel) error {
	last := batch[len(batch)-1].seq
	if _, err := s.move(ctx, ledger.OutboxStep{Attempt: last}); err != nil {
		return err
	}
	if err := failpoint.Hit(ctx, "export.attempted"); err != nil {
		return err
	}
	doubt, err := s.deliver(ctx, batch)
	if err == nil {
		err = s.refusedAll(ctx, last)
	}
	if err != nil && !doubt && !s.doubt {
		if _, moveErr := s.move(context.WithoutCancel(ctx), ledger.OutboxStep{Withdraw: last}); moveErr != nil {
			return errors.Join(err, moveErr)
		}
	}
	return err
}

// deliver sends parcels and notes what came of them. Refused together they are
// sent in two halves, so that one bad event is found and held, and its
// neighbours arrive, in order. With an error, doubt tells whether the receiver
// may have something that is not noted.
func (s *sender) deliver(ctx context.Context, batch []parcel) (doubt bool, err error) {
	var events [][]byte
	for _, p := range batch {
		events = append(events, p.events...)
	}
	doubt, err = s.post(ctx, events)
	var no *refusal
	switch {
	case err == nil:
		return true, s.taken(ctx, batch)
	case !errors.As(err, &no):
		return doubt, err
	case len(batch) == 1:
		return s.single(ctx, batch[0], no, doubt)
	}
	for _, half := range [][]parcel{batch[:len(batch)/2], batch[len(batch)/2:]} {
		if d, err := s.deliver(ctx, half); err != nil {
			return d || doubt, err
		}
	}
	return false, nil
}

// note records what the receiver said. That is done although the caller has
// given up: it has happened.
func (s *sender) note(ctx context.Context, step ledger.OutboxStep) error {
	if err := failpoint.Hit(ctx, "export.sent"); err != nil {
		return err
	}
	noting, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if _, err := s.move(noting, step); err != nil {
		return err
	}
	return failpoint.Hit(ctx, "export.marked")
}
