package place

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// timeoutTell limits what a place only informs about: nothing waits for it that matters more.
const timeoutTell = 10 * time.Second

// Usage reads the place's own meter of a sandbox, once.
func (b *Backend) Usage(ctx context.Context, h extensions.Handle) (u extensions.Usage, err error) {
	x, err := power[extensions.UsageReader](b, extensions.PowerUsage)
	if err != nil {
		return u, err
	}
	err = b.call(ctx, call{op: "usage", id: h.ID, timeout: timeoutTell}, func(ctx context.Context) (err error) {
		u, err = x.Usage(ctx, h)
		return err
	})
	return u, err
}

// Measure opens a place and reads its meter of a sandbox, once. It is KindUnsupported if the place has none.
func (p *Places) Measure(ctx context.Context, at Address, h extensions.Handle) (u extensions.Usage, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeoutTell)
	defer cancel()
	b, err := p.Open(ctx, at)
	if err != nil {
		return u, err
	}
	return b.Usage(ctx, h)
}

// Estimate asks a place once for its expected usage of a sandbox in the given time.
func (p *Places) Estimate(ctx context.Context, at Address, spec extensions.Spec, d time.Duration) (u extensions.Usage, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeoutTell)
	defer cancel()
	b, err := p.Open(ctx, at)
	if err != nil {
		return u, err
	}
	x, err := power[extensions.Estimator](b, extensions.PowerEstimate)
	if err != nil {
		return u, err
	}
	err = b.call(ctx, call{op: "estimate", timeout: timeoutTell, secrets: spec.Secrets}, func(ctx context.Context) (err error) {
		u, err = x.Estimate(ctx, spec, d)
		return err
	})
	return u, err
}
