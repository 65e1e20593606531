package route

import (
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Strategies of Policy.Strategy.
const (
	StrategyPreferSelfHosted = "prefer-self-hosted" // the default
	StrategyExplicit         = "explicit"
	StrategyLowestCost       = "lowest-cost"
	StrategyLowestLatency    = "lowest-latency"
)

// Who pays a metered place.
const (
	BillingPlatform = "platform" // our account's credit
	BillingBYOK     = "byok"     // the user's own key
)

// Values of Query.DesiredMode.
const (
	ModeRunning = "running"
	ModePaused  = "paused"
)

// Query has all inputs of a decision.
type Query struct {
	// Spec is the resolved request without Options, which depend on the choice.
	Spec extensions.Spec
	// Options are the profile's, by binding id; each candidate is judged by its own.
	Options map[string]map[string]any
	Policy  Policy
	// Hosts are the hosts the request insists on, in order of preference. They override Prefer and Fallback, and only
	// candidates on them are eligible.
	Hosts []string
	// Prefer and Fallback are the profile's placement, by host name. They only order; unknown names are a notice.
	Prefer, Fallback []string
	Reach            Reach
	Runs             bool   // a command is to run in it
	DesiredMode      string // running | paused | "" = leave alone
	Billing          string // platform | byok; "" = the binding's, see PaidAs
	// Origin is the place of the snapshot or of the sandbox to fork; nil if there is none, or if it is not known yet.
	Origin     *Origin
	Permission Permission
	Candidates []Candidate
	// Unconfigured are bindings of vendors that take no part, since nobody configured
	// them: names that exist all the same.
	Unconfigured []string
}

// Pins reports whether the profile wants this very binding, or what the sandbox
// starts from lives there.
func (q *Query) Pins(binding string) bool {
	return slices.Contains(q.bindings(), binding) || q.Origin != nil && q.Origin.Binding == binding
}

// bindings are the only ones allowed, in order; empty = all.
func (q *Query) bindings() (out []string) {
	if q.Policy.Extension != "" {
		out = append(out, q.Policy.Extension)
	}
	if q.Policy.Extension != "" || q.Policy.Strategy == StrategyExplicit {
		out = append(out, q.Policy.Fallback...)
	}
	return out
}

// Policy is the profile's routing.
type Policy struct {
	// Extension pins the route to one binding; Fallback lists bindings to try after it, in order. Without a pin, Fallback
	// lists and orders the only places after the first choice.
	Extension        string
	ByRequest        bool   // the request pins it, not the profile
	Strategy         string // "" = prefer-self-hosted
	Fallback         []string
	MaxCostPerHour   *meter.Money
	RequireIsolation extensions.Isolation // "" = only the Spec's floor
	Region           string               // "eu" also matches "eu-west"
	AuthMode         string               // local | host-session; "" = any
}

// Candidate is one binding on one place.
type Candidate struct {
	Binding string // "ext.local"
	Title   string
	Handler string
	Place   extensions.Place
	Host    *extensions.Host // nil for an account, or this machine unnamed
	Native  bool             // its sandboxes are processes of this machine; see extensions.Descriptor
	// Capabilities are already narrowed by the catalog, and by facts if known.
	Capabilities extensions.Capabilities
	// Provides is the binding's; see catalog.Binding.
	Provides extensions.Provides
	Powers   []extensions.Power
	Find     extensions.Find
	// Portable are the kinds of snapshots that it restores from other places of its handler.
	Portable []extensions.SnapshotKind
	Options  []extensions.Field // the handler's declared option fields
	Region   string             // the binding's; "" = the host's, else the capability's
	Priority int64              // higher is preferred; the host's is added
	Index    int                // position in the catalog, for strategy explicit
	Price    Price
	Billing  string // who pays a metered place: platform | byok; "" = either
	// Credit: platform credit would pay.
	Credit bool
	// Fee: the wallet pays a fee that grows with time, although the user's own key pays the vendor.
	Fee       bool
	Room      Room
	Latency   Latency
	NamedOnly bool // a test double; see extensions.Descriptor
	// Declared are the Capabilities before the place narrowed them, nil if none did; Narrowed lists what is missing and the
	// remedy.
	Declared *extensions.Capabilities
	Narrowed []string
	// Unavailable is set if the place is declared but cannot be used now.
	Unavailable *Unavailable
}

// Price is the part of a candidate's quote that routing uses.
type Price struct {
	Hourly *meter.Money // nil = unknown
	// Shadow is the price that lowest-cost uses for a self-hosted place if Hourly
	// is unknown or zero; nil = none. It is compared, never charged.
	Shadow     *meter.Money
	Confidence meter.Confidence
	Quote      string // digest
	Unbounded  bool   // the maximum at the ttl is unknown
	// FeeUnbounded: the wallet's part is unknown too.
	FeeUnbounded bool
	// Unpriced is set if a price exists but cannot be computed for this request;
	// all other fields are then unknown.
	Unpriced *Unpriced
}

// Unpriced is why a price cannot be computed.
type Unpriced struct {
	Reason string
	Help   string // the remedy
}

// Latency is a place's time from create to ready.
type Latency struct {
	CreateToReady time.Duration // 0 = unknown
	Samples       int           // number of past sandboxes in the median; 0 = the catalog's figure
}

// counted returns the price that lowest-cost uses; nil = unknown.
func (c *Candidate) counted() *meter.Money {
	if c.Price.Shadow != nil && c.Capabilities.SelfHosted() && (c.Price.Hourly == nil || c.Price.Hourly.Amount == 0) {
		return c.Price.Shadow
	}
	return c.Price.Hourly
}

// Unavailable is why a declared place cannot be used.
type Unavailable struct {
	// Rule is RuleCredentials, RuleHostUnfit or RuleUnreachable.
	Rule   Rule
	Reason string
	Help   string // the remedy
}

// ID returns the binding, with "@host" if there is a host.
func (c *Candidate) ID() string {
	if c.Host == nil {
		return c.Binding
	}
	return c.Binding + "@" + c.Host.Name
}

// HostName returns the host's name, or "".
func (c *Candidate) HostName() string {
	if c.Host == nil {
		return ""
	}
	return c.Host.Name
}

func (q *Query) ttl() time.Duration { return time.Duration(q.Spec.TTL) }
