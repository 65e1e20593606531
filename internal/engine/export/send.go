package export

import (
	"context"
	"errors"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// wrongPlace is how many events a receiver may refuse, while it takes none of a batch, before it counts as
// no receiver of events. The batch is then not held, since the fault is not the events'.
const wrongPlace = 5

// Sending is the result of Send.
type Sending struct {
	Sink string
	// Events of the chain, and Usage events made from them, that were taken.
	Events, Usage int64
	Delivered     int64             // last event of the chain up to which all is delivered
	Withheld      []ledger.Withheld // all that wait for a request to resend
}

// Options of Send.
type Options struct {
	Target
	// Resend sends only held events.
	Resend  bool
	Retries Retries // zero = the default
}

// Send delivers the part of the stream that the receiver lacks, in order: each event of the chain,
// followed by a usage event for every charge that it settles. Every event arrives at least once and always
// under the same id. An event that the receiver refuses (400, 409, 413, 422) is held if it takes others,
// and so is one that was sent a day ago and never answered; the rest goes on. Any other failure ends the
// run, and the next run continues from there.
//
// Errors: KindInvalid for a wrong target; KindUnauthorized, KindUnavailable and KindUnreachable of the
// receiver; KindInterrupted; and those of the ledger. The Sending is valid even with an error.
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
	took    bool              // anything taken in this run
	refused []ledger.Withheld // while nothing was taken; not recorded yet
	no      *refusal          // the last of those
	doubt   bool              // for one of those, an earlier attempt was lost
	held    int               // while nothing was taken
}

// tell completes the result with what the ledger now says.
func (s *sender) tell(ctx context.Context) error {
	o, err := s.ledger.Outbox(ctx, s.sink, s.stream)
	s.out.Withheld, s.out.Delivered = o.Withheld, o.Delivered
	return err
}

func (s *sender) move(ctx context.Context, step ledger.OutboxStep) (ledger.Outbox, error) {
	step.Sink, step.Stream = s.sink, s.stream
	return s.ledger.MoveOutbox(ctx, step)
}

// all sends batch after batch to the end of the chain.
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

// batchOut records that the batch is about to be sent, sends it, and records the outcome. A process that
// dies in between leaves the time of the first attempt behind.
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

// deliver sends parcels and records the outcome. If they are refused together, it sends them in two
// halves, so that one bad event is found and held while its neighbors arrive in order. With an error,
// doubt says that the receiver may have something that is not recorded.
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

// note records what the receiver answered, even if the caller has given up: it has happened.
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
