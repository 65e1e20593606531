package profile

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
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

// override lays what the request may set over the profile, and refuses the rest by name.
func (r *resolver) override() {
	own := *r.p
	if r.may("image", r.req.Image != "") {
		r.failAt("image", checkImage(r.req.Image))
		if own.Compose != nil || own.Containers != nil {
			r.fail(invalid("%s runs services with images of their own", r.p.Ref()).
				WithRemedy("remove image, or use a profile without compose and containers").At("image"))
		}
		own.Image = &Image{Pull: &r.req.Image}
	}
	if s := r.req.Resources; r.may("resources", s != nil) {
		own.Resources = r.sized(*s)
	}
	r.p = &own
}

// may reports whether a request that sets a field may.
func (r *resolver) may(field string, set bool) bool {
	if !set {
		return false
	}
	if !slices.Contains(r.p.Overrides, field) {
		r.fail(invalid("%s does not let its requests set %s", r.p.Ref(), field).
			WithRemedy("remove %s, or add it to overrides of the profile", field).At(field))
		return false
	}
	return true
}

// sized returns the profile's limits with those of the request.
func (r *resolver) sized(s Sizes) *Resources {
	out := value(r.p.Resources, Resources{})
	if s.CPU != "" {
		milli, err := parseCPU(s.CPU)
		r.failAt("resources", err)
		cpu := CPU(milli)
		out.CPU = &cpu
	}
	for _, limit := range []struct {
		name  string
		asked int64
		most  int64
		to    **int64
	}{{"memory_mb", s.MemoryMB, mostMemoryMB, &out.MemoryMB}, {"disk_mb", s.DiskMB, mostDiskMB, &out.DiskMB},
		{"pids", s.Pids, mostPids, &out.Pids}} {
		if limit.asked != 0 {
			r.failAt("resources", checkPositive(limit.name, &limit.asked, limit.most))
			*limit.to = &limit.asked
		}
	}
	if s.GPU != (extensions.GPU{}) {
		gpu := GPU{Model: s.GPU.Model, Count: cmp.Or(s.GPU.Count, 1)}
		r.failAt("resources", gpu.check())
		out.GPU = &gpu
	}
	return &out
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
