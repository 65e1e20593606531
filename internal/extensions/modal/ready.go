package modal

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
)

// WaitReady implements extensions.Backend. It waits until the sandbox has a task, fills it, and asks the probe until it
// succeeds. Each part can be done again after a failure.
func (b *backend) WaitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (extensions.Observation, error) {
	o, err := b.waitReady(ctx, spec, h)
	return o, failed("wait-ready", h.ID, err)
}

func (b *backend) waitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (o extensions.Observation, err error) {
	s, err := b.owned(ctx, h)
	if err != nil {
		return o, err
	}
	if err := (ready.Wait{Timeout: -1}).Until(ctx, func(ctx context.Context) (string, error) { return b.scheduled(ctx, s.ref) }); err != nil {
		return o, err
	}
	i, err := b.enter(ctx, s)
	if err != nil {
		return o, err
	}
	if err := b.fill(ctx, spec, i); err != nil {
		return o, err
	}
	if err := ready.Of(spec.Readiness).Until(ctx, func(ctx context.Context) (string, error) {
		return ready.Probe(ctx, spec.Readiness, func(ctx context.Context, req extensions.ExecRequest) (extensions.ExecResult, error) {
			return b.exec(ctx, h, req)
		})
	}); err != nil {
		return o, err
	}
	if s, err = b.owned(ctx, h); err != nil {
		return o, err
	}
	return observe(s), nil
}
