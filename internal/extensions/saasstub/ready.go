package saasstub

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
)

const entryRemedy = "an entrypoint must run as long as its sandbox; run what ends at once as a command"

// WaitReady implements extensions.Backend.
func (b *backend) WaitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (extensions.Observation, error) {
	// The vendor decides how long: only the caller's time ends the wait.
	wait := ready.Wait{Interval: 20 * time.Millisecond, Timeout: -1}
	if spec.Readiness != nil && spec.Readiness.Interval > 0 {
		wait.Interval = time.Duration(spec.Readiness.Interval)
	}
	var o extensions.Observation
	err := wait.Until(ctx, func(ctx context.Context) (why string, err error) {
		var done bool
		if o, done, err = b.lookReady(ctx, spec, h); err == nil && !done {
			why = "it is " + string(o.Phase)
		}
		return why, err
	})
	return o, failed("wait-ready", h.ID, err)
}

func (b *backend) lookReady(ctx context.Context, spec extensions.Spec,
	h extensions.Handle) (o extensions.Observation, ready bool, err error) {
	all, err := b.Status(ctx, []extensions.Handle{h})
	if err != nil {
		return o, false, err
	}
	o = all[0]
	switch o.Phase {
	case extensions.PhaseAbsent:
		return o, false, extensions.Errorf(extensions.KindNotFound, "the vendor no longer has this sandbox")
	case extensions.PhaseUnreachable:
		return o, false, o.Err
	case extensions.PhaseTerminated:
		return o, false, extensions.Errorf(extensions.KindFailed, "%s before the sandbox was ready", o.Reason).WithRemedy(entryRemedy)
	case extensions.PhaseExpired, extensions.PhaseFailed:
		if !spec.Entrypoint.Idle() && o.Phase == extensions.PhaseFailed {
			return o, false, extensions.Errorf(extensions.KindFailed, "%s before the sandbox was ready", o.Reason).WithRemedy(entryRemedy)
		}
		return o, false, extensions.Errorf(extensions.KindInternal, "the sandbox is %s: %s", o.Phase, o.Reason).
			WithRemedy("destroy it and create it again")
	case extensions.PhaseProvisioning:
		return o, false, nil
	}
	if spec.Readiness == nil {
		return o, true, nil
	}
	res, err := b.Exec(ctx, h, extensions.ExecRequest{Command: spec.Readiness.Command, Service: spec.Readiness.Service,
		Timeout: time.Duration(spec.Readiness.Timeout)})
	if extensions.IsKind(err, extensions.KindTimeout) && ctx.Err() == nil {
		return o, false, nil // the probe's own limit: the next attempt may succeed
	}
	return o, err == nil && res.ExitCode == 0, err
}
