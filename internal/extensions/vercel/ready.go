package vercel

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
)

// WaitReady implements extensions.Backend. It waits for the microVM, fills it, then asks the probe until it succeeds.
// Each part can be done again after a failure.
func (b *backend) WaitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (o extensions.Observation, err error) {
	defer named("wait-ready", h.ID, &err)
	if err := (ready.Wait{Timeout: -1}).Until(ctx, func(ctx context.Context) (string, error) {
		w, err := b.owned(ctx, h)
		if err != nil {
			return "", err
		}
		switch w.Session.Status {
		case pending, snapshotting:
			return vendor + " says " + w.Session.Status, nil
		case running:
			return "", nil
		}
		return "", extensions.Errorf(extensions.KindFailed, "the sandbox did not start: %s says %s", vendor,
			extensions.Clean(w.Session.Status, 40))
	}); err != nil {
		return o, err
	}
	i, err := b.enter(ctx, h)
	if err != nil {
		return o, err
	}
	if err := b.filled.Fill(ctx, i.w.Session.ID, i.dir, spec, i.calls()); err != nil {
		return o, ready.InTime(ctx, err)
	}
	if err := ready.Answered(ctx, spec.Readiness, func(ctx context.Context, req extensions.ExecRequest) (extensions.ExecResult, error) {
		return b.Exec(ctx, h, req)
	}); err != nil {
		return o, err
	}
	w, err := b.runs(ctx, h)
	if err != nil {
		return o, err
	}
	return b.observe(h.ID, w), nil
}
