package saasstub

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// WaitReady implements extensions.Backend.
func (b *backend) WaitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (extensions.Reachability, error) {
	const interval = 20 * time.Millisecond
	pause := interval
	if spec.Readiness != nil && spec.Readiness.Interval > 0 {
		pause = time.Duration(spec.Readiness.Interval)
	}
	for {
		reach, ready, err := b.lookReady(ctx, spec, h)
		if err != nil || ready {
			return reach, failed("wait-ready", h.ID, err)
		}
		select {
		case <-ctx.Done():
			return reach, failed("wait-ready", h.ID, ctx.Err())
		case <-time.After(pause):
		}
	}
}

func (b *backend) lookReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (r extensions.Reachability, ready bool, err error) {
	all, err := b.Status(ctx, []extensions.Handle{h})
	if err != nil {
		return r, false, err
	}
	o := all[0]
	switch o.Phase {
	case extensions.PhaseAbsent:
		return r, false, extensions.Errorf(extensions.KindNotFound, "the vendor has no such sandbox any more")
	case extensions.PhaseUnreachable:
		return r, false, o.Err
	case extensions.PhaseExpired, extensions.PhaseFailed:
		return r, false, extensions.Errorf(extensions.KindInternal, "the sandbox is %s: %s", o.Phase, o.Reason).
			WithRemedy("destroy it and create it again")
	case extensions.PhaseProvisioning:
		return r, false, nil
	}
	if spec.Readiness == nil {
		return o.Reachability, true, nil
	}
	res, err := b.Exec(ctx, h, extensions.ExecRequest{Command: spec.Readiness.Command, Service: spec.Readiness.Service,
		Timeout: time.Duration(spec.Readiness.Timeout)})
	if extensions.IsKind(err, extensions.KindTimeout) && ctx.Err() == nil {
		return r, false, nil // the probe's own limit: the next one may succeed
	}
	return o.Reachability, err == nil && res.ExitCode == 0, err
}
