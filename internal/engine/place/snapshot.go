package place

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Snapshot keeps a checkpoint of the sandbox id.
func (b *Backend) Snapshot(ctx context.Context, h extensions.Handle, spec extensions.SnapshotSpec) (made extensions.Snapshot, err error) {
	x, err := power[extensions.Snapshotter](b, extensions.PowerSnapshot)
	if err != nil {
		return made, err
	}
	err = b.call(ctx, call{op: "snapshot", id: h.ID, timeout: timeoutProvision}, func(ctx context.Context) (err error) {
		made, err = x.Snapshot(ctx, h, spec)
		return err
	})
	return made, err
}

// FindSnapshot looks a snapshot up by id alone.
func (b *Backend) FindSnapshot(ctx context.Context, id string) (extensions.SnapshotHandle, error) {
	x, err := power[extensions.Snapshotter](b, extensions.PowerSnapshot)
	if err != nil {
		return extensions.SnapshotHandle{}, err
	}
	var s extensions.Snapshot
	err = b.call(ctx, call{op: "find-snapshot", timeout: timeoutLook}, func(ctx context.Context) (err error) {
		s, err = x.FindSnapshot(ctx, id)
		return err
	})
	return s.Handle, err
}

// StatSnapshot observes one snapshot.
func (b *Backend) StatSnapshot(ctx context.Context, h extensions.SnapshotHandle) (s extensions.Snapshot, err error) {
	x, err := power[extensions.Snapshotter](b, extensions.PowerSnapshot)
	if err != nil {
		return s, err
	}
	err = b.call(ctx, call{op: "stat-snapshot", timeout: timeoutLook}, func(ctx context.Context) (err error) {
		s, err = x.StatSnapshot(ctx, h)
		return err
	})
	return s, err
}

// RemoveSnapshot deletes a snapshot, which is found by id where no handle is
// known. What is gone already is success.
func (b *Backend) RemoveSnapshot(ctx context.Context, id string, h extensions.SnapshotHandle) error {
	x, err := power[extensions.Snapshotter](b, extensions.PowerSnapshot)
	if err == nil && h.ID == "" {
		h, err = b.FindSnapshot(ctx, id)
	}
	if err == nil {
		err = b.call(ctx, call{op: "delete-snapshot", timeout: timeoutChange}, func(ctx context.Context) error { return x.DeleteSnapshot(ctx, h) })
	}
	if extensions.IsKind(err, extensions.KindNotFound) {
		return nil
	}
	return err
}
