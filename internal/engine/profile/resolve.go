package profile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
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

// archNames translates architectures to Go's names.
func archNames(list []string) []string {
	out := slices.Clone(list)
	for i, a := range out {
		if name, ok := archAliases[a]; ok {
			out[i] = name
		}
	}
	return out
}

// AuthModes lists what a route may be pinned to: a session that somebody is logged in to, which exists
// only on this machine.
var AuthModes = []string{"local", "host-session"}

// Resolve turns a request into its final form. Every error is KindInvalid and names the key, the value and
// what would be right; it reports all mistakes together.
func Resolve(set *Set, req Request) (*Resolved, error) {
	p, err := set.Lookup(req.Profile)
	if err != nil {
		return nil, (&extensions.Error{Kind: extensions.KindInvalid, Err: err}).At("profile")
	}
	flat, lineage, err := set.Flatten(p)
	if err != nil {
		return nil, err
	}
	r := &resolver{p: flat, req: req}
	r.override()
	inputs := r.inputs()
	spec := r.spec(set, inputs)
	if err := r.err(); err != nil {
		return nil, err
	}
	out := &Resolved{
		Spec: spec, Policy: policyOf(r.p), SecretRefs: secretRefs(flat), OptionsByExtension: optionsOf(flat), Overrides: flat.Overrides,
		ID: flat.ID, Version: flat.Version, Lineage: lineage, Digest: digest(flat),
	}
	if pl := flat.Placement; pl != nil {
		out.Placement = PlacementRule{Prefer: slices.Clone(pl.Prefer), Fallback: slices.Clone(pl.Fallback)}
	}
	if re := flat.Reachability; re != nil {
		out.Reachability = ReachabilityRule{Tunnel: value(re.Tunnel, ""), Identity: value(re.Identity, "")}
	}
	if m := flat.Metadata; m != nil {
		out.CostClass, out.LatencyClass = value(m.CostClass, ""), value(m.LatencyClass, "")
	}
	return out, nil
}

// resolver collects the mistakes of one request.
type resolver struct {
	p    *Profile
	req  Request
	errs []error
}

func (r *resolver) fail(err error) {
	if err != nil {
		r.errs = append(r.errs, err)
	}
}

func (r *resolver) failAt(field string, err error) {
	if err != nil {
		r.errs = append(r.errs, (&extensions.Error{Kind: extensions.KindInvalid, Err: err}).At(field))
	}
}

func (r *resolver) err() error {
	switch len(r.errs) {
	case 0:
		return nil
	case 1:
		return r.errs[0]
	}
	lines := make([]string, len(r.errs))
	for i, err := range r.errs {
		lines[i] = strictyaml.Message(err)
	}
	return invalid("%s", strings.Join(lines, "\n"))
}

// digest covers the meaning of a profile, not how its files are written.
func digest(flat *Profile) string {
	b, err := json.Marshal(flat)
	if err != nil { // everything was decoded from YAML
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func policyOf(p *Profile) Policy {
	policy := Policy{Extension: value(p.Extension, ""), Strategy: Strategies[0]}
	if policy.Extension != "" {
		policy.Strategy = StrategyExplicit
	}
	route := p.Route
	if route == nil {
		return policy
	}
	policy.Strategy = value(route.Strategy, policy.Strategy)
	policy.Fallback = slices.Clone(route.Fallback)
	if k := route.Constraints; k != nil {
		policy.MaxCostPerHour = value(k.MaxCostPerHour, "")
		policy.RequireIsolation = extensions.Isolation(value(k.RequireIsolation, ""))
		policy.Region = value(k.Region, "")
		policy.AuthMode = value(k.AuthMode, "")
	}
	return policy
}

func secretRefs(p *Profile) []SecretRef {
	if p.Setup == nil {
		return nil
	}
	return slices.Clone(p.Setup.SecretRefs)
}

func optionsOf(p *Profile) map[string]map[string]any {
	out := make(map[string]map[string]any, len(p.Options))
	for ext, options := range p.Options {
		out[ext], _ = cloned(options).(map[string]any)
	}
	return out
}

// cloned copies any value that YAML can express.
func cloned(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, e := range x {
			out[k] = cloned(e)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = cloned(e)
		}
		return out
	}
	return v
}

func value[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
