package ledger

import (
	"encoding/json"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Mode says whether a live sandbox computes.
type Mode string

// Modes.
const (
	Running Mode = "running"
	Paused  Mode = "paused"
)

// Sandbox is one row. Zero times are not set; set ones are UTC with
// microseconds. JSON is canonical (keys sorted) and never contains a secret.
type Sandbox struct {
	ID      extensions.ID
	Account string // org/workspace
	Name    string
	// ClaimsName: no other sandbox of the account can take Name. False from
	// expiry or destruction on, even while an expired one is torn down.
	ClaimsName bool
	State      lifecycle.State
	Mode       Mode
	Generation int64 // 1 at create; recreate and adopt raise it
	Fence      int64 // that of the latest intent; only rises

	Profile        string
	ProfileVersion string
	SpecHash       string
	Request        json.RawMessage // what the user asked for, without secrets
	Spec           json.RawMessage // resolved, without secrets
	Route          json.RawMessage // the decision and every refusal
	QuoteDigest    string
	// Payer is the kind of account that what is billed for the life comes out
	// of: AccountWallet where platform credit pays, else the memo in which it is
	// noted. The transaction that reserves decides it, also where the worst case
	// is nothing; the settlement clears it. "" = nobody decided.
	Payer string

	Extension     string // binding id, "ext.local"
	Host          string // name, "" for accounts
	HostRef       string
	Handle        extensions.Handle
	Reachability  extensions.Reachability
	WorkspaceBase json.RawMessage // manifest of what was sent, for mirror

	TTL, MaxTTL time.Duration // MaxTTL 0 = none
	CreatedAt   time.Time
	ReadyAt     time.Time
	ExpiresAt   time.Time
	SeenAliveAt time.Time // last time a backend said it lives
	EndedAt     time.Time // the true end, of the backend where it tells
	UpdatedAt   time.Time

	Reason       string // why failed, for people
	EndReason    string // destroyed | expired | lost | refused | …
	EndEstimated bool   // nobody told EndedAt
}

// Stream names the event chain the sandbox belongs to: its org.
func (s Sandbox) Stream() string { return StreamOf(s.Account) }

// Begin asks for a sandbox. Account, Name, ID, Key and Holder are required.
type Begin struct {
	// Key makes the call happen once; unique in the ledger for ever.
	Key    string
	Holder HolderID

	ID      extensions.ID
	Account string
	Name    string

	Profile, ProfileVersion, SpecHash string
	Request, Spec, Route              json.RawMessage
	Extension, Host, HostRef          string

	TTL, MaxTTL time.Duration
	CreatedAt   time.Time // zero = now
	ExpiresAt   time.Time

	Quote *Quote // stored under its digest, with its prices
	Event Note   // Type defaults to "sandbox.requested"

	Reserve *Reserve // what it may cost; else *Insufficient
	// Ceilings bound how fast the account begins and spends; else *TooFast.
	Ceilings []Ceiling
	// Metered: somebody sends a bill for it.
	Metered bool

	// Generation is the first one; 0 = 1. Unclaimed keeps the name without a
	// claim to it. Both are for what was made elsewhere before; see Replay.
	Generation int64
	Unclaimed  bool
}

// Change is one compare-and-set on a sandbox: if the row is as expected, all
// of it happens, with one event; if not, nothing does and the error is *Stale.
type Change struct {
	ID extensions.ID
	// Key makes the change happen once; unique in the ledger for ever. Take
	// the intent's key and the step: "…/ready".
	Key    string
	Expect Expect
	// Room must be left at the places this change takes; else *Full.
	Room []Room

	// To is the next state, checked against lifecycle.Can; "" stays.
	To lifecycle.State
	// NextGeneration raises the generation by one (recreate, adopt).
	NextGeneration bool
	Patch          Patch

	Finish *FinishIntent // ends the open intent
	Intent *OpenIntent   // begins one, with a new fence; after Finish
	Meter  MeterOps
	Quote  *Quote // of a recreate

	// Reserve is set aside for another end, another place or a new life; in
	// all where it is a Total, else beside what is.
	Reserve *Reserve
	// Ceilings bound what the account spends, and for a recreate how fast it
	// begins; else *TooFast.
	Ceilings []Ceiling
	// Unresolved, at its end: nobody will ever know what became of it. What is
	// set aside is released, and kept as a memo of what it may have cost.
	Unresolved bool

	Event Note // Type defaults to "sandbox." and the state
}

// Expect is what the row must be for a change to happen. Zero fields match anything.
type Expect struct {
	States     []lifecycle.State
	Generation int64
	Fence      int64
	// Holder must hold the open intent; for steps of one's own operation.
	Holder HolderID
	// NoIntent demands that no operation is under way.
	NoIntent bool
}

// Patch sets columns; nil fields stay as they are. A pointer to the zero
// value clears.
type Patch struct {
	Mode          *Mode
	SpecHash      *string
	Profile       *string
	Version       *string // of the profile
	Request       json.RawMessage
	Spec          json.RawMessage
	Route         json.RawMessage
	Extension     *string
	Host          *string
	HostRef       *string
	Handle        *extensions.Handle
	Reachability  *extensions.Reachability
	WorkspaceBase json.RawMessage
	TTL           *time.Duration
	MaxTTL        *time.Duration
	ReadyAt       *time.Time
	ExpiresAt     *time.Time
	SeenAliveAt   *time.Time
	EndedAt       *time.Time
	Reason        *string
	EndReason     *string
	EndEstimated  *bool
}

// Filter selects sandboxes; zero fields select all.
type Filter struct {
	Account   string // org/workspace, or an org for all of its
	Name      string
	States    []lifecycle.State
	Host      string
	Extension string
	// ExpiredBy selects those whose ExpiresAt is not after the time.
	ExpiredBy time.Time
	// Live leaves out destroyed ones.
	Live bool
}
