package daytona

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
)

// look is how often a sandbox on its way is looked at.
const look = time.Second

// WaitReady implements extensions.Backend. It waits for the vendor, fills a new sandbox, then asks the probe until it succeeds.
func (b *backend) WaitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (o extensions.Observation, err error) {
	defer tell("wait-ready", h.ID, &err)
	if err := b.started(ctx, h); err != nil {
		return o, err
	}
	if err := b.Ready(ctx, spec, h, workDirOf(spec), func(ctx context.Context) error { return b.desktop(ctx, h) }); err != nil {
		return o, err
	}
	s, err := b.all.Owned(ctx, h)
	if err != nil {
		return o, err
	}
	if o = b.observe(h.ID, s); o.Phase != extensions.PhaseReady {
		return o, extensions.Errorf(extensions.KindFailed, "%s says %s: %s", vendor, s.state(), o.Reason)
	}
	return o, nil
}

// started waits until the vendor has started a sandbox.
func (b *backend) started(ctx context.Context, h extensions.Handle) error {
	return ready.Wait{Interval: look, Timeout: -1}.Until(ctx, func(ctx context.Context) (string, error) {
		s, err := b.all.Owned(ctx, h)
		if err != nil {
			return "", err
		}
		switch o := b.observe(h.ID, s); o.Phase {
		case extensions.PhaseReady:
			return "", nil
		case extensions.PhaseProvisioning, extensions.PhaseUnreachable:
			return vendor + " says " + string(s.state()), nil
		default:
			return "", extensions.Errorf(extensions.KindFailed, "%s did not start it: %s", vendor, o.Reason).
				WithRemedy("look at the image or the snapshot, and at the organization's limits")
		}
	})
}
