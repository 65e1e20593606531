package openshell

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/byname"
)

// WaitReady implements extensions.Backend. It waits for the gateway and until the profile's policy is in force, fills a new
// sandbox, then asks the probe until it succeeds. Each part can be done again after a failure.
func (b *backend) WaitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (extensions.Observation, error) {
	o, err := b.waitReady(ctx, spec, h)
	return o, extensions.Failed("wait-ready", h.ID, err, nil)
}

func (b *backend) waitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (o extensions.Observation, err error) {
	const remedy = "check that the image has the policy's user and each of its paths; then see the gateway's log"
	if err := b.Started(ctx, h, remedy); err != nil {
		return o, err
	}
	if err := b.guarded(ctx, spec, h); err != nil {
		return o, err
	}
	if err := b.Furnish(ctx, spec, h); err != nil {
		return o, err
	}
	return b.Runs(ctx, h)
}

// guarded waits until the profile's policy is in force. A sandbox that will not have it ends: the profile was promised that.
func (b *backend) guarded(ctx context.Context, spec extensions.Spec, h extensions.Handle) error {
	err := byname.OnItsWay.Until(ctx, func(ctx context.Context) (string, error) {
		s, _, err := b.Owned(ctx, h)
		if err != nil {
			return "", err
		}
		return b.enforced(ctx, spec, s)
	})
	if extensions.IsKind(err, extensions.KindUnsupported) {
		return b.Reject(ctx, h, err)
	}
	return err
}
