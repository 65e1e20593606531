package modal

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
)

// WaitReady implements extensions.Backend. It waits until the sandbox has a task, fills it, and asks the probe until it
// succeeds. Each part can be done again after a failure.
func (b *backend) WaitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (o extensions.Observation, err error) {
	defer named("wait-ready", h.ID, &err)
	s, err := b.owned(ctx, h)
	if err != nil {
		return o, err
	}
	if err := (ready.Wait{Timeout: -1}).Until(ctx, func(ctx context.Context) (string, error) {
		task, err := b.taskOf(ctx, s.ref)
		if err == nil && task == "" {
			return "it waits for a machine", nil
		}
		return "", err
	}); err != nil {
		return o, err
	}
	i, err := b.inside(ctx, h)
	if err != nil {
		return o, err
	}
	if err := b.filled.Fill(ctx, i.ref, workDirOf(spec), spec, i.shell()); err != nil {
		return o, err
	}
	if err := ready.Answered(ctx, spec.Readiness, func(ctx context.Context, req extensions.ExecRequest) (extensions.ExecResult, error) {
		return b.exec(ctx, h, req)
	}); err != nil {
		return o, err
	}
	if s, err = b.owned(ctx, h); err != nil {
		return o, err
	}
	return observe(s), nil
}
