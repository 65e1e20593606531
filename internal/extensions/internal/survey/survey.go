// Package survey looks at many sandboxes of a vendor, each by its own name.
package survey

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// SideBySide is how many are looked at at once.
const SideBySide = 8

// Each observes handles in their order. What the vendor says is not there, or another one's, is absent; any other
// failure, which look gives the contract's type, is unreachable.
func Each(ctx context.Context, vendor string, handles []extensions.Handle,
	look func(context.Context, extensions.Handle) (extensions.Observation, error)) []extensions.Observation {
	out := make([]extensions.Observation, len(handles))
	var g errgroup.Group
	g.SetLimit(SideBySide)
	for i, h := range handles {
		g.Go(func() error {
			o, err := look(ctx, h)
			switch {
			case err == nil:
			case extensions.IsKind(err, extensions.KindNotFound), extensions.IsKind(err, extensions.KindConflict):
				o = extensions.Observation{ID: h.ID, Handle: h, Phase: extensions.PhaseAbsent}
			default:
				o = extensions.Observation{ID: h.ID, Handle: h, Phase: extensions.PhaseUnreachable, Reason: vendor + " did not tell", Err: err}
			}
			out[i] = o
			return nil
		})
	}
	_ = g.Wait() // no look fails
	return out
}
