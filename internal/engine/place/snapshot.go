package place

import (
	"context"
	"io"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/flight"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Snapshot keeps a checkpoint of a sandbox. It asks again after a lost answer: what a place has made may be known to it by nothing but
// the key of the request.
func (b *Backend) Snapshot(ctx context.Context, h extensions.Handle, spec extensions.SnapshotSpec) (made extensions.Snapshot, err error) {
	x, err := power[extensions.Snapshotter](b, extensions.PowerSnapshot)
	if err != nil {
		return made, err
	}
	c := call{op: "snapshot", id: h.ID, timeout: timeoutProvision, patience: patienceChange, repeatable: true}
	err = b.call(ctx, c, func(ctx context.Context) (err error) {
		made, err = x.Snapshot(ctx, h, spec)
		return err
	})
	return made, err
}

// FindSnapshot looks up a snapshot by id alone.
func (b *Backend) FindSnapshot(ctx context.Context, id string) (extensions.SnapshotHandle, error) {
	x, err := power[extensions.Snapshotter](b, extensions.PowerSnapshot)
	if err != nil {
		return extensions.SnapshotHandle{}, err
	}
	var s extensions.Snapshot
	err = b.call(ctx, call{op: "find-snapshot", timeout: timeoutLook, patience: patienceLook}, func(ctx context.Context) (err error) {
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
	err = b.call(ctx, call{op: "stat-snapshot", timeout: timeoutLook, patience: patienceLook}, func(ctx context.Context) (err error) {
		s, err = x.StatSnapshot(ctx, h)
		return err
	})
	return s, err
}

// ReadSnapshot writes the stream of a snapshot to w, once.
func (b *Backend) ReadSnapshot(ctx context.Context, h extensions.SnapshotHandle, w io.Writer) error {
	x, err := power[extensions.SnapshotReader](b, extensions.PowerReadSnapshot)
	if err != nil {
		return err
	}
	return b.call(ctx, call{op: "read-snapshot", timeout: timeoutProvision},
		func(ctx context.Context) error { return x.ReadSnapshot(ctx, h, w) })
}

// FindSnapshotSettled looks up a snapshot by ID, repeatedly while the place is busy with one, and until its look-ups must show it:
// what ended between the place's list and its word that it is not busy is in a later list.
func (b *Backend) FindSnapshotSettled(ctx context.Context, id string) (extensions.SnapshotHandle, error) {
	find, start := b.Binding.Descriptor.Snapshots.Find, time.Now()
	idle := start // since when the place is not known to be busy
	for {
		h, err := b.FindSnapshot(ctx, id)
		if pause := busy(err); pause > 0 && time.Since(start) < busyLimit && flight.Sleep(ctx, pause) == nil {
			idle = time.Now()
			continue
		}
		switch {
		case find.Strength != extensions.FindEventual || !extensions.IsKind(err, extensions.KindIndeterminate):
			return h, err
		case time.Since(idle) >= find.Settle:
			return h, b.unlessStranger("find-snapshot", "", extensions.Errorf(extensions.KindNotFound, "not found within %s", find.Settle))
		case flight.Sleep(ctx, find.Settle/8) != nil:
			return h, err
		}
	}
}

// RemoveSnapshot deletes a snapshot, found by ID if it has no handle. An absent one is success.
func (b *Backend) RemoveSnapshot(ctx context.Context, id string, h extensions.SnapshotHandle) error {
	x, err := power[extensions.Snapshotter](b, extensions.PowerSnapshot)
	if err == nil && h.ID == "" {
		h, err = b.FindSnapshotSettled(ctx, id)
	}
	if err == nil && b.stranger { // one that is not seen first is not gone
		_, err = b.StatSnapshot(ctx, h)
	}
	if err == nil {
		err = b.call(ctx, call{op: "delete-snapshot", timeout: timeoutChange, patience: patienceChange},
			func(ctx context.Context) error { return x.DeleteSnapshot(ctx, h) })
	}
	if extensions.IsKind(err, extensions.KindNotFound) {
		return nil
	}
	return err
}
