package modal

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/byname"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
)

// WaitReady implements extensions.Backend. It waits until the sandbox has a task, ends it if that runs elsewhere than was
// asked for, fills it, and asks the probe until it succeeds. Each part can be done again after a failure.
func (b *backend) WaitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (o extensions.Observation, err error) {
	defer named("wait-ready", h.ID, &err)
	s, _, err := b.Owned(ctx, h)
	if err != nil {
		return o, err
	}
	if err := byname.OnItsWay.Until(ctx, func(ctx context.Context) (string, error) {
		task, err := b.taskOf(ctx, s.ref)
		if err == nil && task == "" {
			return "it waits for a machine", nil
		}
		return "", err
	}); err != nil {
		return o, err
	}
	if err := b.checkPlace(ctx, spec.Region, h); err != nil {
		return o, err
	}
	if err := b.Furnish(ctx, spec, h); err != nil {
		return o, err
	}
	return b.Runs(ctx, h)
}

// checkPlace reads where a sandbox runs, which the vendor says inside alone, in a variable that no image can set.
func (b *backend) checkPlace(ctx context.Context, region string, h extensions.Handle) error {
	if region == "" {
		return nil
	}
	i, err := b.inside(ctx, h)
	if err != nil {
		return err
	}
	says, _, err := execwire.Transport(i.run).Output(ctx, "/bin/sh", "-c", `printf %s "$MODAL_REGION"`)
	if err != nil {
		return err
	}
	if err := placed(says, region); err != nil {
		return b.Reject(ctx, h, err)
	}
	return nil
}
