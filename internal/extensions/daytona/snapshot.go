package daytona

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/byname"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shelf"
)

// listed shows the snapshots with an id in their name, or the one of a ref.
func (b *backend) listed(ctx context.Context, id, ref string, until func(shelf.Named) bool) error {
	if ref != "" {
		k, err := b.kept(ctx, ref)
		if err == nil {
			until(named(k))
		}
		return err
	}
	type page struct{ Items []api.SnapshotDto } // an id is in one name
	p, _, err := rest.Ask(ctx, b.control, rest.Call{Method: http.MethodGet, Path: []string{"snapshots"}, Query: url.Values{"name": {id}}},
		func(p *page) bool { return p.Items != nil })
	for i := range p.Items {
		if until(named(&p.Items[i])) {
			break
		}
	}
	return err
}

func named(k *api.SnapshotDto) shelf.Named {
	return shelf.Named{Name: k.Name, Ref: k.Id, At: k.CreatedAt}
}

// taking names a sandbox of which a snapshot is being taken. Version 0.190 lists none before it is whole.
func (b *backend) taking(ctx context.Context) (string, error) {
	all, err := b.list(ctx)
	i := slices.IndexFunc(all, func(s *sandbox) bool { return s.at(api.SandboxStateSnapshotting) })
	if i < 0 {
		return "", err
	}
	return all[i].Id, err
}

// taken takes one of a stopped container, or of a running virtual machine with its memory.
func (b *backend) taken(ctx context.Context, h extensions.Handle, spec extensions.SnapshotSpec) (made shelf.Named, err error) {
	s, _, err := b.Owned(ctx, h)
	if err != nil {
		return made, err
	}
	name := spec.ID + "-" + string(h.ID)
	_, err = b.kept(ctx, name)
	switch first := extensions.IsKind(err, extensions.KindNotFound); {
	case first && b.vm && b.rests(s):
		return made, extensions.Paused(h.ID)
	case first && !b.vm:
		if s, err = b.pause(ctx, h); err == nil && !s.at(api.SandboxStateStopped) {
			err = extensions.Errorf(extensions.KindConflict, "it was moved into an archive, where %s takes no snapshots", vendor).
				WithRemedy("resume it first")
		}
	case first:
		err = nil
	}
	if err == nil {
		var k *api.SnapshotDto
		if k, err = b.take(ctx, s, name); err == nil {
			made = named(k)
		}
	}
	return made, err
}

// take makes a snapshot under a name, unless it is there, and returns it once it is whole.
func (b *backend) take(ctx context.Context, s *sandbox, name string) (*api.SnapshotDto, error) {
	k, err := b.kept(ctx, name)
	if extensions.IsKind(err, extensions.KindNotFound) {
		_, err = b.act(ctx, http.MethodPost, s.Id, api.CreateSandboxSnapshot{Name: name, IncludeMemory: &b.vm}, "snapshot")
	}
	if err != nil && !extensions.IsKind(err, extensions.KindConflict) { // another process was quicker
		return nil, err
	}
	err = byname.OnItsWay.Until(ctx, func(ctx context.Context) (string, error) {
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
				extensions.Clean(rest.Value(k.ErrorReason), 400)).WithRemedy("try again")
		}
		return vendor + " says " + string(k.State), nil
	})
	return k, err
}

// kept reads a snapshot by the vendor's id or its name. KindNotFound is the vendor's own word.
func (b *backend) kept(ctx context.Context, name string) (*api.SnapshotDto, error) {
	k, _, err := rest.Ask(ctx, b.control, rest.Call{Method: http.MethodGet, Path: []string{"snapshots", name}},
		func(k *api.SnapshotDto) bool { return refName.MatchString(k.Id) && (k.Id == name || k.Name == name) })
	return k, err
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
	h := spec.FromSnapshot.Handle
	if _, err := b.StatSnapshot(ctx, h); err != nil {
		return nil, err
	}
	var k *api.SnapshotDto
	asked := false
	err := byname.OnItsWay.Until(ctx, func(ctx context.Context) (why string, err error) {
		if k, err = b.kept(ctx, h.Ref); err != nil {
			return "", err
		}
		why = vendor + " says that the snapshot is " + string(k.State)
		switch {
		case k.State == api.SnapshotStateActive:
			return "", nil
		case k.State == api.SnapshotStateInactive && !asked: // nobody used it for weeks
			_, err = b.control.Do(ctx, rest.Call{Method: http.MethodPost, Path: []string{"snapshots", k.Id, "activate"}})
			asked = err == nil
		case k.State == api.SnapshotStateError, k.State == api.SnapshotStateRemoving:
			err = extensions.Errorf(extensions.KindNotFound, "%s", why)
		}
		return why, err
	})
	return k, err
}
