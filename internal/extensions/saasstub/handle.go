package saasstub

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// handle returns a handle for an object; ref is empty while only the name is known.
func (b *backend) handle(id extensions.ID, ref string) extensions.Handle {
	return extensions.Handle{Extension: b.extension, Version: handleVersion, ID: id, Ref: ref}
}

func (b *backend) check(h extensions.Handle) error {
	return h.Check(b.extension, handleVersion)
}

// ref returns the vendor's own name for a handle's object, looked up by our id if a lost answer left the
// handle without it.
func (b *backend) ref(ctx context.Context, h extensions.Handle) (string, error) {
	if err := b.check(h); err != nil {
		return "", err
	}
	if h.Ref != "" {
		return h.Ref, nil
	}
	found, err := b.Find(ctx, h.ID)
	return found.Ref, err
}
