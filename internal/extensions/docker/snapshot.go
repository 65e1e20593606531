package docker

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// Snapshot implements extensions.Snapshotter: as images of the engine, under a name that no registry can have.
func (b *Backend) Snapshot(ctx context.Context, h extensions.Handle, spec extensions.SnapshotSpec) (extensions.Snapshot, error) {
	s, err := b.snapshot(ctx, h, spec)
	return s, failed("snapshot", h.ID, sent(err))
}

func (b *Backend) snapshot(ctx context.Context, h extensions.Handle, spec extensions.SnapshotSpec) (none extensions.Snapshot, err error) {
	declared := extension{}.Describe().Snapshots
	if err := spec.CheckKind(declared); err != nil {
		return none, err
	}
	if spec.Kind == "" {
		spec.Kind = declared.Kinds[0]
	}
	k, err := b.snapshotOf(ctx, spec.ID)
	if err != nil {
		return none, err
	}
	s, whole := k.snapshot()
	switch {
	case whole && s.SandboxID != h.ID:
		return none, extensions.Errorf(extensions.KindConflict, "%s is a snapshot of %s", spec.ID, s.SandboxID)
	case !whole:
		if err := b.discard(ctx, k); err != nil {
			return none, err
		}
		if err := b.copyOut(ctx, h, copying{key: spec.ID, name: spec.Name, kind: spec.Kind, live: spec.Live}); err != nil {
			return none, err
		}
	}
	return b.statSnapshot(ctx, spec.ID)
}

// snapshotOf lists what there is of a snapshot of this account.
func (b *Backend) snapshotOf(ctx context.Context, id string) (kept, error) {
	if !extensions.ValidSnapshotID(id) {
		return kept{}, extensions.Errorf(extensions.KindInvalid, "%q is not a snapshot ID", extensions.Clean(id, 60))
	}
	k, err := b.kept(ctx, id)
	if err != nil {
		return k, err
	}
	if account, ok := k.account(); ok && account != b.settings.account {
		return k, extensions.Errorf(extensions.KindConflict, "the snapshot %s belongs to the account %q", id, extensions.Clean(account, 80))
	}
	return k, nil
}

// FindSnapshot implements extensions.Snapshotter. It finds what a killed one left, too.
func (b *Backend) FindSnapshot(ctx context.Context, id string) (extensions.Snapshot, error) {
	s, err := b.findSnapshot(ctx, id)
	return s, failed("find snapshot", "", err)
}

func (b *Backend) findSnapshot(ctx context.Context, id string) (extensions.Snapshot, error) {
	k, err := b.snapshotOf(ctx, id)
	if err != nil {
		return extensions.Snapshot{}, err
	}
	s, whole := k.snapshot()
	switch {
	case k.none():
		return s, extensions.Errorf(extensions.KindNotFound, "the snapshot %s is not on the Docker engine at %s", id, b.engine.where)
	case !whole:
		s = extensions.Snapshot{SandboxID: k.source(), Handle: k.handle(id)}
	}
	s.Handle.Data, err = b.engine.mark(ctx)
	return s, err
}

// StatSnapshot implements extensions.Snapshotter.
func (b *Backend) StatSnapshot(ctx context.Context, h extensions.SnapshotHandle) (extensions.Snapshot, error) {
	k, err := b.resolveSnapshot(ctx, h)
	if err != nil {
		return extensions.Snapshot{}, failed("stat snapshot", "", err)
	}
	s, err := b.statSnapshot(ctx, k.key)
	return s, failed("stat snapshot", "", err)
}

func (b *Backend) statSnapshot(ctx context.Context, id string) (extensions.Snapshot, error) {
	s, err := b.findSnapshot(ctx, id)
	if err == nil && s.Kind == "" {
		err = extensions.Errorf(extensions.KindNotFound, "the snapshot %s was never finished", id).WithRemedy("delete it and take another one")
	}
	return s, err
}

