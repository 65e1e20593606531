package e2b

import (
	"context"
	"regexp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const handleVersion = 1

// refName is the form of the vendor's names. They become parts of host names and paths.
var refName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,127}$`)

// handle points to a sandbox; ref is empty while only our id is known.
func handle(id extensions.ID, ref string) extensions.Handle {
	return extensions.Handle{Extension: Handler, Version: handleVersion, ID: id, Ref: ref}
}

// ref returns the vendor's name for a handle's sandbox, looked up by our id if a lost answer left the handle
// without it.
func (b *backend) ref(ctx context.Context, h extensions.Handle) (string, error) {
	if err := h.CheckRef(Handler, handleVersion, refName); err != nil || h.Ref != "" {
		return h.Ref, err
	}
	found, err := b.find(ctx, h.ID)
	return found.Ref, err
}
