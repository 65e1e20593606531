package local

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// used counts the sandboxes here, of all accounts, whose init lives, except one.
func (s settings) used(but extensions.ID) (n int64, err error) {
	ids, err := s.ids()
	if err != nil {
		return 0, err
	}
	for _, id := range ids {
		rec, err := s.box(id).read()
		if err != nil || id == but || !rec.Init.alive() {
			continue
		}
		n++
	}
	return n, nil
}

func (s settings) checkRoom(id extensions.ID) error {
	if s.max == 0 {
		return nil
	}
	n, err := s.used(id)
	if err != nil {
		return err
	}
	if n >= s.max {
		return extensions.Errorf(extensions.KindExhausted, "%d sandboxes run here, and the limit is %d", n, s.max).
			WithRemedy("destroy one, or raise max_sandboxes")
	}
	return nil
}

// Capacity implements extensions.CapacityReader.
func (b *Backend) Capacity(ctx context.Context) (extensions.Capacity, error) {
	if err := ctx.Err(); err != nil {
		return extensions.Capacity{}, failed("capacity", "", err)
	}
	n, err := b.settings.used("")
	if err != nil {
		return extensions.Capacity{}, failed("capacity", "", err)
	}
	c := extensions.Capacity{Used: &n, ObservedAt: time.Now().UTC(), SharedByOthers: true}
	if b.settings.max > 0 {
		c.Max = &b.settings.max
	}
	c.FreeMemoryMB = freeMemoryMB()
	return c, nil
}

// Usage implements extensions.UsageReader: wall-clock time from the record.
func (b *Backend) Usage(ctx context.Context, h extensions.Handle) (extensions.Usage, error) {
	if err := ctx.Err(); err != nil {
		return extensions.Usage{}, failed("usage", h.ID, err)
	}
	o := b.status(h)
	var paused time.Duration
	if bx, err := b.settings.resolve(h); err == nil {
		paused = bx.paused(o)
	}
	switch {
	case o.Phase == extensions.PhaseAbsent:
		return extensions.Usage{}, failed("usage", h.ID, extensions.Errorf(extensions.KindNotFound, "%s does not exist", h.ID))
	case o.Err != nil:
		return extensions.Usage{}, failed("usage", h.ID, o.Err)
	}
	u := extensions.Usage{StartedAt: o.StartedAt, EndedAt: o.EndedAt}
	until := o.EndedAt
	if until.IsZero() {
		until = time.Now()
	}
	if !u.StartedAt.IsZero() {
		u.Running, u.Paused = max(until.Sub(u.StartedAt)-paused, 0), paused
	}
	return u, nil
}
