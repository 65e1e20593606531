package engine

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Request is what a user asks for. All of it but Secrets is kept in the
// ledger, so that an import can restore every argument.
type Request struct {
	// Profile is "profile.x" or "profile.x@1.0.0".
	Profile string `json:"profile"`
	// Name is unique per account among live sandboxes. With NamePrefix a
	// random suffix is appended; with neither, the id is the name.
	Name       string `json:"name,omitempty"`
	NamePrefix string `json:"name_prefix,omitempty"`
	// Hosts are refs (extensions.Host.Ref) or bare names looked up in the ledger;
	// they override the profile's placement.
	Hosts  []string       `json:"hosts,omitempty"`
	Inputs map[string]any `json:"inputs,omitempty"`
	// TTL is "90s", "2h", "1d"; "" = the profile's default.
	TTL      string   `json:"ttl,omitempty"`
	Scope    string   `json:"scope,omitempty"`
	Consumer Consumer `json:"consumer,omitzero"`
	// Billing is "platform" or "byok"; "" = platform.
	Billing string            `json:"billing,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	// Secrets become environment variables inside and are stored nowhere.
	Secrets map[string]Secret `json:"-"`
	// SecretNames are the sorted names of Secrets; set by the engine.
	SecretNames    []string `json:"secret_names,omitempty"`
	SecretsVersion int64    `json:"secrets_version,omitempty"`
	// MaxCost refuses a create whose worst case at the TTL is above it: "1.00 USD".
	MaxCost string `json:"max_cost,omitempty"`
	// OnConflict is "error" (default) or "adopt".
	OnConflict           string            `json:"on_conflict,omitempty"`
	OnExpiry             string            `json:"on_expiry,omitempty"`
	OnUnreachableDestroy string            `json:"on_unreachable_destroy,omitempty"`
	Triggers             map[string]string `json:"triggers,omitempty"`
	FromSnapshot         string            `json:"from_snapshot,omitempty"`
	FromSandbox          string            `json:"from_sandbox,omitempty"`
	// DesiredMode is "", "running" or "paused".
	DesiredMode        string            `json:"desired_mode,omitempty"`
	DeletionProtection bool              `json:"deletion_protection,omitempty"`
	Timeouts           map[string]string `json:"timeouts,omitempty"`
	// Account is whose credit, limits and permission count, for a sandbox that lives
	// and belongs to another account than the engine's; "" = the engine's. What is
	// created is the engine's.
	Account string `json:"-"`
	// Leaving are sandboxes that end before this one begins: a plan counts what
	// is set aside for them as free.
	Leaving []ID `json:"-"`
	// Former is the receipt of the sandbox whose place this one takes, if any.
	Former Receipt `json:"-"`
	// Together are the sandboxes of the same plan, new ones and those with a later
	// end: what is affordable alone has to be affordable beside them. nil = this
	// one alone.
	Together *Together `json:"-"`
}

// Consumer says on whose behalf a sandbox runs.
type Consumer struct {
	Actor     string `json:"actor,omitempty"` // adm | agt | atm
	Harness   string `json:"harness,omitempty"`
	RunID     string `json:"run_id,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	JobID     string `json:"job_id,omitempty"`
}

// Sandbox is the engine's view of one sandbox. ID is never empty once one may
// exist, errors notwithstanding.
type Sandbox struct {
	ID        ID
	Account   string
	Name      string
	Profile   string // id
	Version   string // of the profile
	State     string // requested | provisioning | ready | expired | failed | destroying | destroyed; active shows as ready
	Mode      string // running | paused
	Extension string // binding id
	Host      string // host ref; "" for a vendor's account
	HostName  string
	Handle    string // encoded extensions.Handle
	Reach     Reachability
	CreatedAt time.Time
	ExpiresAt time.Time
	EndedAt   time.Time // zero while it lives
	// EndEstimated: nobody told when it ended; see [Engine.Sweep].
	EndEstimated bool
	// Expiry says who ends it: native | host | sweep.
	Expiry     string
	Generation int64
	Reason     string // why it failed or ended
	Estimate   Estimate
	Route      Route
	Request    Request
	// ProfileChanged: the catalog's profile of this version resolves
	// differently now than when the sandbox was made.
	ProfileChanged bool
	// Receipt is what a state keeps to read and destroy this sandbox on
	// another machine without the ledger.
	Receipt Receipt
	Notices []Notice
}

