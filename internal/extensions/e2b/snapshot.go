package e2b

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

// A snapshot has no labels, so its name says its id and its sandbox's.
var (
	snapshotRef  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:-]{0,255}$`)
	snapshotName = regexp.MustCompile(`(?:^|/)(snp-[a-z2-7]{20})-(sbx-[a-z2-7]{20})(?::[^/]*)?$`)
)

// Snapshot implements extensions.Snapshotter.
func (b *backend) Snapshot(ctx context.Context, h extensions.Handle, spec extensions.SnapshotSpec) (extensions.Snapshot, error) {
	s, err := b.snapshot(ctx, h, spec)
	return s, failed("snapshot", h.ID, err)
}

func (b *backend) snapshot(ctx context.Context, h extensions.Handle, spec extensions.SnapshotSpec) (extensions.Snapshot, error) {
	if !extensions.ValidSnapshotID(spec.ID) {
		return extensions.Snapshot{}, extensions.Errorf(extensions.KindInvalid, "%q is not a snapshot id", extensions.Clean(spec.ID, 80))
	}
	if err := spec.CheckKind(b.desc.Snapshots); err != nil {
		return extensions.Snapshot{}, err
	}
	d, err := b.owned(ctx, h)
	if err != nil {
		return extensions.Snapshot{}, err
	}
	if d.State == api.Paused {
		return extensions.Snapshot{}, extensions.Paused(h.ID)
	}
	s, err := b.findSnapshot(ctx, spec.ID)
	if extensions.IsKind(err, extensions.KindIndeterminate) { // not listed
		name := spec.ID + "-" + string(h.ID)
		var made api.SnapshotInfo
		_, err = b.act(ctx, http.MethodPost, d.SandboxID, "snapshots", api.SandboxSnapshotRequest{Name: &name}, &made,
			func() bool { _, ok := told(made); return ok })
		s, _ = told(made)
	}
	s.CreatedAt = spec.CreatedAt
	return s, err
}

// told reads a snapshot of ours.
func told(i api.SnapshotInfo) (s extensions.Snapshot, ok bool) {
	for _, name := range append([]string{i.SnapshotID}, i.Names...) {
		if m := snapshotName.FindStringSubmatch(name); m != nil && snapshotRef.MatchString(i.SnapshotID) {
			return extensions.Snapshot{SandboxID: extensions.ID(m[2]), Kind: extensions.SnapshotMemory, Handle: extensions.SnapshotHandle{
				Extension: Handler, Version: handleVersion, ID: m[1], Ref: i.SnapshotID}}, true
		}
	}
	return s, false
}

// FindSnapshot implements extensions.Snapshotter.
func (b *backend) FindSnapshot(ctx context.Context, id string) (extensions.Snapshot, error) {
	s, err := b.findSnapshot(ctx, id)
	return s, failed("find-snapshot", "", err)
}

func (b *backend) findSnapshot(ctx context.Context, id string) (found extensions.Snapshot, err error) {
	if !extensions.ValidSnapshotID(id) {
		return found, extensions.Errorf(extensions.KindInvalid, "%q is not a snapshot id", extensions.Clean(id, 80))
	}
	err = b.snapshots(ctx, url.Values{}, func(i api.SnapshotInfo) bool {
		s, ok := told(i)
		if ok = ok && s.Handle.ID == id; ok {
			found = s
		}
		return ok
	})
	if err == nil && found.Handle.ID == "" {
		err = extensions.Errorf(extensions.KindIndeterminate, "%s does not list it; a new snapshot can be missing for %s", vendor, settle)
	}
	return found, err
}

// snapshots shows the team's snapshots to until, page by page, until it is true.
func (b *backend) snapshots(ctx context.Context, query url.Values, until func(api.SnapshotInfo) bool) error {
	query.Set("limit", "100")
	return rest.Pages(vendor, func(token string) (string, error) {
		if token != "" {
			query.Set("nextToken", token)
		}
		var page []api.SnapshotInfo
		a, err := b.control.Do(ctx, rest.Call{Method: http.MethodGet, Path: []string{"snapshots"}, Query: query, Out: &page})
		if err != nil {
			return "", err
		}
		for _, i := range page {
			if until(i) {
				return "", nil
			}
		}
		return a.Header.Get("X-Next-Token"), nil
	})
}

// StatSnapshot implements extensions.Snapshotter.
func (b *backend) StatSnapshot(ctx context.Context, h extensions.SnapshotHandle) (extensions.Snapshot, error) {
	s, err := b.statSnapshot(ctx, h)
	return s, failed("stat-snapshot", "", err)
}

func (b *backend) statSnapshot(ctx context.Context, h extensions.SnapshotHandle) (found extensions.Snapshot, err error) {
	if err := h.Check(Handler, handleVersion); err != nil {
		return found, err
	}
	if !snapshotRef.MatchString(h.Ref) {
		return found, extensions.Errorf(extensions.KindInvalid, "%q is no snapshot of %s", extensions.Clean(h.Ref, 80), vendor)
	}
	name, _, _ := strings.Cut(h.Ref, ":")
	err = b.snapshots(ctx, url.Values{"name": {name}}, func(i api.SnapshotInfo) bool {
		s, ok := told(i)
		if ok = ok && s.Handle.Ref == h.Ref; ok {
			found = s
		}
		return ok
	})
	switch {
	case err != nil:
	case found.Handle.Ref == "":
		err = extensions.Errorf(extensions.KindNotFound, "%s has no such snapshot", vendor)
	case found.Handle.ID != h.ID:
		err = extensions.Errorf(extensions.KindConflict, "the snapshot %s at %s does not carry this snapshot's id", h.Ref, vendor).
			WithRemedy("check it at %s; sandboxer does not own it", vendor)
	}
	return found, err
}

// DeleteSnapshot implements extensions.Snapshotter. A snapshot is a template of its own.
func (b *backend) DeleteSnapshot(ctx context.Context, h extensions.SnapshotHandle) error {
	_, err := b.statSnapshot(ctx, h)
	if err == nil {
		err = b.drop(ctx, h.Ref)
	}
	if extensions.IsKind(err, extensions.KindNotFound) {
		return nil
	}
	return failed("delete-snapshot", "", err)
}

// drop deletes a snapshot. One that is gone is success.
func (b *backend) drop(ctx context.Context, ref string) error {
	_, err := b.control.Do(ctx, rest.Call{Method: http.MethodDelete, Path: []string{"templates", ref}})
	if extensions.IsKind(err, extensions.KindNotFound) {
		return nil
	}
	return err
}
