package daytona

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/byname"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
)

// WaitReady implements extensions.Backend. It waits for the vendor, gives a new sandbox its size and fills it.
func (b *backend) WaitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (o extensions.Observation, err error) {
	defer tell("wait-ready", h.ID, &err)
	s, err := b.await(ctx, h, b.settled)
	if err == nil {
		err = ready.InTime(ctx, b.resize(ctx, spec, s))
	}
	if err == nil {
		err = b.Furnish(ctx, spec, h)
	}
	if err == nil {
		s, err = b.await(ctx, h, b.runs)
	}
	if err != nil {
		return o, err
	}
	return b.observe(s).Observation, nil
}

// await returns a sandbox once it is as was wanted; one that failed never is.
func (b *backend) await(ctx context.Context, h extensions.Handle, wanted func(*sandbox) bool) (s *sandbox, err error) {
	err = byname.OnItsWay.Until(ctx, func(ctx context.Context) (_ string, err error) {
		var o byname.Told
		if s, o, err = b.Owned(ctx, h); err != nil || wanted(s) {
			return "", err
		}
		if o.Phase == extensions.PhaseFailed || o.Phase == extensions.PhaseExpired {
			return "", extensions.Errorf(extensions.KindFailed, "%s says %s: %s", vendor, o.State, o.Reason).
				WithRemedy("check the image or the snapshot, and the organization's limits")
		}
		return vendor + " says " + o.State, nil
	})
	return s, err
}

// runs reports whether a sandbox has started.
func (b *backend) runs(s *sandbox) bool { return b.observe(s).Phase == extensions.PhaseReady }

// settled reports whether a sandbox is not on its way from one mode to the other.
func (b *backend) settled(s *sandbox) bool { return b.runs(s) || b.rests(s) }
