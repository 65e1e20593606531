package vercel

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Usage implements extensions.UsageReader. What a live one has used of CPU and network is not told before it stops.
func (b *backend) Usage(ctx context.Context, h extensions.Handle) (extensions.Usage, error) {
	w, err := b.owned(ctx, h)
	if err != nil {
		return extensions.Usage{}, failed("usage", h.ID, err)
	}
	return usageOf(w), nil
}

// usageOf is the vendor's meter. Its traffic counts in both directions, as it is billed.
func usageOf(w *whole) extensions.Usage {
	u := extensions.Usage{StartedAt: at(w.Session.StartedAt)}
	if u.StartedAt.IsZero() { // it never began
		return u
	}
	if !over(w) {
		u.Running = max(0, w.heard.Sub(u.StartedAt))
		return u
	}
	if u.EndedAt = ended(w.Session); u.EndedAt.IsZero() {
		return u
	}
	u.Running = max(0, u.EndedAt.Sub(u.StartedAt))
	memory := int64(w.Session.Memory) * u.Running.Milliseconds()
	u.CPUMillis, u.EgressBytes = whole64(w.Sandbox.CPUMillis), whole64(w.Sandbox.EgressBytes, w.Sandbox.IngressBytes)
	u.MemoryMiBMillis = &memory
	return u
}

// whole64 is a sum of quantities; nil if one was not told.
func whole64(all ...*float64) *int64 {
	sum := int64(0)
	for _, f := range all {
		if f == nil || *f < 0 || *f > 1<<60 {
			return nil
		}
		sum += int64(*f)
	}
	return &sum
}
