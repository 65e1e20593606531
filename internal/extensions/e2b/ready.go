package e2b

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/api"
)

// WaitReady implements extensions.Backend. It fills a new sandbox, then asks the probe until it succeeds. Each
// part can be done again after a failure.
func (b *backend) WaitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (extensions.Observation, error) {
	o, err := b.waitReady(ctx, spec, h)
	return o, failed("wait-ready", h.ID, err)
}

func (b *backend) waitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (o extensions.Observation, err error) {
	if err := b.Furnish(ctx, spec, h); err != nil {
		return o, err
	}
	d, err := b.owned(ctx, h)
	if err != nil {
		return o, err
	}
	if d.State == api.Paused {
		return o, extensions.Paused(h.ID)
	}
	return b.observe(h.ID, d), nil
}
