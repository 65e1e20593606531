package profile

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Limits of a sandbox's life.
const (
	// DefaultTTL applies where no profile says one.
	DefaultTTL = time.Hour
	// MinTTL is the shortest life that can be asked for.
	MinTTL = time.Second
	// MaxTTL bounds a life where no profile does.
	MaxTTL = 366 * 24 * time.Hour
)

// Request is what a caller asks of a profile.
type Request struct {
	Profile string // "profile.x" or "profile.x@1.0.0"
	Name    string // "" = chosen later
	Inputs  map[string]any
	TTL     string // see ParseDuration; "" = the profile's default
	Scope   string // "" = the profile's default
	Env     map[string]string
	// SecretNames are the names of secrets the caller brings; values never
	// come here.
	SecretNames  []string
	FromSnapshot *extensions.SnapshotRef
	FromSandbox  extensions.ID
}

// Resolved is a request in its final form.
type Resolved struct {
	// Spec lacks what the engine adds: ID, Account, Generation, Labels,
	// CreatedAt, Deadline, Secrets, Options and Workspace.Source.
	Spec         extensions.Spec
	Policy       Policy
	Placement    PlacementRule
	Reachability ReachabilityRule
	// SecretRefs are to be resolved at the provision boundary; their names
	// are in Spec.SecretNames.
	SecretRefs         []SecretRef
	OptionsByExtension map[string]map[string]any
	CostClass          string
	LatencyClass       string
	ID, Version        string
	// Lineage is the profile and its ancestors, "id@version", nearest first.
	Lineage []string
	// Digest is the lower-case hex SHA-256 of the profile's effective content
	// (ancestors merged in). It tells that a profile was edited under the
	// same version.
	Digest string
}

// Policy is how a place is to be chosen.
type Policy struct {
	Extension      string // the pinned binding, or ""
	Strategy       string // one of Strategies
	Fallback       []string
	MaxCostPerHour string // "0.50 USD", or ""
	// RequireIsolation is already part of Spec.Isolation.
	RequireIsolation extensions.Isolation
	Region           string
}

// PlacementRule names hosts, preferred ones first.
type PlacementRule struct {
	Prefer   []string
	Fallback []string
}

// ReachabilityRule names a jump route and an identity; "" = none.
type ReachabilityRule struct {
	Tunnel   string
	Identity string
}

// Route strategies.
const (
	StrategyExplicit         = "explicit"
	StrategyPreferSelfHosted = "prefer-self-hosted"
	StrategyLowestCost       = "lowest-cost"
	StrategyLowestLatency    = "lowest-latency"
)

// Strategies lists every route strategy, the default first.
var Strategies = []string{StrategyPreferSelfHosted, StrategyExplicit, StrategyLowestCost, StrategyLowestLatency}

// Resolve turns a request into its final form. Every error is KindInvalid and
// names the key, the value and what would be right.
func Resolve(set *Set, req Request) (*Resolved, error) { return nil, invalid("under construction") }
