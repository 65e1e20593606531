package saasstub

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Extend implements extensions.Extender.
func (b *backend) Extend(ctx context.Context, h extensions.Handle, deadline time.Time) error {
	ref, err := b.ref(ctx, h)
	if err == nil {
		err = b.owned(ctx, h, ref)
	}
	if err == nil {
		err = b.client.Extend(ctx, ref, deadline)
	}
	return failed("extend", h.ID, err)
}

// SetGeneration implements extensions.GenerationSetter.
func (b *backend) SetGeneration(ctx context.Context, h extensions.Handle, generation int64) error {
	ref, err := b.ref(ctx, h)
	if err == nil {
		err = b.owned(ctx, h, ref)
	}
	if err == nil {
		err = b.client.SetLabels(ctx, ref, raise(generation))
	}
	return failed("set-generation", h.ID, err)
}
