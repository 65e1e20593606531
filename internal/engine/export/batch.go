package export

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// Limits of a batch. A larger event goes alone.
const (
	batchEvents = 100
	batchBytes  = 1 << 20
)

// parcel is an event of the chain and the usage events made from it.
type parcel struct {
	seq    int64
	events [][]byte
}

func (p parcel) size() (n int) {
	for _, e := range p.events {
		n += len(e) + 1
	}
	return n
}

// batch reads what goes next. What was sent and not answered goes again, without others, for which this
// would be the first attempt.
func (s *sender) batch(ctx context.Context, o ledger.Outbox) ([]parcel, error) {
	want := batchEvents
	if o.Attempted > o.Delivered {
		want = int(min(o.Attempted-o.Delivered, batchEvents))
	}
	events, err := s.ledger.Events(ctx, s.stream, o.Delivered+1, want)
	if err != nil {
		return nil, err
	}
	var out []parcel
	count, size := 0, 0
	for _, e := range events {
		p, err := s.parcel(ctx, e)
		if err != nil {
			return nil, err
		}
		count, size = count+len(p.events), size+p.size()
		if len(out) > 0 && (count > batchEvents || size > batchBytes) {
			break
		}
		out = append(out, p)
	}
	return out, nil
}

func (s *sender) parcel(ctx context.Context, e ledger.Event) (parcel, error) {
	p := parcel{seq: e.Seq, events: [][]byte{e.CloudEvent}}
	usage, err := usageEvents(ctx, s.ledger, e)
	p.events = append(p.events, usage...)
	return p, err
}
