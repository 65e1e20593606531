package verceltest

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/box"
)

// snapshot is a stopped session's file system.
type snapshot struct {
	id, of, session, region string // of: its sandbox's name
	files                   *box.Box
	made, used              time.Time
	keeps                   time.Duration // since the last use; 0 = for ever
	status                  string
}

func (s *snapshot) told() map[string]any {
	out := map[string]any{"id": s.id, "sourceSessionId": s.session, "region": s.region, "status": s.status, "sizeBytes": 1,
		"createdAt": ms(s.made), "updatedAt": ms(s.made)}
	if s.keeps > 0 {
		out["expiresAt"] = ms(s.used.Add(s.keeps))
	}
	return out
}

// defaultKept is how long a snapshot is kept if nobody says.
const defaultKept = 30 * 24 * time.Hour

// take stops a session and keeps its files.
func (v *Vendor) take(r *http.Request, body []byte) (answer, error) {
	var want struct{ Expiration *int64 }
	s, err := v.its(r, true)
	if err == nil {
		err = decode(body, &want)
	}
	if err != nil {
		return answer{}, err
	}
	kept := &snapshot{id: "snap_" + letters(24), of: s.name, session: s.sessionID, region: s.region, made: v.clock.Now(), status: "created",
		keeps: defaultKept}
	if kept.used = kept.made; want.Expiration != nil {
		kept.keeps = time.Duration(*want.Expiration) * time.Millisecond
	}
	v.halt(s, v.clock.Now())
	s.status = "snapshotting"
	if kept.files, err = v.shelf.Copy(kept.id, s.Root, homes); err != nil {
		return answer{}, err
	}
	v.snapshots[kept.id] = kept
	return answer{body: map[string]any{"snapshot": kept.told(), "session": s.session()}}, nil
}

// listSnapshots lists by the name of their sandbox, whether or not that is still there, the newest first. A page has one, so
// that nobody takes the first for all.
func (v *Vendor) listSnapshots(r *http.Request, _ []byte) (answer, error) {
	query, now := r.URL.Query(), v.clock.Now()
	all := slices.DeleteFunc(slices.Collect(maps.Values(v.snapshots)), func(s *snapshot) bool {
		_, err := v.kept(s.id)
		return err != nil || query.Has("name") && s.of != query.Get("name") || now.Before(s.made.Add(v.lag.List))
	})
	slices.SortFunc(all, func(a, b *snapshot) int { return cmp.Or(b.made.Compare(a.made), cmp.Compare(a.id, b.id)) })
	from := 1 + slices.IndexFunc(all, func(s *snapshot) bool { return s.id == query.Get("cursor") })
	out, next := []map[string]any{}, any(nil)
	if from < len(all) {
		out = append(out, all[from].told())
	}
	if from+1 < len(all) {
		next = all[from].id
	}
	return answer{body: map[string]any{"snapshots": out, "pagination": map[string]any{"count": len(out), "next": next}}}, nil
}

// kept is the snapshot of an id, or the vendor's refusal.
func (v *Vendor) kept(id string) (*snapshot, error) {
	s := v.snapshots[id]
	if s == nil || s.keeps > 0 && !v.clock.Now().Before(s.used.Add(s.keeps)) {
		return nil, fail(http.StatusGone, "snapshot_not_found", "Snapshot not found.")
	}
	return s, nil
}

func (v *Vendor) getSnapshot(r *http.Request, _ []byte) (answer, error) {
	s, err := v.kept(r.PathValue("snapshotId"))
	if err != nil {
		return answer{}, err
	}
	return answer{body: map[string]any{"snapshot": s.told()}}, nil
}

func (v *Vendor) deleteSnapshot(r *http.Request, _ []byte) (answer, error) {
	s, err := v.kept(r.PathValue("snapshotId"))
	if err != nil {
		return answer{}, err
	}
	delete(v.snapshots, s.id)
	s.status = "deleted"
	return answer{body: map[string]any{"snapshot": s.told()}}, s.files.Remove()
}

// Snapshots are the ids of those that exist.
func (v *Vendor) Snapshots() (ids []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Collect(maps.Keys(v.snapshots))
}

// Reassign makes a snapshot one of another session.
func (v *Vendor) Reassign(id, session string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.snapshots[id]
	if s == nil {
		return errNoSuch
	}
	s.session = session
	return nil
}
