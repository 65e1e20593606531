package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// timeoutRoom bounds how long a create waits to be told how full a place is.
const timeoutRoom = 3 * time.Second

// askRoom asks a place, once for a request, how many sandboxes it takes and how
// many are there, if it can tell. What it does not tell in time stays unknown,
// which is not unlimited: the create itself finds out. It reports whether there
// is a limit to judge by.
func (e *Engine) askRoom(ctx context.Context, p *prepared, c *route.Candidate) bool {
	b, ok := e.catalog.Binding(c.Binding)
	if _, asked := p.told[c.ID()]; asked || !ok || !b.Descriptor.Has(extensions.PowerCapacity) {
		return false
	}
	told, err := e.capacity(ctx, e.placeOfCandidate(c))
	if err != nil {
		e.log.Info("how full a place is is not known", slog.String("place", c.ID()), slog.Any("error", err))
	}
	if p.told == nil {
		p.told = map[string]extensions.Capacity{}
	}
	p.told[c.ID()] = told
	return told.Max != nil
}

// capacity is what a place says of its room; numbers that make no sense are none.
func (e *Engine) capacity(ctx context.Context, at place) (told extensions.Capacity, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeoutRoom)
	defer cancel()
	b, err := e.backend(ctx, at)
	if err != nil {
		return told, err
	}
	r, err := power[extensions.CapacityReader](e, b, extensions.PowerCapacity)
	if err != nil {
		return told, err
	}
	err = e.invoke(ctx, call{op: "capacity", binding: at.binding, timeout: timeoutRoom, once: true}, func(ctx context.Context) (err error) {
		told, err = r.Capacity(ctx)
		return err
	})
	if err != nil || told.Max != nil && *told.Max < 0 || told.Used != nil && *told.Used < 0 {
		return extensions.Capacity{}, err
	}
	return told, nil
}
