package route

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Permission is what the account of a query may use.
type Permission struct {
	Account string // "acme/web", for messages
	// Required: an account without a policy may use nothing.
	Required bool
	// Unreadable lists the faults of unreadable policies. While there is one, nobody knows what it forbids.
	Unreadable []string
	// Policies all apply: each must allow the place.
	Policies []AccountPolicy
}

// AccountPolicy is one policy.
type AccountPolicy struct {
	ID         string // "policy.acme"
	Extensions Access // binding ids
	Hosts      Access // names; a vendor's account has no host and passes
	// Regions lists allowed regions: every region that a place may choose must be allowed.
	Regions Access
	// RequireIsolation is the weakest allowed level; "" = any.
	RequireIsolation extensions.Isolation
	// Billing lists the allowed payers of metered places; nil = any.
	Billing []string
}

// Access has allowed and forbidden names; forbidden wins.
type Access struct {
	Allowed   []string // nil = all; empty = none
	Forbidden []string
}

func (a Access) permits(name string) bool {
	return !slices.Contains(a.Forbidden, name) && (a.Allowed == nil || slices.Contains(a.Allowed, name))
}

func (a Access) empty() bool { return a.Allowed == nil && len(a.Forbidden) == 0 }

// any reports whether a policy has the setting that says tests.
func (p *Permission) any(says func(*AccountPolicy) bool) bool {
	return p.first(func(a *AccountPolicy) bool { return !says(a) }) != nil
}

// first returns the first policy that does not permit; nil if all do.
func (p *Permission) first(permits func(*AccountPolicy) bool) *AccountPolicy {
	for i := range p.Policies {
		if !permits(&p.Policies[i]) {
			return &p.Policies[i]
		}
	}
	return nil
}

// askFor returns the remedy: the user's change, or the policy to change.
func (j *judge) askFor(p *AccountPolicy, change string) string {
	return change + ", or ask the owner of " + p.ID + " for account " + j.Permission.Account
}

func (j *judge) unread() bool { return len(j.Permission.Unreadable) > 0 }

func (j *judge) ungoverned() bool {
	return j.Permission.Required && len(j.Permission.Policies) == 0 && !j.unread()
}

// everywhere reports whether the rule is about the account, not about a place.
func (r Rule) everywhere() bool { return r == RulePolicyUnreadable || r == RulePolicyAbsent }

func passNever(*judge, *Candidate) bool { return false }

func tellUnread(j *judge, _ *Candidate) (string, string) {
	return "a policy cannot be read, so nothing is allowed: " + extensions.Clean(strings.Join(j.Permission.Unreadable, "; "), 500),
		"correct that policy"
}

func tellUngoverned(j *judge, _ *Candidate) (string, string) {
	return "no policy covers account " + j.Permission.Account + ", so it is allowed nothing",
		"add a policy for it below policies/ of the catalog"
}

func bindingPolicy(c *Candidate) func(*AccountPolicy) bool {
	return func(p *AccountPolicy) bool { return p.Extensions.permits(c.Binding) }
}

func passAllowedExtension(j *judge, c *Candidate) bool {
	return j.Permission.first(bindingPolicy(c)) == nil
}

func tellAllowedExtension(j *judge, c *Candidate) (string, string) {
	p := j.Permission.first(bindingPolicy(c))
	return p.ID + " " + p.Extensions.verdict(c.Binding, "extensions"), j.askFor(p, "choose another extension")
}

// verdict distinguishes a forbidden name from one that is not allowed.
func (a Access) verdict(name, what string) string {
	switch {
	case slices.Contains(a.Forbidden, name):
		return "forbids " + name
	case len(a.Allowed) == 0:
		return "allows no " + what
	}
	return "does not list " + name + " among its allowed " + what + ": " + strings.Join(a.Allowed, ", ")
}

// hostPolicy passes accounts, which have no host. An unnamed machine is on no list.
func hostPolicy(c *Candidate) func(*AccountPolicy) bool {
	return func(p *AccountPolicy) bool {
		return c.Place == extensions.PlaceAccount || p.Hosts.permits(c.HostName())
	}
}

func passAllowedHost(j *judge, c *Candidate) bool { return j.Permission.first(hostPolicy(c)) == nil }

func tellAllowedHost(j *judge, c *Candidate) (string, string) {
	p := j.Permission.first(hostPolicy(c))
	name := c.HostName()
	if name == "" {
		name = "a machine without a name"
	}
	return p.ID + " " + p.Hosts.verdict(name, "hosts"), j.askFor(p, "choose another host")
}

