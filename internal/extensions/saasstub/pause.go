package saasstub

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Pause implements extensions.Pauser.
func (b *backend) Pause(ctx context.Context, h extensions.Handle) (extensions.Observation, error) {
	return b.setMode(ctx, "pause", h, b.client.Pause)
}

// Resume implements extensions.Pauser.
func (b *backend) Resume(ctx context.Context, h extensions.Handle, deadline time.Time) (extensions.Observation, error) {
	return b.setMode(ctx, "resume", h, func(ctx context.Context, ref string) error { return b.client.Resume(ctx, ref, deadline) })
}

func (b *backend) setMode(ctx context.Context, op string, h extensions.Handle,
	set func(context.Context, string) error) (o extensions.Observation, err error) {
	ref, err := b.ref(ctx, h)
	if err == nil {
		err = b.owned(ctx, h, ref)
	}
	if err == nil {
		err = set(ctx, ref)
	}
	if err != nil {
		return o, failed(op, h.ID, err)
	}
	all, err := b.Status(ctx, []extensions.Handle{h})
	if err == nil {
		o, err = all[0], all[0].Err
	}
	return o, failed(op, h.ID, err)
}
