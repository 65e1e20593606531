package daytona

import (
	"context"
	"net/http"
	"net/url"
	"regexp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

// A snapshot has no labels, so its name says its id and its sandbox's.
var snapshotName = regexp.MustCompile(`^(snp-[a-z2-7]{20})-(sbx-[a-z2-7]{20})$`)

// Snapshot implements extensions.Snapshotter. The vendor takes one of a stopped container, or of a running virtual machine with
// its memory.
func (b *backend) Snapshot(ctx context.Context, h extensions.Handle, spec extensions.SnapshotSpec) (extensions.Snapshot, error) {
	s, err := b.snapshot(ctx, h, spec)
	return s, failed("snapshot", h.ID, err)
}

func (b *backend) snapshot(ctx context.Context, h extensions.Handle, spec extensions.SnapshotSpec) (made extensions.Snapshot, err error) {
	if !extensions.ValidSnapshotID(spec.ID) {
		return made, extensions.Errorf(extensions.KindInvalid, "%q is not a snapshot id", extensions.Clean(spec.ID, 80))
	}
	if err := spec.CheckKind(b.desc.Snapshots); err != nil {
		return made, err
	}
	s, err := b.owned(ctx, h)
	if err != nil {
		return made, err
	}
	name := spec.ID + "-" + string(h.ID)
	_, err = b.kept(ctx, name)
	if extensions.IsKind(err, extensions.KindNotFound) {
		switch {
		case b.vm && b.rests(s):
			return made, extensions.Paused(h.ID)
		case !b.vm:
			s, err = b.pause(ctx, h, s)
			if err == nil && !s.at(api.SandboxStateStopped) {
				err = extensions.Errorf(extensions.KindConflict, "it was moved into an archive, of which %s takes no snapshots", vendor).
					WithRemedy("resume it first")
			}
			if err != nil {
				return made, err
			}
		}
	}
	k, err := b.take(ctx, s, name)
	if err == nil {
		made, _ = b.told(k)
	}
	return made, err
}

// take makes a snapshot under a name, unless it is there, and returns it once it is whole.
func (b *backend) take(ctx context.Context, s *sandbox, name string) (*api.SnapshotDto, error) {
	k, err := b.kept(ctx, name)
	if extensions.IsKind(err, extensions.KindNotFound) {
		_, err = b.act(ctx, http.MethodPost, s.Id, api.CreateSandboxSnapshot{Name: name, IncludeMemory: &b.vm}, "snapshot")
		if extensions.IsKind(err, extensions.KindConflict) { // another process was quicker
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	return k, ready.Wait{Interval: look, Timeout: -1}.Until(ctx, func(ctx context.Context) (string, error) {
		source, gone := b.get(ctx, s.Id) // first: it says that it is done when the snapshot is there
		if k, err = b.kept(ctx, name); err != nil {
			if !extensions.IsKind(err, extensions.KindNotFound) || gone != nil || !source.at(api.SandboxStateSnapshotting) {
				return "", extensions.Errorf(extensions.KindUnavailable, "%s made no snapshot of %s: %w", vendor, s.Id, err).WithRemedy("try again")
			}
			return vendor + " takes it", nil
		}
		switch k.State {
		case api.SnapshotStateActive, api.SnapshotStateInactive:
			return "", nil
		case api.SnapshotStateError, api.SnapshotStateBuildFailed, api.SnapshotStateRemoving:
			_ = b.drop(ctx, name)
			return "", extensions.Errorf(extensions.KindUnavailable, "%s could not keep a snapshot of %s: %s", vendor, s.Id,
				extensions.Clean(value(k.ErrorReason), 400)).WithRemedy("try again")
		}
		return vendor + " says " + string(k.State), nil
	})
}

// kept reads a snapshot by the vendor's id or its name. KindNotFound is the vendor's own word.
func (b *backend) kept(ctx context.Context, name string) (*api.SnapshotDto, error) {
	var k api.SnapshotDto
	_, err := b.control.Do(ctx, rest.Call{Method: http.MethodGet, Path: []string{"snapshots", name}, Out: &k,
		Is: func() bool { return refName.MatchString(k.Id) && (k.Id == name || k.Name == name) }})
	return &k, err
}

// told reads a snapshot of ours.
func (b *backend) told(k *api.SnapshotDto) (s extensions.Snapshot, ok bool) {
	m := snapshotName.FindStringSubmatch(k.Name)
	if m == nil || !refName.MatchString(k.Id) {
		return s, false
	}
	return extensions.Snapshot{SandboxID: extensions.ID(m[2]), Kind: b.desc.Snapshots.Kinds[0], CreatedAt: k.CreatedAt,
		Handle: extensions.SnapshotHandle{Extension: Handler, Version: handleVersion, ID: m[1], Ref: k.Id}}, true
}

// FindSnapshot implements extensions.Snapshotter.
func (b *backend) FindSnapshot(ctx context.Context, id string) (extensions.Snapshot, error) {
	s, err := b.findSnapshot(ctx, id)
	return s, failed("find-snapshot", "", err)
}

func (b *backend) findSnapshot(ctx context.Context, id string) (s extensions.Snapshot, err error) {
	if !extensions.ValidSnapshotID(id) {
		return s, extensions.Errorf(extensions.KindInvalid, "%q is not a snapshot id", extensions.Clean(id, 80))
	}
	var page struct { // an id is in one name
		Items []api.SnapshotDto `json:"items"`
	}
	_, err = b.control.Do(ctx, rest.Call{Method: http.MethodGet, Path: []string{"snapshots"}, Query: url.Values{"name": {id}}, Out: &page,
		Is: func() bool { return page.Items != nil }})
	for _, k := range page.Items {
		if s, ok := b.told(&k); ok && s.Handle.ID == id {
			return s, err
		}
	}
	if err == nil {
		err = extensions.Errorf(extensions.KindIndeterminate, "%s does not list it; one that is being taken can be missing for %s", vendor, taking)
	}
	return s, err
}

// StatSnapshot implements extensions.Snapshotter.
func (b *backend) StatSnapshot(ctx context.Context, h extensions.SnapshotHandle) (extensions.Snapshot, error) {
	_, s, err := b.statSnapshot(ctx, h)
	return s, failed("stat-snapshot", "", err)
}

func (b *backend) statSnapshot(ctx context.Context, h extensions.SnapshotHandle) (k *api.SnapshotDto, s extensions.Snapshot, err error) {
	if h.Extension != Handler || h.Version != handleVersion || !extensions.ValidSnapshotID(h.ID) || !refName.MatchString(h.Ref) {
		return nil, s, extensions.Errorf(extensions.KindInvalid, "this is not the handle of a snapshot of %s", vendor)
	}
	if k, err = b.kept(ctx, h.Ref); err != nil {
		return nil, s, err
	}
	if s, _ = b.told(k); s.Handle.ID != h.ID {
		return nil, s, extensions.Errorf(extensions.KindConflict, "the snapshot %s at %s does not carry this snapshot's id", h.Ref, vendor).
			WithRemedy("check it at %s; sandboxer does not own it", vendor)
	}
	return k, s, nil
}

// DeleteSnapshot implements extensions.Snapshotter.
func (b *backend) DeleteSnapshot(ctx context.Context, h extensions.SnapshotHandle) error {
	_, _, err := b.statSnapshot(ctx, h)
	if err == nil {
		err = b.drop(ctx, h.Ref)
	}
	if extensions.IsKind(err, extensions.KindNotFound) {
		return nil
	}
	return failed("delete-snapshot", "", err)
}

// drop deletes a snapshot, once it has been taken, and waits until it is gone.
func (b *backend) drop(ctx context.Context, name string) error {
	asked := false
	return gone.Soon(ctx, vendor+" still shows the snapshot "+name, func(ctx context.Context) (bool, error) {
		k, err := b.kept(ctx, name)
		if err == nil && !asked && k.State != snapshotting && k.State != api.SnapshotStateRemoving {
			_, err = b.control.Do(ctx, rest.Call{Method: http.MethodDelete, Path: []string{"snapshots", k.Id}})
			asked = err == nil
		}
		if extensions.IsKind(err, extensions.KindNotFound) {
			return true, nil
		}
		return false, err
	})
}

// restored is the snapshot that a sandbox starts from, ready for use.
func (b *backend) restored(ctx context.Context, spec extensions.Spec) (*api.SnapshotDto, error) {
	k, _, err := b.statSnapshot(ctx, spec.FromSnapshot.Handle)
	if err != nil {
		return nil, err
	}
	if r := spec.Resources; !r.BestEffort && (r.CPU != nil && float32(*r.CPU) > k.Cpu*1000 || r.MemoryMB != nil && float32(*r.MemoryMB) > k.Mem*1024 ||
		r.DiskMB != nil && float32(*r.DiskMB) > k.Disk*1024) {
		return nil, extensions.Errorf(extensions.KindUnsupported, "the snapshot sets the size: %v vCPU, %v GiB of memory, %v GiB of disk", k.Cpu, k.Mem,
			k.Disk).At("resources").WithRemedy("ask for no more than that, or set resources.best_effort")
	}
	asked := false
	return k, ready.Wait{Interval: look, Timeout: -1}.Until(ctx, func(ctx context.Context) (_ string, err error) {
		switch {
		case k.State == api.SnapshotStateActive:
			return "", nil
		case k.State == api.SnapshotStateInactive && !asked: // nobody used it for weeks
			_, err = b.control.Do(ctx, rest.Call{Method: http.MethodPost, Path: []string{"snapshots", k.Id, "activate"}})
			asked = err == nil
		case k.State == api.SnapshotStateError, k.State == api.SnapshotStateRemoving:
			return "", extensions.Errorf(extensions.KindNotFound, "%s says that the snapshot %s is in state %s", vendor, k.Id, k.State)
		}
		if err == nil {
			k, err = b.kept(ctx, k.Id)
		}
		return vendor + " prepares the snapshot", err
	})
}
