package saasstub

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// CanFork implements extensions.Forker.
func (b *backend) CanFork(ctx context.Context, h extensions.Handle) error {
	_, err := b.source(ctx, h)
	return failed("fork", h.ID, err)
}

// source returns the vendor's reference of a live sandbox.
func (b *backend) source(ctx context.Context, h extensions.Handle) (string, error) {
	ref, err := b.ref(ctx, h)
	if err != nil {
		return "", err
	}
	objs, _, err := b.client.Get(ctx, ref)
	switch {
	case err != nil:
		return "", err
	case objs[0] == nil || objs[0].Labels[extensions.LabelID] != string(h.ID):
		return "", extensions.Errorf(extensions.KindNotFound, "the vendor has no sandbox %s", h.ID)
	case !objs[0].Live():
		return "", extensions.Errorf(extensions.KindNotFound, "sandbox %s has ended: %s", h.ID, objs[0].Reason)
	}
	return ref, nil
}

// lacksSource refuses a fork without its source, unless it was made before.
func (b *backend) lacksSource(ctx context.Context, spec extensions.Spec) error {
	if spec.FromSandbox == "" {
		return nil
	}
	_, lost := b.source(ctx, spec.Source)
	if lost == nil {
		return nil
	}
	if made, err := b.client.Find(ctx, string(spec.ID)); err == nil && made != nil && made.State != vendor.StateCreated {
		return nil
	}
	return lost
}
