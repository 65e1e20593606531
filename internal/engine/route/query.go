package route

import (
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

// Query is all a decision depends on.
type Query struct {
	// Spec is the resolved request without Options, which depend on the choice.
	Spec extensions.Spec
	// Options are the profile's per binding id; a candidate is judged by its own.
	Options map[string]map[string]any
	Policy  Policy
	// Hosts are the names the caller insists on, in order of preference; they
	// override Prefer and Fallback, and only candidates on them are eligible.
	Hosts []string
	// Prefer and Fallback are the profile's placement, by host name: order
	// only. Names of hosts that are not there are a notice.
	Prefer, Fallback []string
	Reach            Reach
	DesiredMode      string // running | paused | "" = leave alone
	Billing          string // platform | byok; "" = as the binding says, see PaidAs
	// Origin is where the snapshot or the sandbox to fork lives; nil where
	// there is none, or where it is not known yet.
	Origin     *Origin
	Permission Permission
	Candidates []Candidate
}

// Policy is the profile's way to choose.
type Policy struct {
	// Extension pins the route to one binding; Fallback lists bindings that
	// may be tried after it, in order. Without a pin, Fallback orders what
	// comes after the first choice and nothing else may follow it.
	Extension        string
	Strategy         string // "" = prefer-self-hosted
	Fallback         []string
	MaxCostPerHour   *meter.Money
	RequireIsolation extensions.Isolation // "" = the Spec's floor alone
	Region           string               // "eu" also matches "eu-west"
	AuthMode         string               // local | host-session; "" = any
}

// Origin names a place something lives in.
type Origin struct {
	Binding string
	Host    string // name; "" for an account
}

// Candidate is one binding on one place.
type Candidate struct {
	Binding string // "ext.local"
	Title   string
	Handler string
	Place   extensions.Place
	Host    *extensions.Host // nil for an account, or this machine unnamed
	// Capabilities are narrowed already: catalog, and facts where known.
	Capabilities extensions.Capabilities
	// Provides is what the binding says; see catalog.Binding.
	Provides extensions.Provides
	Powers   []extensions.Power
	Find     extensions.Find
	Options  []extensions.Field // the handler's declared option fields
	Region   string             // the binding's; "" = the host's, else the capability's
	Priority int64              // higher is preferred; the host's is added
	Index    int                // position in the catalog, for strategy explicit
	Price    Price
	Billing  string // how a metered place is paid: platform | byok; "" = either
	// Credit: platform credit pays for it, if it is chosen.
	Credit bool
	// Fee: the wallet pays a fee that grows with time, although the user's own
	// key pays the vendor.
	Fee       bool
	Room      Room
	Latency   Latency
	NamedOnly bool // a test double; see extensions.Descriptor
	// Ceiling is what Capabilities were before its host narrowed them, nil
	// where no host did; Narrowed says what was taken away and what would
	// bring it back.
	Ceiling  *extensions.Capabilities
	Narrowed []string
	// Unavailable is set where the place is declared but cannot be used now.
	Unavailable *Unavailable
}

// Price is what routing knows of a candidate's quote.
type Price struct {
	Hourly *meter.Money // nil = unknown
	// Shadow is what an own place is counted at by lowest-cost where Hourly is
	// unknown or zero; nil = not stated. It is compared and never charged.
	Shadow     *meter.Money
	Confidence meter.Confidence
	Quote      string // digest
	Unbounded  bool   // the worst case at the ttl is not known
	// FeeUnbounded: nor is what the wallet pays of it.
	FeeUnbounded bool
	// Unpriced is set where the price is stated and cannot be worked out for
	// this request; nothing else is known of it then.
	Unpriced *Unpriced
}

// Unpriced says why a price cannot be worked out.
type Unpriced struct {
	Reason string
	Help   string // what would make it known
}

// Latency is how long a place takes from create to ready.
type Latency struct {
	CreateToReady time.Duration // 0 = unknown
	Samples       int           // past sandboxes it is the median of; 0 = the catalog's figure
}

// counted is the price lowest-cost goes by; nil = unknown.
func (c *Candidate) counted() *meter.Money {
	if c.Price.Shadow != nil && c.selfHosted() && (c.Price.Hourly == nil || c.Price.Hourly.Amount == 0) {
		return c.Price.Shadow
	}
	return c.Price.Hourly
}

// Unavailable says why a declared place cannot be used.
type Unavailable struct {
	// Rule is RuleHandler, RuleNotYet, RuleCredentials, RuleHostUnfit or
	// RuleUnreachable.
	Rule   Rule
	Reason string
	Help   string // what would make it pass
}

// ID names the candidate: the binding, and "@host" where there is a host.
func (c *Candidate) ID() string {
	if c.Host == nil {
		return c.Binding
	}
	return c.Binding + "@" + c.Host.Name
}

// HostName is the host's name, or "".
func (c *Candidate) HostName() string {
	if c.Host == nil {
		return ""
	}
	return c.Host.Name
}

// selfHosted reports a place of the user: nobody sends a bill.
func (c *Candidate) selfHosted() bool {
	return c.Capabilities.PricingModel == extensions.PricingSelfHosted
}

func (q *Query) ttl() time.Duration { return time.Duration(q.Spec.TTL) }
