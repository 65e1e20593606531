package daytona

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/internal/api"
)

// CanFork implements extensions.Forker.
func (b *backend) CanFork(ctx context.Context, h extensions.Handle) (err error) {
	defer tell("fork", h.ID, &err)
	_, err = b.source(ctx, h)
	return err
}

func (b *backend) source(ctx context.Context, h extensions.Handle) (*sandbox, error) {
	s, _, err := b.Owned(ctx, h)
	switch {
	case err == nil && b.rests(s):
		err = extensions.Paused(h.ID)
	case err == nil && !b.runs(s):
		err = extensions.Errorf(extensions.KindUnavailable, "it cannot be forked now: %s says %s", vendor, s.state()).WithRemedy("try again")
	}
	return s, err
}

func forkName(id extensions.ID) string { return "fork-" + string(id) }

// keepFork keeps the state of a fork's source in a snapshot, whose name says the fork's id. The vendor's own fork would have the
// source's labels and no deadline until it is told others, and its source could not be deleted before it. So this snapshot goes
// with the fork instead.
func (b *backend) keepFork(ctx context.Context, spec extensions.Spec) (*api.SnapshotDto, error) {
	select { // one at a time, as the vendor takes no two of one source
	case b.forking <- struct{}{}:
		defer func() { <-b.forking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	name := forkName(spec.ID)
	if k, err := b.kept(ctx, name); err == nil && k.State == api.SnapshotStateActive {
		return k, nil // an earlier call was cut off
	}
	s, err := b.source(ctx, spec.Source)
	if err != nil {
		return nil, err
	}
	return b.take(ctx, s, name)
}
