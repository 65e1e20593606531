package saasstub

import (
	"context"
	"io"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// Snapshot implements extensions.Snapshotter.
func (b *backend) Snapshot(ctx context.Context, h extensions.Handle, spec extensions.SnapshotSpec) (extensions.Snapshot, error) {
	fail := func(err error) (extensions.Snapshot, error) {
		return extensions.Snapshot{}, failed("snapshot", h.ID, err)
	}
	if !extensions.ValidSnapshotID(spec.ID) {
		return fail(extensions.Errorf(extensions.KindInvalid, "%q is not a snapshot ID", spec.ID))
	}
	if err := spec.CheckKind(b.desc.Snapshots); err != nil {
		return fail(err)
	}
	ref, err := b.ref(ctx, h)
	if err == nil {
		err = b.owned(ctx, h, ref)
	}
	if err != nil {
		return fail(err)
	}
	s, err := b.client.TakeSnapshot(ctx, ref, spec.ID)
	if err != nil {
		return fail(err)
	}
	if s.Of != string(h.ID) {
		return fail(extensions.Errorf(extensions.KindConflict, "snapshot %s is of sandbox %s", spec.ID, s.Of))
	}
	return b.snapshot(s), nil
}

func (b *backend) snapshot(s vendor.Snapshot) extensions.Snapshot {
	return extensions.Snapshot{
		Handle:    extensions.SnapshotHandle{Extension: b.extension, Version: handleVersion, ID: s.Name, Ref: s.Ref},
		SandboxID: extensions.ID(s.Of), Kind: extensions.SnapshotMetadata, SizeBytes: s.Size, Digest: s.Digest, CreatedAt: s.CreatedAt,
	}
}

// FindSnapshot implements extensions.Snapshotter.
func (b *backend) FindSnapshot(ctx context.Context, id string) (extensions.Snapshot, error) {
	var err error
	var s *vendor.Snapshot
	if !extensions.ValidSnapshotID(id) {
		err = extensions.Errorf(extensions.KindInvalid, "%q is not a snapshot ID", id)
	} else {
		s, err = b.client.FindSnapshot(ctx, id)
	}
	if err == nil && s == nil {
		kind := extensions.KindNotFound
		if b.desc.Snapshots.Find.Strength != extensions.FindStrong {
			kind = extensions.KindIndeterminate
		}
		err = extensions.Errorf(kind, "the vendor does not show snapshot %s", id)
	}
	if err != nil {
		return extensions.Snapshot{}, failed("find-snapshot", "", err)
	}
	return b.snapshot(*s), nil
}

// StatSnapshot implements extensions.Snapshotter.
func (b *backend) StatSnapshot(ctx context.Context, h extensions.SnapshotHandle) (extensions.Snapshot, error) {
	s, err := b.lookSnapshot(ctx, h)
	if err == nil && s == nil {
		err = extensions.Errorf(extensions.KindNotFound, "the vendor has no snapshot %s", h.ID)
	}
	if err != nil {
		return extensions.Snapshot{}, failed("stat-snapshot", "", err)
	}
	return b.snapshot(*s), nil
}

// lookSnapshot returns nil for a missing snapshot and refuses one that carries another id.
func (b *backend) lookSnapshot(ctx context.Context, h extensions.SnapshotHandle) (*vendor.Snapshot, error) {
	if h.Extension != b.extension || h.Version != handleVersion || !extensions.ValidSnapshotID(h.ID) {
		return nil, extensions.Errorf(extensions.KindInvalid, "this is not a snapshot handle of %s", b.extension)
	}
	s, err := b.client.GetSnapshot(ctx, h.Ref)
	if err != nil || s == nil {
		return nil, err
	}
	if s.Name != h.ID {
		return nil, extensions.Errorf(extensions.KindConflict, "the vendor's snapshot %s does not carry the id %s", h.Ref, h.ID)
	}
	return s, nil
}

// ReadSnapshot implements extensions.SnapshotReader: the archive as it is kept.
func (b *backend) ReadSnapshot(ctx context.Context, h extensions.SnapshotHandle, w io.Writer) error {
	s, err := b.lookSnapshot(ctx, h)
	if err == nil && s == nil {
		err = extensions.Errorf(extensions.KindNotFound, "the vendor has no snapshot %s", h.ID)
	}
	if err == nil {
		err = b.client.ReadSnapshot(ctx, h.Ref, w)
	}
	return failed("read-snapshot", "", err)
}

// DeleteSnapshot implements extensions.Snapshotter.
func (b *backend) DeleteSnapshot(ctx context.Context, h extensions.SnapshotHandle) error {
	s, err := b.lookSnapshot(ctx, h)
	if err == nil && s != nil {
		err = b.client.DeleteSnapshot(ctx, h.Ref)
	}
	if hasCode(err, vendor.CodeNotFound) {
		return nil
	}
	return failed("delete-snapshot", "", err)
}
