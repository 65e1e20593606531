package export

import (
	"context"
	"errors"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// single sends the events of a refused parcel one by one. If the receiver still refuses one, it records
// the parcel as held.
func (s *sender) single(ctx context.Context, p parcel, no *refusal, doubt bool) (bool, error) {
	if len(p.events) > 1 {
		var last *refusal
		for _, e := range p.events {
			d, err := s.post(ctx, [][]byte{e})
			if err != nil && !errors.As(err, &last) {
				return true, err // earlier events may have arrived
			}
			doubt, s.took = doubt || d, s.took || err == nil
		}
		if last == nil { // only the batch was too large, which is settled now
			return true, s.taken(ctx, []parcel{p})
		}
		no = last
	}
	s.refused, s.no = append(s.refused, ledger.Withheld{Seq: p.seq, State: ledger.WithheldRejected, Reason: no.reason}), no
	if s.doubt = s.doubt || doubt; !s.took {
		return false, nil
	}
	return true, s.withhold(ctx, p.seq)
}

// taken records what the receiver has, and holds what it refused before: since it takes others, the fault
// lay with those events.
func (s *sender) taken(ctx context.Context, batch []parcel) error {
	s.took = true
	s.count(batch)
	return s.withhold(ctx, batch[len(batch)-1].seq)
}

// withhold records that all events up to delivered arrived, except the refused ones.
func (s *sender) withhold(ctx context.Context, delivered int64) error {
	err := s.note(ctx, ledger.OutboxStep{Withhold: s.refused, Delivered: delivered})
	if err == nil {
		s.refused, s.doubt = nil, false
	}
	return err
}

// refusedAll decides about a batch, up to last, of which nothing was taken.
func (s *sender) refusedAll(ctx context.Context, last int64) error {
	if len(s.refused) == 0 {
		return nil
	}
	if s.held += len(s.refused); s.held < wrongPlace {
		return s.withhold(ctx, last)
	}
	return extensions.Errorf(extensions.KindInvalid, "%s refused all %d events; the last time it %s", s.url, s.held, s.no.reason).
		WithRemedy("check the address; the next run sends them again")
}

func (s *sender) count(batch []parcel) {
	for _, p := range batch {
		s.out.Events++
		s.out.Usage += int64(len(p.events) - 1)
	}
}
