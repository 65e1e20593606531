package export

import (
	"context"
	"errors"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// single holds a parcel of which something was refused; the rest of it is sent.
func (s *sender) single(ctx context.Context, p parcel, no *refusal, doubt bool) (bool, error) {
	if len(p.events) > 1 {
		var last *refusal
		for _, e := range p.events {
			d, err := s.post(ctx, [][]byte{e})
			if err != nil && !errors.As(err, &last) {
				return true, err // what came before it may have arrived
			}
			doubt, s.took = doubt || d, s.took || err == nil
		}
		if last == nil { // too many at once, and that was all
			return true, s.taken(ctx, []parcel{p})
		}
		no = last
	}
	s.refused, s.no = append(s.refused, ledger.Held{Seq: p.seq, State: ledger.HeldRejected, Reason: no.reason}), no
	if s.doubt = s.doubt || doubt; !s.took {
		return false, nil
	}
	return true, s.hold(ctx, p.seq)
}

// taken notes what the receiver has, and what it refused before that: as it
// takes others, the fault was theirs.
func (s *sender) taken(ctx context.Context, batch []parcel) error {
	s.took = true
	s.count(batch)
	return s.hold(ctx, batch[len(batch)-1].seq)
}

// hold notes that all up to an event is delivered, but for what was refused.
func (s *sender) hold(ctx context.Context, delivered int64) error {
	err := s.note(ctx, ledger.OutboxStep{Hold: s.refused, Delivered: delivered})
	if err == nil {
		s.refused, s.doubt = nil, false
	}
	return err
}

// refusedAll decides about a batch up to last of which nothing was taken.
func (s *sender) refusedAll(ctx context.Context, last int64) error {
	if len(s.refused) == 0 {
		return nil
	}
	if s.held += len(s.refused); s.held < wrongPlace {
		return s.hold(ctx, last)
	}
	return extensions.Errorf(extensions.KindInvalid, "%s has refused %d events and taken none; the last time it %s", s.url, s.held, s.no.reason).
		WithRemedy("check the address; the next run sends them again")
}

func (s *sender) count(batch []parcel) {
	for _, p := range batch {
		s.out.Events++
		s.out.Usage += int64(len(p.events) - 1)
	}
}
