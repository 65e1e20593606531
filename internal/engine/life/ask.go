package life

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// foretell asks the places of a decision that estimate, side by side, what they expect. Each has a few seconds. One
// that does not answer, or that nobody configured, which is not asked, says why.
func (m *Manager) foretell(ctx context.Context, d *plan.Decision) []plan.Foretold {
	ask := slices.DeleteFunc(slices.Clone(d.Choice.Order), func(c *route.Candidate) bool {
		return !slices.Contains(c.Powers, extensions.PowerEstimate)
	})
	out := make([]plan.Foretold, len(ask))
	var asked errgroup.Group
	asked.SetLimit(measureAtOnce)
	for i, c := range ask {
		asked.Go(func() error {
			if seen := d.Evidence.At[c.ID()]; seen.Unconfigured || len(seen.Missing) > 0 {
				out[i] = d.Foretold(c, extensions.Usage{}, extensions.Errorf(extensions.KindUnauthorized, "not asked, because it is not "+
					"configured"))
				return nil
			}
			spec := d.SpecOn(c)
			spec.Account = m.account
			u, err := m.places.Estimate(ctx, m.placeOfCandidate(c), spec, d.Duration(c))
			out[i] = d.Foretold(c, u, err)
			return nil
		})
	}
	_ = asked.Wait() // each error is told by its place
	return out
}
