package command

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Extend implements extensions.Extender.
func (b *backend) Extend(ctx context.Context, h extensions.Handle, deadline time.Time) error {
	return failed("extend", h.ID, b.extend(ctx, h, deadline))
}

func (b *backend) extend(ctx context.Context, h extensions.Handle, deadline time.Time) error {
	h, _, err := b.whole(ctx, h)
	if err != nil {
		return err
	}
	a, err := b.call(ctx, request{Verb: verbExtend, ID: h.ID, Ref: h.Ref, Deadline: at(deadline)})
	if err != nil {
		return err
	}
	s, err := one(b, verbExtend, a, h.ID)
	if err != nil {
		return err
	}
	if s.Deadline.Before(deadline) {
		return lost(verbExtend, unknown("the deadline is %s, and %s was asked for", s.Deadline.UTC().Format(time.RFC3339Nano),
			deadline.UTC().Format(time.RFC3339Nano)), "")
	}
	return nil
}
