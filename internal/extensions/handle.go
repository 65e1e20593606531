package extensions

import (
	"bytes"
	"encoding/json"
	"time"
)

// Handle is the durable pointer to a backend object. It is versioned JSON
// without secrets, kept in Terraform state and in the ledger; another process
// on another machine can use it.
type Handle struct {
	// Extension is the handler's name, such as "local".
	Extension string `json:"extension"`
	// Version is that of Data's form; an adapter reads its own old versions.
	Version int `json:"version"`
	// ID is ours; Teardown refuses an object that does not carry it.
	ID ID `json:"id"`
	// Ref is the backend's own name of the object.
	Ref string `json:"ref"`
	// Data is what else the adapter needs, at most 4 KiB.
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

// DecodeHandle reads what Encode wrote; "" is the zero handle. Unknown fields
// and a wrong id are KindInvalid.
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

// Reachability tells how to get in now. It is re-derived, never trusted from
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

// Phase is what a backend says of one object.
type Phase string

const (
	// PhaseAbsent: proved gone, or never there.
	PhaseAbsent Phase = "absent"
	// PhaseProvisioning: being made, not usable yet.
	PhaseProvisioning Phase = "provisioning"
	// PhaseReady: usable.
	PhaseReady Phase = "ready"
	// PhasePaused: kept, not running.
	PhasePaused Phase = "paused"
	// PhaseExpired: ended by its deadline; remains may still need a teardown.
	PhaseExpired Phase = "expired"
	// PhaseFailed: ended or broken for another reason; remains may exist.
	PhaseFailed Phase = "failed"
	// PhaseUnreachable: could not be observed. Says nothing about existence.
	PhaseUnreachable Phase = "unreachable"
)

// Observation is one look at one sandbox.
type Observation struct {
	ID     ID
	Handle Handle
	Phase  Phase
	// Generation is the label's value, zero where it could not be read.
	Generation int64
	// Reachability is set when ready.
	Reachability Reachability
	// Reason says why, for Expired, Failed and Unreachable, and what is not well
	// in one that is Ready all the same.
	Reason string
	// StartedAt and EndedAt are the backend's own times; zero where unknown.
	StartedAt, EndedAt time.Time
	// Deadline is the end the backend itself will enforce; zero where it
	// enforces none.
	Deadline time.Time
	// Err is set for PhaseUnreachable and always of the contract's type.
	Err error
}
