package life

import (
	"context"
	"errors"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Prepared says where a request's images are ready now.
type Prepared struct {
	Profile         string // with its version
	Extension, Host string // the place; a name
	Images          bool   // false: there was nothing to prepare
}

// Prepare pulls and builds the images of a request at the place that a create would try first, then at the next
// ones as a create would. It makes no sandbox and records nothing.
func (m *Manager) Prepare(ctx context.Context, req plan.Request, notify notice.Notify) (Prepared, error) {
	d, err := m.decide(ctx, req, purpose{create: true})
	if err != nil {
		return Prepared{}, err
	}
	c := &creation{m: m, decision: d}
	defer c.sources.close()
	if err := c.openSources(ctx, notify); err != nil {
		return Prepared{}, err
	}
	ctx = extensions.WithProgress(ctx, progress(notify, m.places.Clock))
	var failures []error
	for _, offer := range d.Offers {
		done, err := c.prepareAt(ctx, offer)
		if err == nil {
			return Prepared{d.Resolved.ID + "@" + d.Resolved.Version, offer.Binding, offer.HostName(), done}, nil
		}
		if failures = append(failures, err); !notHere(err) && !extensions.IsKind(err, extensions.KindUnreachable) || ctx.Err() != nil {
			break
		}
		notify.Tell("Trying the next place", "%s: %s", offer.ID(), reasonOf(err))
	}
	return Prepared{}, errors.Join(failures...)
}

// prepareAt prepares at one place; false if it has nothing to prepare.
func (c *creation) prepareAt(ctx context.Context, offer *plan.Offer) (bool, error) {
	if verdict := c.checked[offer]; verdict != nil {
		return false, verdict
	}
	b, err := c.m.places.Open(ctx, c.m.placeOfCandidate(offer.Candidate))
	if err != nil {
		return false, err
	}
	spec := c.sources.into(offer.Spec)
	spec.Account, spec.Registries = c.m.account, c.m.places.Registries(b.Binding)
	if spec.Image == nil && spec.Containers == nil && spec.Compose == nil || !b.Binding.Descriptor.Has(extensions.PowerPrepareImage) {
		return false, nil
	}
	return true, c.prepareImage(ctx, b, spec)
}
