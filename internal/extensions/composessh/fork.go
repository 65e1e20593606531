package composessh

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
)

// CanFork implements extensions.Forker. A fork is a snapshot of the other sandbox that the create itself takes
// and uses up: see origin_fork in sh/restore.sh.
func (b *Backend) CanFork(ctx context.Context, h extensions.Handle) error {
	return failed("fork", h.ID, b.canFork(ctx, h))
}

func (b *Backend) canFork(ctx context.Context, h extensions.Handle) error {
	_, err := b.forkable(ctx, h)
	return err
}

func (b *Backend) forkable(ctx context.Context, h extensions.Handle) (answer, error) {
	at, err := b.resolve(h)
	if err != nil {
		return answer{}, err
	}
	return b.call(ctx, operation{id: at.id, files: canForkFiles, vars: map[string]string{"root": at.root}})
}

// canForkFiles make up the question whether a sandbox can be forked.
var canForkFiles = []string{"lease", "look", "toolbox", "take", "hold", "canfork"}

// stackOf gives the spec of a fork the files that its source's stack was made of. They come from beside the source's
// workspace, which those inside may have changed since.
func (b *Backend) stackOf(ctx context.Context, spec *extensions.Spec) error {
	a, err := b.forkable(ctx, spec.Source)
	if extensions.IsKind(err, extensions.KindNotFound) { // history, if the fork exists
		if own, again := b.forkable(ctx, b.handle(spec.ID)); again == nil {
			a, err = own, nil
		}
	}
	switch {
	case err != nil:
		return err
	case spec.Source.ID != spec.FromSandbox:
		return extensions.Errorf(extensions.KindInvalid, "the handle of %s is that of %s", spec.FromSandbox, spec.Source.ID).At("from_sandbox")
	case len(a.Stack) > 0:
		spec.Workspace.Source = compose.Indexed(a.Stack)
	}
	return nil
}
