package composessh

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Find implements extensions.Backend. It looks at the folder and at Docker's
// labels; absent means that both were asked and neither has it.
func (b *Backend) Find(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
	h, err := b.find(ctx, id)
	return h, failed("find", id, err)
}

func (b *Backend) find(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
	if _, err := extensions.ParseID(string(id)); err != nil {
		return extensions.Handle{}, err
	}
	a, err := b.call(ctx, operation{id: id, files: findFiles})
	if err != nil {
		return extensions.Handle{}, err
	}
	if !a.Found {
		return extensions.Handle{}, extensions.Errorf(extensions.KindNotFound, "%s is not on the host %s", id, b.host.Name)
	}
	return b.handle(id), nil
}

// findFiles are what the operation find is put together from.
var findFiles = []string{"lease", "look", "find"}
