package ledger

import (
	"encoding/json"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Mode says whether a live sandbox runs or is paused.
type Mode = meter.Mode

// Modes of a sandbox.
const (
	Running = meter.ModeRunning
	Paused  = meter.ModePaused
)

// Sandbox is one row. Zero times are unset; others are UTC with microseconds. JSON is canonical (keys
// sorted) and never contains a secret.
type Sandbox struct {
	ID      extensions.ID
	Account string // org/workspace
	Name    string
	// ClaimsName keeps other sandboxes of the account from taking Name. It becomes false at expiry or
	// destruction, even while an expired sandbox is still being torn down.
	ClaimsName bool
	State      lifecycle.State
	Mode       Mode
	Generation int64 // 1 at create; recreate and adopt raise it
	Fence      int64 // of the latest intent; only rises

	Profile        string
	ProfileVersion string
	SpecHash       string
	Request        json.RawMessage // what the user asked for, without secrets
	Spec           json.RawMessage // resolved, without secrets
	Route          json.RawMessage // the decision with every refusal
	QuoteDigest    string
	// Payer is the kind of account that pays for the life: AccountWallet for platform credit, else the memo
	// that records it. The reserving transaction decides it, even for a worst case of zero; settlement
	// clears it. "" = undecided.
	Payer string

	Extension     string // binding id, "ext.local"
	Host          string // "" for accounts
	HostRef       string
	Identity      string // a digest of who the credential that made it is to its vendor; "" = none, or nobody knows
	Handle        extensions.Handle
	Reachability  extensions.Reachability
	WorkspaceBase json.RawMessage // manifest of what was sent, for mirror

	TTL, MaxTTL time.Duration // MaxTTL 0 = none
	CreatedAt   time.Time
	ReadyAt     time.Time
	ExpiresAt   time.Time
	// ClaimedUntil is the deadline sent with the create, where that was a short first one; see
	// extensions.Find.Claim.
	ClaimedUntil time.Time
	SeenAliveAt  time.Time // last time a backend reported it alive
	EndedAt      time.Time // the true end, if the backend tells it
	UpdatedAt    time.Time

	Reason       string // why it failed, for people
	EndReason    string // destroyed | expired | idle | lost | refused | …
	EndEstimated bool   // EndedAt is an estimate
}

// SentDeadline returns the deadline that what a create may have made certainly has at its place, as long as
// nothing is known of it.
func (s Sandbox) SentDeadline() time.Time {
	if s.Handle.Ref == "" && !s.ClaimedUntil.IsZero() {
		return s.ClaimedUntil
	}
	return s.ExpiresAt
}

// Stream returns the event chain of the sandbox: that of its org.
func (s Sandbox) Stream() string { return StreamOf(s.Account) }

// Begin requests a sandbox. Account, Name, ID, Key and Holder are required.
type Begin struct {
	// Key makes the call idempotent; it is unique in the ledger for ever.
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

	Quote *Quote // stored under its digest with its prices
	Event Note   // Type defaults to "sandbox.requested"

	Reserve *bank.Reserve // its worst case; too little credit is *Insufficient
	// Ceilings limit how fast the account begins sandboxes and spends; passing one is *TooFast.
	Ceilings []bank.Ceiling
	// Metered says that a vendor bills for it.
	Metered bool
	// Lease is the first one on a sandbox that others may hold too; nil = nobody may.
	Lease *Lease
}

// Change is one compare-and-set on a sandbox: if the row is as expected, all of it happens, with one
// event; otherwise nothing does and the error is *Stale.
type Change struct {
	ID extensions.ID
	// Key makes the change idempotent; it is unique in the ledger for ever. Use the intent's key and the
	// step: "…/ready".
	Key    string
	Expect Expect
	// Room must be left at the places that this change takes; otherwise the error is *Full.
	Room []Room

	// To is the next state, checked against lifecycle.Can; "" keeps the state.
	To lifecycle.State
	// NextGeneration raises the generation by one (recreate, adopt).
	NextGeneration bool
	Patch          Patch

	Lease   *Lease   // a new lease on it, or one with another end
	Release []string // leases that end; unknown ones are ignored

	Finish *FinishIntent // ends the open intent
	Intent *OpenIntent   // begins one, with a new fence; after Finish
	Meter  bank.MeterOps
	Quote  *Quote // of a recreate

	// Reserve is set aside for a new deadline, place or life: in total if it is a Total, otherwise in addition
	// to the current hold.
	Reserve *bank.Reserve
	// Ceilings limit what the account spends and, for a recreate, how fast it begins; passing one is
	// *TooFast.
	Ceilings []bank.Ceiling
	// Unresolved, at the end of a sandbox, says that its fate will never be known. Its hold is released and
	// recorded as a memo of its possible cost.
	Unresolved bool

	Event Note // Type defaults to "sandbox." and the state
}

// Expect is the state that a row must have for a change to happen. Zero fields match anything.
type Expect struct {
	States     []lifecycle.State
	Generation int64
	Fence      int64
	// Holder must hold the open intent. Set it for the steps of one's own operation.
	Holder HolderID
	// NoIntent requires that no operation is under way.
	NoIntent bool
	// Unleased requires that, after the change, no lease counts; Leased, that one does.
	Unleased, Leased bool
}

// Patch sets columns; nil fields stay unchanged. A pointer to the zero value clears.
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
	Identity      *string
	Handle        *extensions.Handle
	Reachability  *extensions.Reachability
	WorkspaceBase json.RawMessage
	TTL           *time.Duration
	MaxTTL        *time.Duration
	ReadyAt       *time.Time
	ExpiresAt     *time.Time
	ClaimedUntil  *time.Time
	SeenAliveAt   *time.Time
	EndedAt       *time.Time
	Reason        *string
	EndReason     *string
	EndEstimated  *bool
}

// Filter selects sandboxes; zero fields select all.
type Filter struct {
	Account   string // "org/workspace", or "org" for all its workspaces
	Name      string
	States    []lifecycle.State
	Host      string
	Extension string
	// ExpiredBy selects those whose ExpiresAt is at or before this time.
	ExpiredBy time.Time
	// Live leaves out destroyed ones.
	Live bool
}
