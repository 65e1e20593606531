package profile

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Limits of a sandbox's life.
const (
	// DefaultTTL applies if no profile sets one.
	DefaultTTL = time.Hour
	// MinTTL is the shortest permitted life.
	MinTTL = time.Second
	// MaxTTL is the longest permitted life unless a profile sets a shorter one.
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
	// SecretNames are the names of the caller's secrets; values never reach this package.
	SecretNames  []string
	FromSnapshot *extensions.SnapshotRef
	FromSandbox  extensions.ID
	// Image and Resources override the profile's, where its Overrides say so.
	Image     string
	Resources *Sizes
}

// Resolved is a request in its final form.
type Resolved struct {
	// Spec lacks what the engine adds: ID, Account, Generation, Labels, CreatedAt, Deadline, Secrets,
	// Options and Workspace.Source.
	Spec         extensions.Spec
	Policy       Policy
	Placement    PlacementRule
	Reachability ReachabilityRule
	// SecretRefs are resolved when provisioning; their names are in Spec.SecretNames.
	SecretRefs         []SecretRef
	OptionsByExtension map[string]map[string]any
	Overrides          []string // what a request may set instead of the profile
	CostClass          string
	LatencyClass       string
	ID, Version        string
	// Lineage is the profile and its ancestors, "id@version", nearest first.
	Lineage []string
	// Digest is the lower-case hex SHA-256 of the profile's effective content, ancestors merged in. It
	// reveals that a profile was edited without a new version.
	Digest string
}

// Policy is how a place is chosen.
type Policy struct {
	Extension      string // the pinned binding, or ""
	Strategy       string // one of Strategies
	Fallback       []string
	MaxCostPerHour string // "0.50 USD", or ""
	// RequireIsolation is already part of Spec.Isolation.
	RequireIsolation extensions.Isolation
	Region           string
	AuthMode         string // local | host-session, or ""
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

// Values of requires.os and requires.arch: Go's names of systems and architectures, and uname's names of
// architectures.
var (
	systems       = []string{"linux", "darwin", "windows"}
	architectures = []string{"amd64", "arm64", "arm", "riscv64", "ppc64le", "s390x", "loong64"}
	archAliases   = map[string]string{"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "loongarch64": "loong64"}
)

// AuthModes lists what a route may be pinned to: a session that somebody is logged in to, which exists
// only on this machine.
var AuthModes = []string{"local", "host-session"}

// Overridable are the fields that a profile may leave to its requests. A request may choose an extension in any case
// where the profile pins none.
var Overridable = []string{"extension", "image", "resources"}

// Sizes are limits that a request sets instead of its profile's; "" and 0 leave the profile's.
type Sizes struct {
	CPU      string `json:"cpu,omitempty"` // vCPUs, such as "0.5"
	MemoryMB int64  `json:"memory_mb,omitempty"`
	DiskMB   int64  `json:"disk_mb,omitempty"`
	Pids     int64  `json:"pids,omitempty"`
	// GPU replaces the profile's as a whole; its count is 1 if only the model is given.
	GPU extensions.GPU `json:"gpu,omitzero"`
}
