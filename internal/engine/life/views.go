package life

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Sandbox is the engine's view of one sandbox. ID is never empty once a sandbox may exist, even with an
// error.
type Sandbox struct {
	ID        extensions.ID
	Account   string
	Name      string
	Profile   string // profile id
	Version   string // of the profile
	State     string // requested | provisioning | ready | expired | failed | destroying | destroyed; active shows as ready
	Mode      string // running | paused; "" if it is not ready
	Extension string // binding id
	Host      string // host ref; "" for a vendor's account
	HostName  string
	Handle    string // encoded extensions.Handle
	Reach     extensions.Reachability
	CreatedAt time.Time
	ExpiresAt time.Time
	EndedAt   time.Time // zero while it lives
	// EndEstimated says that EndedAt is an estimate; see [Manager.Sweep].
	EndEstimated bool
	// Expiry says who ends it in its mode: native | host | sweep.
	Expiry     string
	Generation int64
	// IdleReap is how long it may be idle; 0 = as long as it lives. IdleSince is since when it is, where the
	// place was asked; zero while it is in use.
	IdleReap  time.Duration
	IdleSince time.Time
	Reason    string // why it failed or ended
	Estimate  plan.Estimate
	Route     plan.Route
	Request   plan.Request
	// Receipt lets another machine read and destroy this sandbox without the ledger.
	Receipt plan.Receipt
	// Leases are those that count, oldest first, of a sandbox that several may hold.
	Leases  []LeaseView
	Notices []notice.Notice
}

// DestroyOptions modify a destroy.
type DestroyOptions struct {
	// Forget drops an unreachable sandbox; the ledger keeps it as an orphan.
	Forget bool
	// Replaced says that the caller is about to make another in its place. Then nothing is ended unless the
	// ledger can record the new one.
	Replaced bool
	// All ends what several hold, for all of them.
	All    bool
	Notify notice.Notify
}

// DestroyReport says what a destroy did.
type DestroyReport struct {
	AlreadyGone bool
	Forgotten   bool
	Released    bool      // a lease ended, and the sandbox lives on
	EndedAt     time.Time // zero if unknown
	Removed     []string
	Residue     []string
	Conflicts   []string // mirrored files changed on both sides, left alone here
	Charges     []Charge
	Notices     []notice.Notice
	unsettled   error // why it ended without settlement; nil if settled
}

// Charge is one settled line. Amount is a decimal string; Unit says what Quantity counts: "ms", "MiB x
// ms".
type Charge struct {
	Component, Quantity, Unit string
	Amount, Currency          string // "" = unknown
	// Memo marks a charge that is recorded but that no wallet pays.
	Memo bool
}

// SnapshotView is one kept image.
type SnapshotView struct {
	ID        string
	Account   string
	Name      string
	SandboxID extensions.ID
	Extension string
	Host      string // ref
	HostName  string
	Handle    string // encoded snapshotPointer
	Kind      string
	SizeBytes int64
	Digest    string
	Live      bool // taken while everything ran on
	State     string
	Reason    string // of its state
	CreatedAt time.Time
	Retention string // see SnapshotRequest
	// ExpiresAt is when its place deletes it, or the next run that changes something; zero = never.
	ExpiresAt time.Time
	EndedAt   time.Time
	AllowEnd  bool            // it was allowed to end its sandbox
	Notices   []notice.Notice // of the run that took it, about its sandbox
}

// HostView is a registered host with its probed facts.
type HostView struct {
	Host  extensions.Host
	Ref   string
	Facts extensions.HostFacts
	// ProbedAt is when the facts were found, for a host that was only looked up; else zero.
	ProbedAt time.Time
	// Shared is set after a registration if another state had already registered the host with the same
	// arguments. It is KindConflict, but no failure.
	Shared error
}

// SweepReport says what a sweep ended, settled and found.
type SweepReport struct {
	DryRun  bool
	Ended   []extensions.ID // overdue ones that it tore down (or, in a dry run, would)
	Settled []extensions.ID // ended by themselves, now settled
	// Snapshots are those that it deleted or settled (or, in a dry run, would): past their time, left by a failure, or gone.
	Snapshots []string
	Orphans   []string // exist there, unknown to the ledger; a sweep never deletes them
	Failures  []string
}
