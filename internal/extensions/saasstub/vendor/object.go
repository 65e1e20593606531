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
	StatePaused  State = "paused"  // kept, not running
	StateEnded   State = "ended"   // its entrypoint did, with exit code 0; the contents are gone
	StateExpired State = "expired" // ended by its deadline, or because it was idle; the contents are gone
	StateFailed  State = "failed"  // ended by a fault; the contents are gone
)

// Object is one sandbox as the service keeps it.
type Object struct {
	Ref      string            `json:"ref"`
	Name     string            `json:"name"` // unique among live objects
	Title    string            `json:"title,omitempty"`
	Account  string            `json:"account"`
	Team     string            `json:"team,omitempty"` // see Script
	Labels   map[string]string `json:"labels"`
	Region   string            `json:"region"`
	MilliCPU int64             `json:"milli_cpu"`
	MemoryMB int64             `json:"memory_mb"`
	ReadOnly bool              `json:"read_only,omitempty"` // the workspace
	NoAccess bool              `json:"no_access,omitempty"` // there is no workspace
	Open     bool              `json:"open,omitempty"`      // the network; else only Allow
	Allow    []Destination     `json:"allow,omitempty"`
	Public   bool              `json:"public,omitempty"` // anybody reaches its ports
	Previews []Preview         `json:"previews,omitempty"`
	Entry    []string          `json:"entry,omitempty"`   // what runs by itself
	Entered  bool              `json:"entered,omitempty"` // it was started
	ExitAt   time.Time         `json:"exit_at,omitzero"`  // when it ends; zero = not before the object
	ExitCode int               `json:"exit_code,omitempty"`

	State     State     `json:"state"`
	Reason    string    `json:"reason,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	BilledAt  time.Time `json:"billed_at"`  // billing starts here
	VisibleAt time.Time `json:"visible_at"` // find and list miss it before this time
	ReadyAt   time.Time `json:"ready_at,omitzero"`
	FailAt    time.Time `json:"fail_at,omitzero"`
	Deadline  time.Time `json:"deadline"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	// Since is when it was paused or last resumed; Rested is how long earlier pauses were. Unending marks a
	// paused one whose deadline stopped.
	Since    time.Time `json:"since,omitzero"`
	Rested   Duration  `json:"rested,omitempty"`
	Unending bool      `json:"unending,omitempty"`
	// IdleAfter is how long it may be idle; 0 = as long as it lives. UsedAt is when it was last used, Using how many
	// use it now, Computed the CPU time used since UsedAt. Idled: idleness ended it.
	IdleAfter Duration  `json:"idle_after,omitempty"`
	UsedAt    time.Time `json:"used_at,omitzero"`
	Using     int       `json:"using,omitempty"`
	Computed  Duration  `json:"computed,omitempty"`
	Idled     bool      `json:"idled,omitempty"`
	// Busy is how long commands have been interpreted.
	Busy Duration `json:"busy,omitempty"`
	// Sent is the number of bytes it has sent.
	Sent int64 `json:"sent,omitempty"`
	// GoneAt is when a deleted object was deleted.
	GoneAt time.Time `json:"gone_at,omitzero"`
}

// Live reports whether an object has not ended.
func (o *Object) Live() bool {
	return o.State == StateCreated || o.State == StateRunning || o.State == StatePaused
}

// Paused returns how long it was paused by now, or by its end.
func (o *Object) Paused(now time.Time) time.Duration {
	paused := time.Duration(o.Rested)
	if o.State == StatePaused {
		paused += now.Sub(o.Since)
	}
	return paused
}

// Metered returns the start and the end of the metered time as of now.
func (o *Object) Metered(now time.Time) (from, until time.Time) {
	until = now
	if !o.EndedAt.IsZero() {
		until = o.EndedAt
	}
	if until.Before(o.BilledAt) {
		return until, until
	}
	return o.BilledAt, until
}

func (o *Object) clone() Object {
	c := *o
	c.Labels = maps.Clone(o.Labels)
	return c
}

func (o *Object) end(s State, at time.Time, reason string) {
	if o.Live() {
		o.Rested = Duration(o.Paused(at))
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

// reap ends what is overdue by the service's clock, at its true time, and removes the contents of what has
// ended.
func (v *Vendor) reap(st *state) error {
	now := st.now()
	for _, o := range st.Objects {
		if !o.FailAt.IsZero() && !now.Before(o.FailAt) && o.FailAt.Before(o.Deadline) {
			o.end(StateFailed, o.FailAt, "the start failed")
		}
		o.rest(now)
		o.exit(now)
		if !now.Before(o.Deadline) && !o.Unending {
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
	if st.script.Teams != nil {
		return nil // what is hidden is no remains
	}
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

// drop deletes an object and everything it had.
func (v *Vendor) drop(st *state, o *Object) error {
	if err := v.discard(o.Ref); err != nil {
		return err
	}
	delete(st.Objects, o.Ref)
	return nil
}

// discard removes an object's contents. It moves them aside first, so that a command still running there
// cannot add files behind the removal.
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

// home returns the folder of one object: its tree and its log.
func (v *Vendor) home(ref string) string { return v.path("sandboxes", ref) }

func newRef(prefix string) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	return prefix + "-" + hex.EncodeToString(b[:])
}
