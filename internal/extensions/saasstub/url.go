package saasstub

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// URL implements extensions.URLGiver.
func (b *backend) URL(ctx context.Context, h extensions.Handle, port int) (extensions.URL, error) {
	u, err := b.url(ctx, h, port)
	return u, failed("url", h.ID, err)
}

func (b *backend) url(ctx context.Context, h extensions.Handle, port int) (extensions.URL, error) {
	ref, err := b.ref(ctx, h)
	if err != nil {
		return extensions.URL{}, err
	}
	if err := b.owned(ctx, h, ref); err != nil {
		return extensions.URL{}, err
	}
	p, err := b.client.Preview(ctx, ref, port)
	if err != nil {
		return extensions.URL{}, err
	}
	return extensions.URL{Address: p.Address, ExpiresAt: p.Until,
		Header: extensions.Header{Name: vendor.PreviewHeader, Value: extensions.NewSecret(p.Token)}}, nil
}
