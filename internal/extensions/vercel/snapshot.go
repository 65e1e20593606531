package vercel

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/labels"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

const (
	// labelSnapshot has the id of a sandbox's snapshot. A snapshot has no tags, but stops the only session of its sandbox: so there
	// is one at most, and what is left of the sandbox says which.
	labelSnapshot = "snapshot"
	// keptFor is what the vendor keeps by itself, since the last use: https://vercel.com/docs/sandbox/concepts/snapshots, 2026-11-24.
	keptFor = 30 * 24 * time.Hour
)

// snapshot is the vendor's record. Times are in ms since 1970.
type snapshot struct {
	ID              string  `json:"id"`
	SourceSessionID string  `json:"sourceSessionId"`
	Status          string  `json:"status"`
	SizeBytes       float64 `json:"sizeBytes"`
	CreatedAt       float64 `json:"createdAt"`
	ExpiresAt       float64 `json:"expiresAt"`
}

// origin is the adapter's part of a snapshot's handle: which sandbox's it is. Its members are sorted, as a ledger that was written to gives
// them back.
type origin struct {
	ID      string        `json:"id"` // the snapshot's
	Sandbox extensions.ID `json:"sandbox"`
	Session string        `json:"session"`
}

func (o origin) kept(s snapshot) extensions.Snapshot {
	data, _ := json.Marshal(o) // texts
	return extensions.Snapshot{SandboxID: o.Sandbox, Kind: extensions.SnapshotFilesystem, SizeBytes: int64(s.SizeBytes),
		CreatedAt: at(s.CreatedAt), ExpiresAt: at(s.ExpiresAt),
		Handle: extensions.SnapshotHandle{Extension: Handler, Version: handleVersion, ID: o.ID, Ref: s.ID, Data: data}}
}

// Snapshot implements extensions.Snapshotter. The sandbox is told its snapshot's id first, and ends with it.
func (b *backend) Snapshot(ctx context.Context, h extensions.Handle, spec extensions.SnapshotSpec) (none extensions.Snapshot, err error) {
	defer named("snapshot", h.ID, &err)
	if err := spec.CheckKind(b.desc.Snapshots); err != nil {
		return none, err
	}
	done, err := b.alone(ctx, h.Ref)
	if err != nil {
		return none, err
	}
	defer done()
	w, err := b.owned(ctx, h)
	if err != nil {
		return none, err
	}
	has, _ := b.ours(w.Sandbox)
	of := origin{spec.ID, h.ID, w.Session.ID}
	if w.Session.Status != running && has[labelSnapshot] == spec.ID { // an earlier call took it
		return b.taken(ctx, of)
	}
	if w, err = b.runs(ctx, h); err != nil {
		return none, err
	}
	has[labelSnapshot] = spec.ID
	packed, err := labels.Pack(has, room)
	if err == nil {
		err = b.patch(ctx, h.Ref, map[string]any{"tags": packed})
	}
	if err != nil {
		return none, err
	}
	var out struct{ Snapshot snapshot }
	call := b.into(w.Session.ID, map[string]int64{"expiration": keptFor.Milliseconds()}, "snapshot")
	call.Out, call.Timeout = &out, uploadTime
	call.Is = func() bool { return out.Snapshot.SourceSessionID == of.Session && idName.MatchString(out.Snapshot.ID) }
	if _, err = b.api.Do(ctx, call); err == nil {
		_, err = b.ended(ctx, h, w)
	}
	return of.kept(out.Snapshot), err
}

// taken looks for the snapshot of a session.
func (b *backend) taken(ctx context.Context, of origin) (found extensions.Snapshot, err error) {
	all, err := b.pages(ctx, url.Values{"name": {string(of.Sandbox)}}, "snapshots")
	for _, s := range all.Snapshots {
		if s.SourceSessionID == of.Session && s.Status == "created" && idName.MatchString(s.ID) {
			return of.kept(s), err
		}
	}
	if err == nil {
		err = extensions.Errorf(extensions.KindIndeterminate, "%s does not list it; a new snapshot can be missing for %s", vendor, lag)
	}
	return found, err
}

// FindSnapshot implements extensions.Snapshotter, by what is left of its sandbox.
func (b *backend) FindSnapshot(ctx context.Context, id string) (extensions.Snapshot, error) {
	all, err := b.list(ctx)
	of := origin{ID: id}
	for _, s := range all {
		if has, ok := b.ours(s); ok && has[labelSnapshot] == id {
			of.Sandbox, of.Session = extensions.ID(has[extensions.LabelID]), s.CurrentSessionID
		}
	}
	var s extensions.Snapshot
	if err == nil {
		s, err = b.taken(ctx, of)
	}
	return s, failed("find-snapshot", of.Sandbox, err)
}

// StatSnapshot implements extensions.Snapshotter.
func (b *backend) StatSnapshot(ctx context.Context, h extensions.SnapshotHandle) (none extensions.Snapshot, err error) {
	defer named("stat-snapshot", "", &err)
	var of origin
	if err := h.Check(Handler, handleVersion); err != nil {
		return none, err
	}
	if json.Unmarshal(h.Data, &of) != nil || of.ID != h.ID || !idName.MatchString(h.Ref) {
		return none, extensions.Errorf(extensions.KindInvalid, "the handle names no sandbox of the snapshot %q", extensions.Clean(h.Ref, 80))
	}
	var out struct{ Snapshot snapshot }
	_, err = b.api.Do(ctx, b.kept(http.MethodGet, h, &out))
	switch s := out.Snapshot; {
	case err != nil:
		return none, err
	case s.SourceSessionID != of.Session:
		return none, extensions.Errorf(extensions.KindConflict, "the snapshot %s at %s is of another sandbox", h.Ref, vendor).
			WithRemedy("check it at %s; sandboxer does not own it", vendor)
	case s.Status != "created":
		return none, extensions.Errorf(extensions.KindNotFound, "%s says that the snapshot is %s", vendor, extensions.Clean(s.Status, 40))
	}
	return of.kept(out.Snapshot), nil
}

// kept is a call on a snapshot.
func (b *backend) kept(method string, h extensions.SnapshotHandle, out any) rest.Call {
	return rest.Call{Method: method, Path: []string{"v2", "sandboxes", "snapshots", h.Ref}, Query: url.Values{"teamId": {b.team}}, Out: out}
}

// DeleteSnapshot implements extensions.Snapshotter.
func (b *backend) DeleteSnapshot(ctx context.Context, h extensions.SnapshotHandle) error {
	_, err := b.StatSnapshot(ctx, h)
	if err == nil {
		_, err = b.api.Do(ctx, b.kept(http.MethodDelete, h, nil))
	}
	if extensions.IsKind(err, extensions.KindNotFound) {
		return nil
	}
	return failed("delete-snapshot", "", err)
}
