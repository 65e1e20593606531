package verceltest

import (
	"maps"
	"net/http"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/box"
)

// snapshot is a stopped session's file system.
type snapshot struct {
	id, session, region string
	files               *box.Box
	made, ends          time.Time // ends zero = never
	status              string
}

func (s *snapshot) told() map[string]any {
	out := map[string]any{"id": s.id, "sourceSessionId": s.session, "region": s.region, "status": s.status, "sizeBytes": 1,
		"createdAt": ms(s.made), "updatedAt": ms(s.made)}
	if !s.ends.IsZero() {
		out["expiresAt"] = ms(s.ends)
	}
	return map[string]any{"snapshot": out}
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
	kept := &snapshot{id: "snap_" + letters(24), session: s.sessionID, region: s.region, made: v.clock.Now(), status: "created"}
	kept.ends = kept.made.Add(defaultKept)
	if want.Expiration != nil {
		kept.ends = kept.made.Add(time.Duration(*want.Expiration) * time.Millisecond)
		if *want.Expiration == 0 {
			kept.ends = time.Time{}
		}
	}
	v.halt(s, v.clock.Now())
	if kept.files, err = v.shelf.Copy(kept.id, s.Root, homes); err != nil {
		return answer{}, err
	}
	v.snapshots[kept.id] = kept
	out := kept.told()
	out["session"] = s.session()
	return answer{body: out}, nil
}

// kept is the snapshot of an id, or the vendor's refusal.
func (v *Vendor) kept(id string) (*snapshot, error) {
	s := v.snapshots[id]
	if s == nil || !s.ends.IsZero() && !v.clock.Now().Before(s.ends) {
		return nil, fail(http.StatusGone, "snapshot_not_found", "Snapshot not found.")
	}
	return s, nil
}

func (v *Vendor) getSnapshot(r *http.Request, _ []byte) (answer, error) {
	s, err := v.kept(r.PathValue("snapshotId"))
	if err != nil {
		return answer{}, err
	}
	return answer{body: s.told()}, nil
}

func (v *Vendor) deleteSnapshot(r *http.Request, _ []byte) (answer, error) {
	s, err := v.kept(r.PathValue("snapshotId"))
	if err != nil {
		return answer{}, err
	}
	delete(v.snapshots, s.id)
	s.status = "deleted"
	return answer{body: s.told()}, s.files.Remove()
}

// Snapshots are the ids of those that exist.
func (v *Vendor) Snapshots() (ids []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id := range maps.Keys(v.snapshots) {
		ids = append(ids, id)
	}
	return ids
}
