// Package looks observes sandboxes of a vendor one by one.
package looks

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// AtOnce is how many sandboxes are looked at side by side.
const AtOnce = 8

// Each looks at the sandbox of each handle and keeps their order. A look fails with the vendor's own word: one that is not
// there, or carries another id, is absent; any other failure says nothing about it.
func Each(ctx context.Context, vendor string, handles []extensions.Handle,
	look func(context.Context, extensions.Handle) (extensions.Observation, error)) []extensions.Observation {
	out := make([]extensions.Observation, len(handles))
	var all errgroup.Group
	all.SetLimit(AtOnce)
	for i, h := range handles {
		all.Go(func() error {
			o, err := look(ctx, h)
			switch {
			case err == nil:
			case extensions.IsKind(err, extensions.KindNotFound), extensions.IsKind(err, extensions.KindConflict):
				o = extensions.Observation{ID: h.ID, Handle: h, Phase: extensions.PhaseAbsent}
			default:
				o = extensions.Observation{ID: h.ID, Handle: h, Phase: extensions.PhaseUnreachable, Reason: vendor + " did not answer",
					Err: extensions.Failed("status", h.ID, err, nil)}
			}
			out[i] = o
			return nil
		})
	}
	_ = all.Wait() // no look ends the others
	return out
}
