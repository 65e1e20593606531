package e2b

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
)

// WaitReady implements extensions.Backend. It fills a new sandbox, then asks the probe until it succeeds. Each
// part can be done again after a failure.
func (b *backend) WaitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (extensions.Observation, error) {
	o, err := b.waitReady(ctx, spec, h)
	return o, failed("wait-ready", h.ID, err)
}

func (b *backend) waitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (o extensions.Observation, err error) {
	e, err := b.enter(ctx, h)
	if err != nil {
		return o, err
	}
	if err := b.filled.Fill(ctx, e.detail.SandboxID, workDirOf(spec), spec, e); err != nil {
		return o, err
	}
	if err := ready.Answered(ctx, spec.Readiness, func(ctx context.Context, req extensions.ExecRequest) (extensions.ExecResult, error) {
		return b.exec(ctx, h, req)
	}); err != nil {
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
