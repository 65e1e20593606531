package openshell

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
)

// look is how often a sandbox on its way is looked at.
const look = time.Second

// WaitReady implements extensions.Backend. It waits for the gateway and until the profile's policy is in force, fills a new
// sandbox, then asks the probe until it succeeds. Each part can be done again after a failure.
func (b *backend) WaitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (extensions.Observation, error) {
	o, err := b.waitReady(ctx, spec, h)
	return o, failed("wait-ready", h.ID, err)
}

func (b *backend) waitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (o extensions.Observation, err error) {
	if err := b.started(ctx, h); err != nil {
		return o, err
	}
	if err := b.guarded(ctx, spec, h); err != nil {
		return o, err
	}
	i, err := b.inside(ctx, h)
	if err != nil {
		return o, err
	}
	if err := i.fill(ctx, spec); err != nil {
		return o, err
	}
	if err := ready.Of(spec.Readiness).Until(ctx, func(ctx context.Context) (string, error) {
		return ready.Probe(ctx, spec.Readiness, func(ctx context.Context, req extensions.ExecRequest) (extensions.ExecResult, error) {
			return b.exec(ctx, h, req)
		})
	}); err != nil {
		return o, err
	}
	s, err := b.owned(ctx, h)
	if err != nil {
		return o, err
	}
	if o = b.observe(h.ID, s); o.Phase != extensions.PhaseReady {
		return o, extensions.Errorf(extensions.KindFailed, "it does not run any more: %s", o.Reason)
	}
	return o, nil
}

// started waits until the gateway has started a sandbox.
func (b *backend) started(ctx context.Context, h extensions.Handle) error {
	return ready.Wait{Interval: look, Timeout: -1}.Until(ctx, func(ctx context.Context) (string, error) {
		s, err := b.owned(ctx, h)
		if err != nil {
			return "", err
		}
		switch o := b.observe(h.ID, s); o.Phase {
		case extensions.PhaseReady:
			return "", nil
		case extensions.PhaseProvisioning, extensions.PhaseUnreachable:
			return vendor + " says " + phaseOf(s), nil
		default:
			return "", extensions.Errorf(extensions.KindFailed, "%s did not start it: %s", vendor, o.Reason).
				WithRemedy("look at the image, whether it has each path of the policy and its user, and at the gateway's log")
		}
	})
}

// guarded waits until the profile's policy is in force. A sandbox that will not have it ends: the profile was promised that.
func (b *backend) guarded(ctx context.Context, spec extensions.Spec, h extensions.Handle) error {
	err := ready.Wait{Interval: look, Timeout: -1}.Until(ctx, func(ctx context.Context) (string, error) {
		s, err := b.owned(ctx, h)
		if err != nil {
			return "", err
		}
		return b.enforced(ctx, spec, s)
	})
	if !extensions.IsKind(err, extensions.KindUnsupported) {
		return err
	}
	if _, left := b.teardown(context.WithoutCancel(ctx), h); left != nil {
		return extensions.Errorf(extensions.KindUnsupported, "%w; it was not ended: %w", err, left)
	}
	return err
}
