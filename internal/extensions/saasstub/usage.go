package saasstub

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// Usage implements extensions.UsageReader.
func (b *backend) Usage(ctx context.Context, h extensions.Handle) (extensions.Usage, error) {
	ref, err := b.ref(ctx, h)
	if err != nil {
		return extensions.Usage{}, failed("usage", h.ID, err)
	}
	obj, now, err := b.client.Usage(ctx, ref)
	if err == nil && obj.Labels[extensions.LabelID] != string(h.ID) {
		err = extensions.Errorf(extensions.KindConflict, "the vendor's object %s does not carry this sandbox's id", ref)
	}
	if err != nil {
		return extensions.Usage{}, failed("usage", h.ID, err)
	}
	return measure(obj, now), nil
}

// measure reads the meter: wall clock from the start of billing to the end, without pauses, the memory rented over that time, the time
// commands were interpreted as active CPU, and the bytes sent.
func measure(o vendor.Object, now time.Time) extensions.Usage {
	from, until := o.Metered(now)
	paused := o.Paused(until)
	running := until.Sub(from) - paused
	cpu, memory, egress := time.Duration(o.Busy).Milliseconds(), o.MemoryMB*running.Milliseconds(), o.Sent
	return extensions.Usage{StartedAt: from, EndedAt: o.EndedAt, Running: running, Paused: paused,
		CPUMillis: &cpu, MemoryMiBMillis: &memory, EgressBytes: &egress}
}

// Estimate implements extensions.Estimator: the memory rented over d. What commands will do is unknown.
func (b *backend) Estimate(ctx context.Context, spec extensions.Spec, d time.Duration) (extensions.Usage, error) {
	if err := ctx.Err(); err != nil {
		return extensions.Usage{}, failed("estimate", spec.ID, err)
	}
	if d < 0 {
		return extensions.Usage{}, failed("estimate", spec.ID, extensions.Errorf(extensions.KindInvalid, "the duration %s is negative", d))
	}
	memory := int64(512)
	if spec.Resources.MemoryMB != nil {
		memory = *spec.Resources.MemoryMB
	}
	memory *= d.Milliseconds()
	return extensions.Usage{Running: d, MemoryMiBMillis: &memory}, nil
}

// Capacity implements extensions.CapacityReader.
func (b *backend) Capacity(ctx context.Context) (extensions.Capacity, error) {
	used, limit, now, err := b.client.Capacity(ctx)
	if err != nil {
		return extensions.Capacity{}, failed("capacity", "", err)
	}
	return extensions.Capacity{Used: &used, Max: &limit, ObservedAt: now, SharedByOthers: true}, nil
}
