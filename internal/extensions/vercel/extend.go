package vercel

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/deadline"
)

// Extend implements extensions.Extender. The vendor adds to what is left, so the difference is sent, once: whoever comes
// again after a lost answer reads first, and finds nothing to add.
func (b *backend) Extend(ctx context.Context, h extensions.Handle, to time.Time) (err error) {
	defer named("extend", h.ID, &err)
	done, err := b.alone(ctx, h.Ref)
	if err != nil {
		return err
	}
	defer done()
	var w *whole
	err = changed.Soon(ctx, vendor+" has not begun "+h.Ref, func(ctx context.Context) (bool, error) {
		w, err = b.runs(ctx, h)
		if extensions.IsKind(err, extensions.KindUnavailable) { // its deadline is not known before it has begun
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return err
	}
	now := b.observe(h.ID, w)
	// The vendor's clock tells what is left, this one what shall be. The first is known to a second and taken for the least, as
	// no sandbox may end before its time; the plan, which counts exactly, must not be exceeded by that second.
	left, want := b.api.Until(now.Deadline)-time.Second, time.Until(to)
	if left-want > 2*time.Second {
		return extensions.Errorf(extensions.KindUnsupported, "%s can only move a deadline later; it is %s", vendor,
			now.Deadline.Format(time.RFC3339)).At("ttl").WithRemedy("destroy it at the earlier time")
	}
	more, room := deadline.Up(want-left, time.Millisecond), b.plan.longest.Milliseconds()-int64(w.Session.Timeout)
	if more > room+time.Second.Milliseconds() {
		return b.tooLong()
	}
	if more = min(more, room); more <= 0 {
		return nil
	}
	if _, err := b.api.Do(ctx, b.into(w.Session.ID, map[string]int64{"duration": more}, "extend-timeout")); err != nil {
		return err
	}
	if w, err = b.runs(ctx, h); err != nil {
		return err
	}
	if short := time.Until(to) - b.api.Until(b.observe(h.ID, w).Deadline); short > time.Second {
		return extensions.Errorf(extensions.KindUnsupported, "%s ends it %s before the deadline", vendor, short.Round(time.Second)).
			WithRemedy("shorten ttl: the plan limits how long a sandbox runs")
	}
	return nil
}
