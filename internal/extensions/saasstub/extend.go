package saasstub

import (
	"context"
	"strconv"
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
		err = b.client.SetLabel(ctx, ref, extensions.LabelGeneration, strconv.FormatInt(generation, 10), func(present string) error {
			if have, perr := strconv.ParseInt(present, 10, 64); perr == nil && have >= generation {
				return extensions.Errorf(extensions.KindConflict, "the sandbox has generation %d already, wanted is %d", have, generation)
			}
			return nil
		})
	}
	return failed("set-generation", h.ID, err)
}