// Receipt is durable, secret-free and enough to find, read, destroy and
// settle a sandbox without the ledger that made it. Its JSON form is versioned.
type Receipt struct {
	Version    int       `json:"version"`
	ID         ID        `json:"id"`
	Account    string    `json:"account"`
	Name       string    `json:"name"`
	Extension  string    `json:"extension,omitempty"` // binding; "" while no place was chosen
	Host       string    `json:"host,omitempty"`
	Handle     string    `json:"handle,omitempty"`
	Generation int64     `json:"generation"`
	CreatedAt  time.Time `json:"created_at"`
	ExpiresAt  time.Time `json:"expires_at"`
	StartedAt  time.Time `json:"started_at,omitzero"` // the provider's start, where billing begins
	SpecHash   string    `json:"spec_hash,omitempty"`
	Mode       string    `json:"mode,omitempty"`
	Prices     string    `json:"prices,omitempty"` // canonical meter.PriceSnapshot
	Ledger     string    `json:"ledger,omitempty"` // the ledger's own id
	Head       string    `json:"head,omitempty"`   // its chain head when this was written
	Mirror     string    `json:"mirror,omitempty"` // local folder a mirrored workspace returns to
	// PreRelease are the toolchain's commands for the end.
	PreRelease []extensions.Step `json:"pre_release,omitempty"`
	// EnvInside are variables that commands expand, as extensions.Toolchain has
	// them, and EnvService the one service that gets them; "" = each.
	EnvInside  map[string]string `json:"env_inside,omitempty"`
	EnvService string            `json:"env_service,omitempty"`
}

// Estimate is the price before. It is a function of the request's known
// arguments and the catalog's bytes alone, so that Terraform's second plan
// during apply finds the same. Amounts are decimal strings without currency;
// "" means unknown, never zero.
type Estimate struct {
	CatalogDigest string              `json:"catalog_digest"`
	Currency      string              `json:"currency"`
	HourlyLow     string              `json:"hourly_low"`
	HourlyHigh    string              `json:"hourly_high"`
	TotalLow      string              `json:"total_low"`  // at the TTL's end or minimum charge
	TotalHigh     string              `json:"total_high"` // over eligible candidates
	Maximum       string              `json:"maximum"`    // worst case at the TTL
	TTL           string              `json:"ttl"`
	Candidates    []EstimateCandidate `json:"candidates"`
	Unknowns      []string            `json:"unknowns,omitempty"` // with the place of each, first choice first
	Unpriced      []string            `json:"unpriced,omitempty"` // the same without places, sorted: it changes with the numbers alone
	Assumptions   []string            `json:"assumptions,omitempty"`
}

// EstimateCandidate is one place with its price or why it was refused.
type EstimateCandidate struct {
	Extension  string `json:"extension"`
	Host       string `json:"host"` // name; "" for an account
	Eligible   bool   `json:"eligible"`
	Order      int64  `json:"order"` // 1 = first choice; 0 = refused
	Hourly     string `json:"hourly"`
	Creation   string `json:"creation"`
	Low        string `json:"low"`      // fee and minimum
	Expected   string `json:"expected"` // at the expected duration
	P95        string `json:"p95"`      // at that of 95 in 100 past ones; "" without history
	Maximum    string `json:"maximum"`
	Reserve    string `json:"reserve"` // Maximum with every line rounded up
	Wallet     string `json:"wallet"`  // what of Reserve comes out of a wallet
	Currency   string `json:"currency"`
	Source     string `json:"source"`
	AsOf       string `json:"as_of"`
	Confidence string `json:"confidence"` // exact | estimated | unknown
	Memo       bool   `json:"memo"`       // no wallet pays the place itself
	Billing    string `json:"billing"`    // platform | byok; "" = platform credit once there was any
	Expiry     string `json:"expiry"`     // native | host | sweep
	// Lines are those of Expected; without a duration those of Hourly.
	Lines       []EstimateLine `json:"lines,omitempty"`
	Assumptions []string       `json:"assumptions,omitempty"`
	Unknowns    []string       `json:"unknowns,omitempty"`
	Digest      string         `json:"digest,omitempty"` // of the quote with its prices
	Refusals    []Refusal      `json:"refusals,omitempty"`
}

// EstimateLine is one component of a price. Quantity is in whole units, a
// decimal; UnitPrice and Amount are "" where they are not known.
type EstimateLine struct {
	Component  string `json:"component"`
	Quantity   string `json:"quantity"`
	Unit       string `json:"unit"`
	UnitPrice  string `json:"unit_price"`
	Amount     string `json:"amount"`
	Memo       bool   `json:"memo"`
	Source     string `json:"source"`
	AsOf       string `json:"as_of"`
	Confidence string `json:"confidence"`
}

