package extensions

import (
	"bytes"
	"encoding/json"
	"regexp"
	"time"
)

// Handle is the durable pointer to a backend object. It is versioned JSON
// without secrets, kept in Terraform state and in the ledger; another process
// on another machine can use it.
type Handle struct {
	// Extension is the handler's name, such as "local".
	Extension string `json:"extension"`
	// Version is the version of Data's format; an adapter reads its own old
	// versions.
	Version int `json:"version"`
	// ID is our ID; Teardown refuses an object without it.
	ID ID `json:"id"`
	// Ref is the backend's own name of the object.
	Ref string `json:"ref"`
	// Data has the adapter's own fields, at most 4 KiB.
	Data json.RawMessage `json:"data,omitempty"`
}

// IsZero reports a handle that points to nothing.
func (h Handle) IsZero() bool { return h.Extension == "" && h.Ref == "" && h.ID == "" }

// Encode returns the handle's canonical JSON; "" for the zero handle.
func (h Handle) Encode() string {
	if h.IsZero() {
		return ""
	}
	b, err := json.Marshal(h)
	if err != nil { // only Data can fail, and DecodeHandle or the adapter made it
		return ""
	}
	return string(b)
}

// DecodeHandle reads Encode's JSON; "" is the zero handle. Unknown fields and a
// wrong ID are KindInvalid.
func DecodeHandle(s string) (Handle, error) {
	var h Handle
	if s == "" {
		return h, nil
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(s)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&h); err != nil {
		return Handle{}, Errorf(KindInvalid, "this is not a sandbox handle: %w", err)
	}
	if _, err := ParseID(string(h.ID)); err != nil {
		return Handle{}, err
	}
	return h, nil
}

// Check refuses, with KindInvalid, a handle of another extension or version of Data's
// format, or without a valid ID.
func (h Handle) Check(extension string, version int) error {
	if h.Extension != extension || h.Version != version {
		return Errorf(KindInvalid, "the handle is for %s version %d, this is %s version %d", h.Extension, h.Version, extension, version)
	}
	_, err := ParseID(string(h.ID))
	return err
}

// CheckRef is Check, and refuses a Ref that is not of the form of the place's own names.
// "" is none yet.
func (h Handle) CheckRef(extension string, version int, form *regexp.Regexp) error {
	if err := h.Check(extension, version); err != nil || h.Ref == "" || form.MatchString(h.Ref) {
		return err
	}
	return Errorf(KindInvalid, "%q is not the name of a sandbox of %s", Clean(h.Ref, 80), extension)
}

// Reachability is how to get in now. It is derived again each time, never read from
// a store. Empty fields do not apply to the place.
type Reachability struct {
	SSH            string            `json:"ssh,omitempty"`        // destination for ssh(1)
	RemoteDir      string            `json:"remote_dir,omitempty"` // workspace path as seen from outside, on Host
	Host           string            `json:"host,omitempty"`       // name of the placement host
	ComposeProject string            `json:"compose_project,omitempty"`
	WorkDir        string            `json:"work_dir,omitempty"` // workspace path as seen inside
	URLs           map[string]string `json:"urls,omitempty"`     // service -> URL
	Ports          map[string]string `json:"ports,omitempty"`    // service/port -> address
}

// Phase is a backend's statement about one object.
type Phase string

const (
	// PhaseAbsent: proved gone, or never there.
	PhaseAbsent Phase = "absent"
	// PhaseProvisioning: being created, not usable yet.
	PhaseProvisioning Phase = "provisioning"
	// PhaseReady: usable.
	PhaseReady Phase = "ready"
	// PhasePaused: kept, not running.
	PhasePaused Phase = "paused"
	// PhaseExpired: ended by its deadline, or because it was idle; its residue may need a
	// teardown.
	PhaseExpired Phase = "expired"
	// PhaseTerminated: its own entrypoint ended with exit code 0; residue may need a
	// teardown.
	PhaseTerminated Phase = "terminated"
	// PhaseFailed: ended or broken for another reason; residue may exist.
	PhaseFailed Phase = "failed"
	// PhaseUnreachable: could not be observed. Says nothing about existence.
	PhaseUnreachable Phase = "unreachable"
)

// Observation is one sandbox's state at one time.
type Observation struct {
	ID     ID
	Handle Handle
	Phase  Phase
	// Generation is the label's value, zero if it could not be read.
	Generation int64
	// Reachability is set when ready.
	Reachability Reachability
	// Reason says why, for Expired, Terminated, Failed and Unreachable, or describes a problem
	// of a Ready one.
	Reason string
	// StartedAt and EndedAt are the backend's own times; zero where unknown. A place
	// that starts asynchronously costs from StartedAt, not from the create.
	StartedAt, EndedAt time.Time
	// Since is when a paused one was paused, or a ready one last resumed, by the
	// backend's clock; zero where unknown, and for one that was never paused.
	Since time.Time
	// Deadline is the end that the backend enforces; zero if none.
	Deadline time.Time
	// IdleSince is since when a ready one with Spec.IdleReap is idle, as far as its place
	// has looked; zero while it is in use, and without IdleReap.
	IdleSince time.Time
	// Idle: an Expired one ended because it was idle, not by its deadline.
	Idle bool
	// Allocated is the size that the place gave and bills, such as that of a
	// template; nil fields were not told. BestEffort is not set.
	Allocated Resources
	// Err is set for PhaseUnreachable and always of the contract's type.
	Err error
}
