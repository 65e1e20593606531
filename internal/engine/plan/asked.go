package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Asked is a request merged with a profile of the catalog.
type Asked struct {
	Request  Request // with the names of its secrets
	Resolved *profile.Resolved
	TTL      time.Duration // how long the sandbox lives from its creation
	Machine  bool          // the profile demands a kind of machine
	Notices  []notice.Notice
}

// Ask checks a request and merges it with its profile. What no version can carry out yet is
// KindUnsupported.
func Ask(profiles *profile.Set, req Request) (*Asked, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	if req.SecretNames == nil {
		req.SecretNames = slices.Sorted(maps.Keys(req.Secrets))
	}
	r, err := Merge(profiles, req)
	if err != nil {
		return nil, err
	}
	if wrong := checkShare(req, r.Spec.Scope); wrong != nil {
		return nil, wrong.err()
	}
	if Shared(r.Spec.Scope) {
		req.Name = shareName(req, r.Spec.Scope)
	}
	demands := r.Spec.Requires
	a := &Asked{Request: req, Resolved: r, TTL: time.Duration(r.Spec.TTL), Machine: len(demands.OS)+len(demands.Arch) > 0}
	for _, name := range profiles.IdleInputs(r.Lineage[0], req.Inputs) {
		a.Notices = append(a.Notices, notice.Notice{Summary: "An input has no effect",
			Detail: fmt.Sprintf("%s declares the input %s, but no field contains {{input.%s}}: the value has no effect.", r.Lineage[0], name, name)})
	}
	return a, nil
}

// Merge lays a request over its profile, without checking that this version can carry it out.
func Merge(profiles *profile.Set, req Request) (*profile.Resolved, error) {
	in := profile.Request{
		Profile: req.Profile, Name: req.Name, Inputs: req.Inputs, TTL: req.TTL, Scope: req.Scope, Env: req.Env,
		SecretNames: req.SecretNames, FromSandbox: extensions.ID(req.FromSandbox),
		Image: req.Image, Resources: req.Resources,
	}
	if req.FromSnapshot != "" {
		in.FromSnapshot = &extensions.SnapshotRef{ID: req.FromSnapshot}
	}
	r, err := profile.Resolve(profiles, in)
	if err != nil {
		return nil, err
	}
	return r, override(r, req)
}

// override lays over a merged profile what the request says of the place.
func override(r *profile.Resolved, req Request) error {
	if want, pin := req.Extension, r.Policy.Extension; want != "" {
		if pin != "" && want != pin && !slices.Contains(r.Policy.Fallback, want) && !slices.Contains(r.Overrides, "extension") {
			return extensions.AtField("extension", extensions.Errorf(extensions.KindInvalid, "%s runs on %s only, but the request names %s",
				r.ID, pin, want).WithRemedy("use another profile, leave the extension out, or add extension to overrides of the profile"))
		}
		r.Policy.Extension, r.Policy.Fallback = want, nil
	}
	switch want := extensions.Isolation(req.Isolation); {
	case want == "":
	case want == extensions.IsolationNone:
		r.Spec.Direct, r.Spec.Isolation, r.Spec.Network = true, want, extensions.Network{Default: "allow"}
		r.Spec.Resources.BestEffort = true
	case want.Meets(r.Spec.Isolation):
		r.Spec.Isolation = want
	default:
		return extensions.AtField("isolation", extensions.Errorf(extensions.KindInvalid,
			"%s needs at least isolation %s, but the request says %s", r.ID, r.Spec.Isolation, want).
			WithRemedy("request %s or more, or none, which is the direct mode", r.Spec.Isolation))
	}
	return nil
}

// Planned returns the part of a plan that does not depend on a place.
func (a *Asked) Planned() Planned {
	r := a.Resolved
	return Planned{TTL: time.Duration(r.Spec.TTL), Scope: r.Spec.Scope, ProfileID: r.ID, Version: r.Version, CostClass: r.CostClass,
		LatencyClass: r.LatencyClass}
}

// SpecAt returns the merged request at a binding, without an identity and streams.
func (a *Asked) SpecAt(binding string) extensions.Spec {
	s := a.Resolved.Spec
	s.Options = a.Resolved.OptionsByExtension[binding]
	return s
}
