package catalog

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const policyPrefix = "policy."

// everyAccount is the account of a policy that applies to all.
const everyAccount = "*"

// Policy says what an account may use. All policies for an account, in every folder, apply; none replaces
// another.
type Policy struct {
	route.AccountPolicy
	// Account is "org" for all its workspaces, "org/workspace", or "*".
	Account  string
	Ceilings []Ceiling // Catalog.Ceilings sets Policy and Scope
	File     string
}

// concerns reports whether the policy applies to an account "org/workspace".
func (p Policy) concerns(account string) bool {
	org, _, _ := strings.Cut(account, "/")
	return p.Account == everyAccount || p.Account == org || p.Account == account
}

// Permission returns what an account may use. Once any policy exists, an account without one may use
// nothing; while one is unreadable, nobody may.
func (c *Catalog) Permission(account string) route.Permission {
	p := route.Permission{Account: account, Required: len(c.Policies) > 0, Unreadable: c.BrokenPolicies}
	for _, policy := range c.Policies {
		if policy.concerns(account) {
			p.Policies = append(p.Policies, policy.AccountPolicy)
		}
	}
	return p
}

// policyFile is one file of policies/.
type policyFile struct {
	ID               string        `yaml:"id"`
	Account          string        `yaml:"account"`
	Extensions       *accessFile   `yaml:"extensions"`
	Hosts            *accessFile   `yaml:"hosts"`
	Regions          *accessFile   `yaml:"regions"`
	RequireIsolation *string       `yaml:"require_isolation"`
	Billing          []string      `yaml:"billing"`
	Ceilings         *ceilingsFile `yaml:"ceilings"`
}

type accessFile struct {
	Allowed   []string `yaml:"allowed"`
	Forbidden []string `yaml:"forbidden"`
}

// addPolicy keeps its mistakes apart from those of other files: a catalog with a broken policy can still
// end what runs, but start nothing new.
func (ld *loader) addPolicy(f file) {
	r := &policyReader{}
	pos, err := strictyaml.DecodePositions(f.name, f.data, &r.in)
	r.pos, r.errs = pos, strictyaml.Collect(f.name, err)
	p := Policy{Account: r.in.Account, File: f.name}
	if pos.Known() {
		p.AccountPolicy, p.Ceilings = r.policy(), r.ceilings()
	}
	i := slices.IndexFunc(ld.policies, func(e entry[Policy]) bool { return e.value.ID == p.ID })
	switch {
	case len(r.errs) > 0:
		ld.policyErrs = append(ld.policyErrs, r.errs...)
		return
	case i >= 0 && ld.policies[i].layer == ld.layer:
		ld.policyErrs = append(ld.policyErrs, pos.Errorf([]string{"id"}, "%s is already defined in %s", p.ID, ld.policies[i].file))
		return
	case i >= 0:
		ld.notices = append(ld.notices, pos.Errorf([]string{"id"}, "%s applies together with the one of %s: a policy is never replaced", p.ID,
			ld.policies[i].file))
	}
	ld.policies = append(ld.policies, entry[Policy]{value: p, file: f.name, layer: ld.layer})
	ld.policyNames = append(ld.policyNames, r.names...)
}

// policyReader checks one file of policies/.
type policyReader struct {
	in    policyFile
	pos   *strictyaml.Positions
	errs  strictyaml.Errors
	names []namedExtension
}

// namedExtension is checked once every extension is known.
type namedExtension struct {
	id string
	at *strictyaml.Error
}

func (r *policyReader) fail(path []string, err error) {
	if err != nil {
		r.errs = append(r.errs, r.pos.Errorf(path, "%s", strictyaml.Message(err)))
	}
}

func (r *policyReader) policy() route.AccountPolicy {
	in := r.in
	r.fail([]string{"id"}, profile.CheckID(policyPrefix, in.ID))
	r.account()
	p := route.AccountPolicy{ID: in.ID, Billing: in.Billing,
		Extensions: r.access("extensions", in.Extensions, func(id string) error { return profile.CheckID(profile.ExtensionPrefix, id) }),
		Hosts:      r.access("hosts", in.Hosts, profile.CheckName),
		Regions:    r.access("regions", in.Regions, profile.CheckName),
	}
	if level := in.RequireIsolation; level != nil {
		p.RequireIsolation = extensions.Isolation(*level)
		r.oneOf([]string{"require_isolation"}, *level, words(extensions.IsolationLevels))
	}
	for i, mode := range in.Billing {
		r.oneOf([]string{"billing", strconv.Itoa(i)}, mode, []string{route.BillingPlatform, route.BillingBYOK})
	}
	return p
}

func (r *policyReader) account() {
	a := r.in.Account
	org, workspace, scoped := strings.Cut(a, "/")
	switch {
	case a == everyAccount:
	case a == "":
		r.errs = append(r.errs, r.pos.Errorf([]string{"account"}, `account is required: an org, "org/workspace", or "*" for all`))
	case profile.CheckName(org) != nil || scoped && profile.CheckName(workspace) != nil:
		r.errs = append(r.errs, r.pos.Errorf([]string{"account"}, `%q is not an account: want an org, "org/workspace", or "*" for all`,
			extensions.Clean(a, 80)))
	}
}

func (r *policyReader) access(key string, in *accessFile, check func(string) error) route.Access {
	if in == nil {
		return route.Access{}
	}
	for _, list := range []struct {
		name  string
		items []string
	}{{"allowed", in.Allowed}, {"forbidden", in.Forbidden}} {
		for i, item := range list.items {
			path := []string{key, list.name, strconv.Itoa(i)}
			r.fail(path, check(item))
			if key == "extensions" {
				r.names = append(r.names, namedExtension{item, r.pos.Errorf(path, "")})
			}
		}
	}
	return route.Access{Allowed: in.Allowed, Forbidden: in.Forbidden}
}

func (r *policyReader) oneOf(path []string, value string, allowed []string) {
	if slices.Contains(allowed, value) {
		return
	}
	e := r.pos.Errorf(path, "%q is unknown: want %s", extensions.Clean(value, 80), strings.Join(allowed, ", "))
	e.Suggestion = strictyaml.Nearest(value, allowed)
	r.errs = append(r.errs, e)
}

// checkPolicies reports unknown names, since a typing mistake in a list of forbidden extensions would
// allow one.
func (ld *loader) checkPolicies() {
	for _, n := range ld.policyNames {
		if _, ok := ld.bindings[n.id]; !ok && !ld.broken[n.id] {
			ld.notices = append(ld.notices, ld.unbound(n.at, n.id, "listing it here has no effect"))
		}
	}
}