// resolveSnapshot checks that h is a handle of this extension and this engine, and that what it points to is
// that snapshot.
func (b *Backend) resolveSnapshot(ctx context.Context, h extensions.SnapshotHandle) (kept, error) {
	if h.Extension != Handler || h.Version < 1 || h.Version > handleVersion {
		return kept{}, extensions.Errorf(extensions.KindInvalid, "this version does not read this snapshot handle of %s", Handler)
	}
	if err := b.engine.check(ctx, h.Data, "the snapshot "+extensions.Clean(h.ID, 60),
		"use the engine that keeps it (DOCKER_HOST, config.endpoint)"); err != nil {
		return kept{}, err
	}
	k, err := b.snapshotOf(ctx, h.ID)
	if err != nil || !strings.HasPrefix(h.Ref, "sha256:") {
		return k, err
	}
	if s, whole := k.snapshot(); whole && s.Handle.Ref == h.Ref {
		return k, nil
	}
	r, err := b.engine.ImageInspect(ctx, h.Ref)
	if errdefs.IsNotFound(err) {
		return k, nil
	}
	if err == nil && slices.ContainsFunc(r.RepoTags, func(name string) bool { return strings.Contains(name, tagWhole) }) {
		err = extensions.Errorf(extensions.KindConflict, "the image of the snapshot %s has the name of another one", h.ID)
	}
	return k, err
}

// DeleteSnapshot implements extensions.Snapshotter. A sandbox that was restored from it keeps its images.
func (b *Backend) DeleteSnapshot(ctx context.Context, h extensions.SnapshotHandle) error {
	k, err := b.resolveSnapshot(ctx, h)
	if err == nil {
		err = b.discard(ctx, k)
	}
	return failed("delete snapshot", "", sent(err))
}

// discard removes a copy, complete or not, and lets its source run on.
func (b *Backend) discard(ctx context.Context, k kept) error {
	if k.none() {
		return nil
	}
	if err := b.thaw(ctx, k.source(), k.key); err != nil {
		return err
	}
	r, err := b.engine.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: having(labelCopy + "=" + k.key)})
	if err != nil {
		return err
	}
	for _, c := range r.Items {
		if !strings.HasPrefix(nameOf(c), k.key+".") {
			continue
		}
		err := b.engine.discard(ctx, c.ID)
		if err != nil && !errdefs.IsNotFound(err) && !errdefs.IsConflict(err) {
			return err
		}
	}
	return b.dropCopy(ctx, k, nil)
}

// ReadSnapshot implements extensions.SnapshotReader.
func (b *Backend) ReadSnapshot(ctx context.Context, h extensions.SnapshotHandle, w io.Writer) error {
	k, err := b.resolveSnapshot(ctx, h)
	if err == nil {
		labels := map[string]string{labelHandler: Handler, labelCopy: k.key, extensions.LabelAccount: b.settings.account}
		err = b.readSnapshot(ctx, k, k.key+".read-"+execwire.NewNonce(), labels, w)
	}
	return failed("read snapshot", "", err)
}

// readSnapshot reads by a container with a name and labels. The end is an error if the bytes were not the
// snapshot's.
func (b *Backend) readSnapshot(ctx context.Context, k kept, name string, labels map[string]string, w io.Writer) error {
	s, err := b.statSnapshot(ctx, k.key)
	if err != nil {
		return err
	}
	if s.Kind != extensions.SnapshotWorkspace {
		return extensions.Errorf(extensions.KindUnsupported, "a snapshot of kind %s cannot leave its engine", s.Kind).
			WithRemedy("take one of kind %s", extensions.SnapshotWorkspace)
	}
	return b.retrieve(ctx, s.Handle.Ref, name, labels, func(r io.Reader) error {
		hex, _ := extensions.HexOfDigest(s.Digest)
		_, err := io.Copy(w, tarstream.VerifyReader(r, hex))
		return err
	})
}
