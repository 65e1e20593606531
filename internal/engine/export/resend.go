package export

import (
	"context"
	"errors"
	"fmt"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// resend sends held events one by one, on request.
func (s *sender) resend(ctx context.Context) error {
	o, err := s.ledger.Outbox(ctx, s.sink, s.stream)
	if err != nil {
		return err
	}
	for _, h := range o.Withheld {
		events, err := s.ledger.Events(ctx, s.stream, h.Seq, 1)
		if err != nil {
			return err
		}
		if len(events) != 1 || events[0].Seq != h.Seq {
			return extensions.Errorf(extensions.KindInternal, "event %s/%d is held for %s and is not in the ledger", s.stream, h.Seq, s.sink)
		}
		p, err := s.parcel(ctx, events[0])
		if err != nil {
			return err
		}
		if err := s.resendOne(ctx, p); err != nil {
			return fmt.Errorf("sending event %d again: %w", h.Seq, err)
		}
	}
	return nil
}

func (s *sender) resendOne(ctx context.Context, p parcel) error {
	for _, e := range p.events {
		_, err := s.post(ctx, [][]byte{e})
		var no *refusal
		if errors.As(err, &no) {
			return s.note(ctx, ledger.OutboxStep{Withhold: []ledger.Withheld{{Seq: p.seq, State: ledger.WithheldRejected, Reason: no.reason}}})
		}
		if err != nil {
			return err
		}
	}
	s.count([]parcel{p})
	return s.note(ctx, ledger.OutboxStep{Release: []int64{p.seq}})
}
