package openshell

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/byname"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
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
	if err := b.guarded(ctx, policyOf(spec), h); err != nil {
		if extensions.IsKind(err, extensions.KindUnsupported) { // the profile was promised its policy
			err = b.Reject(ctx, h, err)
		}
		return o, err
	}
	if err := b.Furnish(ctx, spec, h); err != nil {
		return o, err
	}
	return b.Runs(ctx, h)
}

// guarded waits until a policy is in force. KindUnsupported: it will not be.
func (b *backend) guarded(ctx context.Context, want *gateway.SandboxPolicy, h extensions.Handle) error {
	return byname.OnItsWay.Until(ctx, func(ctx context.Context) (string, error) {
		s, _, err := b.Owned(ctx, h)
		if err != nil {
			return "", err
		}
		return b.enforced(ctx, want, s)
	})
}