// regionPolicy is stricter than the region constraint: a place is not allowed if it may run in a region that is unknown or
// not allowed. A vendor with a requested region has no choice.
func (j *judge) regionPolicy(c *Candidate) func(*AccountPolicy) bool {
	return func(p *AccountPolicy) bool {
		if p.Regions.empty() {
			return true
		}
		may := j.mayRunIn(c)
		for _, r := range may {
			if !p.Regions.permitsRegion(r) {
				return false
			}
		}
		return len(may) > 0
	}
}

// mayRunIn lists the regions that c may choose; "*" is any.
func (j *judge) mayRunIn(c *Candidate) []string {
	if c.Place == extensions.PlaceAccount && j.Policy.Region != "" {
		return []string{c.PlacedIn(j.Policy.Region)}
	}
	return c.regions()
}

func (a Access) permitsRegion(r string) bool {
	unknown := r == "*" || r == extensions.RegionUnstated
	for _, f := range a.Forbidden {
		if unknown || inRegion(r, f) || inRegion(f, r) { // "eu" may mean "eu-west"
			return false
		}
	}
	return a.Allowed == nil || !unknown && slices.ContainsFunc(a.Allowed, func(want string) bool { return inRegion(r, want) })
}

func passAllowedRegion(j *judge, c *Candidate) bool {
	return j.Permission.first(j.regionPolicy(c)) == nil
}

func tellAllowedRegion(j *judge, c *Candidate) (string, string) {
	p := j.Permission.first(j.regionPolicy(c))
	says := "allows only " + strings.Join(p.Regions.Allowed, ", ")
	switch {
	case p.Regions.Allowed == nil:
		says = "forbids " + strings.Join(p.Regions.Forbidden, ", ")
	case len(p.Regions.Allowed) == 0:
		says = "allows no region"
	case len(p.Regions.Forbidden) > 0:
		says += " without " + strings.Join(p.Regions.Forbidden, ", ")
	}
	have := j.mayRunIn(c)
	if len(have) == 0 || slices.Contains(have, "*") || slices.Contains(have, extensions.RegionUnstated) {
		return "its region is unknown, but " + p.ID + " " + says, j.askFor(p, "set region on the host or the binding")
	}
	return "it may run in " + strings.Join(have, ", ") + ", but " + p.ID + " " + says,
		j.askFor(p, "set region on the binding to an allowed one")
}

// isolationPolicy requires that no sandbox of this request could be weaker: by the request's own floor, or by all levels of
// the place.
func (j *judge) isolationPolicy(c *Candidate) func(*AccountPolicy) bool {
	return func(p *AccountPolicy) bool {
		if p.RequireIsolation == "" || j.floor.Meets(p.RequireIsolation) {
			return true
		}
		weaker := func(l extensions.Isolation) bool { return !l.Meets(p.RequireIsolation) }
		return len(c.Capabilities.IsolationLevels) > 0 && !slices.ContainsFunc(c.Capabilities.IsolationLevels, weaker)
	}
}

func passAllowedIsolation(j *judge, c *Candidate) bool {
	return j.Permission.first(j.isolationPolicy(c)) == nil
}

func tellAllowedIsolation(j *judge, c *Candidate) (string, string) {
	p := j.Permission.first(j.isolationPolicy(c))
	return "it could run with less isolation than the " + string(p.RequireIsolation) + " that " + p.ID + " requires",
		j.askFor(p, "set isolation.level: "+string(p.RequireIsolation)+" in the profile")
}

func (j *judge) billingPolicy(c *Candidate) func(*AccountPolicy) bool {
	return func(p *AccountPolicy) bool {
		return p.Billing == nil || c.Capabilities.SelfHosted() || slices.Contains(p.Billing, j.billing(c))
	}
}

// billing returns the payer of a place; an unstated one may be the platform.
func (j *judge) billing(c *Candidate) string { return cmp.Or(c.PaidAs(j.Billing), BillingPlatform) }

func passAllowedBilling(j *judge, c *Candidate) bool {
	return j.Permission.first(j.billingPolicy(c)) == nil
}

func tellAllowedBilling(j *judge, c *Candidate) (string, string) {
	p := j.Permission.first(j.billingPolicy(c))
	if len(p.Billing) == 0 {
		return p.ID + " allows no paid place", j.askFor(p, "choose a place of your own")
	}
	help := `set billing = "` + p.Billing[0] + `"`
	if c.Billing != "" && !slices.Contains(p.Billing, c.Billing) {
		help = "choose a place whose binding has billing " + p.Billing[0]
	}
	return p.ID + " allows billing " + strings.Join(p.Billing, ", ") + " only, and this is " + j.billing(c), j.askFor(p, help)
}
