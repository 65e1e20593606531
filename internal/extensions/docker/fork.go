package docker

import (
	"context"

	"github.com/moby/moby/api/types/container"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// CanFork implements extensions.Forker.
func (b *Backend) CanFork(ctx context.Context, h extensions.Handle) error {
	found, _, err := b.live(ctx, h)
	if err == nil && found.agent().State == container.StateRunning {
		err = b.engine.canFreeze(ctx)
	}
	if err == nil && found.account != b.settings.account {
		err = extensions.Errorf(extensions.KindConflict, "%s belongs to the account %q", h.ID, extensions.Clean(found.account, 80))
	}
	return failed("fork", h.ID, err)
}

// fork copies the source under the name of the sandbox that is made, which so owns all that a death leaves.
func (m *making) fork(ctx context.Context) error {
	spec := m.plan.spec
	if spec.FromSandbox == "" {
		return nil
	}
	if err := m.copyOut(ctx, spec.Source, copying{key: string(spec.ID), name: spec.Name, kind: extensions.SnapshotFilesystem}); err != nil {
		return err
	}
	k, err := m.kept(ctx, string(spec.ID))
	if err != nil {
		return err
	}
	return m.takeOver(k)
}
