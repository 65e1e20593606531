package engine

import (
	"context"
	"log/slog"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// askRoom asks a place, once for a request, how many sandboxes it takes and how
// many are there, if it can tell. What it does not tell in time stays unknown,
// which is not unlimited: the create itself finds out. It reports whether there
// is a limit to judge by.
func (e *Engine) askRoom(ctx context.Context, p *prepared, c *route.Candidate) bool {
	b, ok := e.catalog.Binding(c.Binding)
	if _, asked := p.told[c.ID()]; asked || !ok || !b.Descriptor.Has(extensions.PowerCapacity) {
		return false
	}
	told, err := e.places.Capacity(ctx, e.placeOfCandidate(c))
	if err != nil {
		e.log.Info("how full a place is is not known", slog.String("place", c.ID()), slog.Any("error", err))
	}
	if p.told == nil {
		p.told = map[string]extensions.Capacity{}
	}
	p.told[c.ID()] = told
	return told.Max != nil
}