// Refusal says why a candidate is out and what would let it in.
type Refusal struct {
	Stage  string `json:"stage"`
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
	Remedy string `json:"remedy"`
}

// Route is the decision as it was taken and carried out.
type Route struct {
	Strategy  string     `json:"strategy"`
	Order     []string   `json:"order"`               // surviving candidates, "ext.local@host", fixed before the first attempt
	Why       string     `json:"why,omitempty"`       // why the first of Order is
	Fallbacks []string   `json:"fallbacks,omitempty"` // what may be tried after it, in order
	Notices   []string   `json:"notices,omitempty"`   // what was accepted with a reservation
	Chosen    string     `json:"chosen"`              // the one that holds the sandbox
	Attempts  []Attempt  `json:"attempts,omitempty"`
	Refused   []Rejected `json:"refused,omitempty"`
	Explained string     `json:"explained"`
}

// Attempt is one try at a place.
type Attempt struct {
	Candidate string `json:"candidate"`
	Outcome   string `json:"outcome"` // ready | exhausted | unavailable | ...
	Reason    string `json:"reason,omitempty"`
}

// Rejected is a candidate that did not survive routing.
type Rejected struct {
	Candidate string    `json:"candidate"`
	Refusals  []Refusal `json:"refusals"`
}

// Planned is the answer to "what would create do".
type Planned struct {
	// Estimate is stable; see there. EstimateKnown is false where placement
	// comes from the ledger or an argument was unknown: Estimate is then only
	// good for a notice.
	Estimate      Estimate
	EstimateKnown bool
	// Pinned: the request itself leaves one place; Extension and Host (its ref, or
	// "" for an account and for this machine unnamed) are then what apply will find.
	Pinned          bool
	Extension, Host string
	TTL             time.Duration
	Scope           string
	ProfileID       string
	Version         string
	// CostClass and LatencyClass are the profile's labels, "" = none: nothing is
	// chosen by them.
	CostClass, LatencyClass string
	Notices                 []Notice
	// Route is the decision as far as a plan can take it: it counts nothing,
	// asks nobody and looks at no past.
	Route Route
	// NameHolder is the sandbox that has the name now, if any, and NameTaken
	// the warning about it, for callers whose own it is not.
	NameHolder ID
	NameTaken  *Notice
}

// DestroyOptions modify a destroy.
type DestroyOptions struct {
	// Forget drops a sandbox that cannot be reached; the ledger keeps it as an orphan.
	Forget bool
	// Replaced: the caller is about to make another in its place. Nothing is
	// ended, then, while the ledger could not record that one.
	Replaced bool
	Notify   Notify
}

// DestroyReport says what a destroy did.
type DestroyReport struct {
	AlreadyGone bool
	Forgotten   bool
	EndedAt     time.Time // zero where nothing says when
	Removed     []string
	Residue     []string
	Conflicts   []string // mirrored files changed on both sides, left alone here
	Charges     []Charge
	Notices     []Notice
	unsettled   error // why it ended without being settled; nil where it was
}

// Charge is one settled line; Amount is a decimal string, Unit what Quantity
// counts: "ms", "MiB x ms".
type Charge struct {
	Component, Quantity, Unit string
	Amount, Currency          string // "" = not known
	// Memo marks what is recorded but charged to nobody's wallet.
	Memo bool
}

// SnapshotView is one kept checkpoint.
type SnapshotView struct {
	ID        string
	Account   string
	Name      string
	SandboxID ID
	Extension string
	Host      string
	Handle    string // encoded extensions.SnapshotHandle
	Kind      string
	SizeBytes int64
	Digest    string
	CreatedAt time.Time
}

// HostView is a registered host with its probed facts.
type HostView struct {
	Host  Host
	Ref   string
	Facts extensions.HostFacts
	// Shared tells, after a registration, that the host was registered already,
	// as it is, by another state; else nil. It is of KindConflict, and no failure.
	Shared error
}

// SweepReport says what a sweep ended, settled and found.
type SweepReport struct {
	DryRun   bool
	Ended    []ID     // overdue ones it tore down (would tear down)
	Settled  []ID     // ended by themselves, now closed
	Orphans  []string // exist there and are unknown to the ledger; never deleted by a sweep
	Failures []string
}
