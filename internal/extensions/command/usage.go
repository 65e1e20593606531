package command

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Usage implements extensions.UsageReader.
func (b *backend) Usage(ctx context.Context, h extensions.Handle) (extensions.Usage, error) {
	u, err := b.usage(ctx, h)
	return u, failed("usage", h.ID, err)
}

func (b *backend) usage(ctx context.Context, h extensions.Handle) (u extensions.Usage, err error) {
	h, _, err = b.whole(ctx, h)
	if err != nil {
		return u, err
	}
	a, err := b.call(ctx, request{Verb: verbUsage, ID: h.ID, Ref: h.Ref})
	if err != nil {
		return u, err
	}
	return *a.Usage.measured(), nil
}
