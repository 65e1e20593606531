package vendor

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// State is where an object is in its life.
type State string

// The states.
const (
	StateCreated State = "created" // named and billed, not started
	StateRunning State = "running" // usable from ReadyAt on
	StateExpired State = "expired" // ended by its deadline; the contents are gone
	StateFailed  State = "failed"  // ended by a fault; the contents are gone
)

// Object is one sandbox as the service keeps it.
type Object struct {
	Ref      string            `json:"ref"`
	Name     string            `json:"name"` // unique among live objects
	Title    string            `json:"title,omitempty"`
	Account  string            `json:"account"`
	Labels   map[string]string `json:"labels"`
	Region   string            `json:"region"`
	MilliCPU int64             `json:"milli_cpu"`
	MemoryMB int64             `json:"memory_mb"`
	ReadOnly bool              `json:"read_only,omitempty"` // the workspace
	NoAccess bool              `json:"no_access,omitempty"` // there is no workspace

	State     State     `json:"state"`
	Reason    string    `json:"reason,omitempty"`
	CreatedAt time.Time `json:"created_at"` // billing starts here
	VisibleAt time.Time `json:"visible_at"` // find and list miss it before
	ReadyAt   time.Time `json:"ready_at,omitzero"`
	FailAt    time.Time `json:"fail_at,omitzero"`
	Deadline  time.Time `json:"deadline"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	// Busy is how long commands have been interpreted.
	Busy Duration `json:"busy,omitempty"`
	// Sent is how many bytes left it.
	Sent int64 `json:"sent,omitempty"`
	// GoneAt is when a deleted object was deleted.
	GoneAt time.Time `json:"gone_at,omitzero"`
}

// Live reports an object that has not ended.
func (o *Object) Live() bool { return o.State == StateCreated || o.State == StateRunning }

// Until is the end of the metered time at now.
func (o *Object) Until(now time.Time) time.Time {
	if !o.EndedAt.IsZero() {
		return o.EndedAt
	}
	return now
}

func (o *Object) clone() Object {
	c := *o
	c.Labels = maps.Clone(o.Labels)
	return c
}

func (o *Object) end(s State, at time.Time, reason string) {
	if o.Live() {
		o.State, o.EndedAt, o.Reason = s, at, reason
	}
}

func (st *state) byName(name string) *Object {
	for _, o := range st.Objects {
		if o.Name == name {
			return o
		}
	}
	return nil
}

// reap ends what is overdue by the service's clock, at its true time, and
// removes the contents of what has ended.
func (v *Vendor) reap(st *state) error {
	now := st.now()
	for _, o := range st.Objects {
		if !o.FailAt.IsZero() && !now.Before(o.FailAt) && o.FailAt.Before(o.Deadline) {
			o.end(StateFailed, o.FailAt, "the start failed")
		}
		if !now.Before(o.Deadline) {
			o.end(StateExpired, o.Deadline, "the deadline passed")
		}
		if o.Live() {
			continue
		}
		if err := v.discard(o.Ref); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes what killed processes left half made or half removed.
func (v *Vendor) sweep(st *state) error {
	return errors.Join(
		os.RemoveAll(v.path("trash")),
		v.prune("sandboxes", func(name string) bool { return st.Objects[name] != nil }),
		v.prune("snapshots", func(name string) bool { return st.Snapshots[strings.TrimSuffix(name, ".tar")] != nil }))
}

// prune removes what a killed process left in a folder without a record of it.
func (v *Vendor) prune(folder string, known func(name string) bool) error {
	entries, err := os.ReadDir(v.path(folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !known(e.Name()) {
			if err := os.RemoveAll(v.path(folder, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// drop forgets an object and all it had.
func (v *Vendor) drop(st *state, o *Object) error {
	if err := v.discard(o.Ref); err != nil {
		return err
	}
	delete(st.Objects, o.Ref)
	return nil
}

// discard removes an object's contents. They are moved aside first, so that a
// command still running there cannot add files behind the removal.
func (v *Vendor) discard(ref string) error {
	from := v.home(ref)
	if _, err := os.Lstat(from); os.IsNotExist(err) {
		return nil
	}
	if err := os.MkdirAll(v.path("trash"), 0o700); err != nil {
		return err
	}
	to := v.path("trash", newRef("t"))
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return os.RemoveAll(to)
}

func (v *Vendor) path(parts ...string) string {
	return filepath.Join(append([]string{v.dir}, parts...)...)
}

// home is the folder of one object: its tree and its log.
func (v *Vendor) home(ref string) string { return v.path("sandboxes", ref) }

func newRef(prefix string) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	return prefix + "-" + hex.EncodeToString(b[:])
}
