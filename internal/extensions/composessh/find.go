package composessh

import (
	"context"
	"time"

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
	if a.Busy != "" {
		e := extensions.Errorf(extensions.KindConflict, "%s is being worked on: %s runs on the host", id, extensions.Clean(a.Busy, 40))
		e.RetryAfter = busyPause
		return extensions.Handle{}, e.WithRemedy("wait until it has ended")
	}
	return b.handle(id), nil
}

// busyPause is when to look again after an operation that is under way.
const busyPause = time.Second

// findFiles are what the operation find is put together from.
var findFiles = []string{"find"}
