package daytona

import (
	"context"
	"regexp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const handleVersion = 1

// refName is the form of the vendor's names. They become parts of paths.
var refName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,127}$`)

// handle points to a sandbox; ref is empty while only our id, its name, is known.
func handle(id extensions.ID, ref string) extensions.Handle {
	return extensions.Handle{Extension: Handler, Version: handleVersion, ID: id, Ref: ref}
}

func checkHandle(h extensions.Handle) error {
	if h.Ref != "" && !refName.MatchString(h.Ref) {
		return extensions.Errorf(extensions.KindInvalid, "%q is not a sandbox of %s", extensions.Clean(h.Ref, 80), vendor)
	}
	return h.Check(Handler, handleVersion)
}

// owned reads the sandbox of a handle and refuses one that carries another id or account.
func (b *backend) owned(ctx context.Context, h extensions.Handle) (*sandbox, error) {
	if err := checkHandle(h); err != nil {
		return nil, err
	}
	name := h.Ref
	if name == "" {
		name = string(h.ID)
	}
	s, err := b.get(ctx, name)
	if err != nil {
		return nil, err
	}
	if id, ok := b.ours(s); !ok || id != h.ID {
		return nil, extensions.Errorf(extensions.KindConflict, "the sandbox %s at %s does not carry this sandbox's id and account", name, vendor).
			WithRemedy("check it at %s; sandboxer does not own it", vendor)
	}
	return s, nil
}
