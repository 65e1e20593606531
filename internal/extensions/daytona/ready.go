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
// Each part can be done again after a failure.
func (b *backend) WaitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (extensions.Observation, error) {
	o, err := b.waitReady(ctx, spec, h)
	return o, failed("wait-ready", h.ID, err)
}

func (b *backend) waitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (o extensions.Observation, err error) {
	if err := b.started(ctx, h); err != nil {
		return o, err
	}
	t, err := b.enter(ctx, h)
	if err != nil {
		return o, err
	}
	if err := b.filled.Fill(ctx, t.sandbox.Id, workDirOf(spec), spec, t.inside()); err != nil {
		return o, err
	}
	if err := t.desktop(ctx); err != nil {
		return o, err
	}
	if err := ready.Answered(ctx, spec.Readiness, func(ctx context.Context, req extensions.ExecRequest) (extensions.ExecResult, error) {
		return b.exec(ctx, h, req)
	}); err != nil {
		return o, err
	}
	s, err := b.owned(ctx, h)
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
		s, err := b.owned(ctx, h)
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
