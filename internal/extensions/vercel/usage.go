package vercel

import (
	"context"
	"time"

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
	until := w.heard
	if over(w) {
		u.EndedAt = ended(w.Session)
		until = u.EndedAt
	}
	u.Running = max(0, until.Sub(u.StartedAt))
	if over(w) && !u.EndedAt.IsZero() {
		s := w.Sandbox
		u.CPUMillis = whole64(s.CPUMillis)
		if s.EgressBytes != nil && s.IngressBytes != nil {
			sum := *s.EgressBytes + *s.IngressBytes
			u.EgressBytes = whole64(&sum)
		}
		memory := int64(w.Session.Memory) * u.Running.Milliseconds()
		u.MemoryMiBMillis = &memory
	}
	return u
}

func whole64(f *float64) *int64 {
	if f == nil || *f < 0 || *f > float64(time.Duration(1<<62)) {
		return nil
	}
	n := int64(*f)
	return &n
}
