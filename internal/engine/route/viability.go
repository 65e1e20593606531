package route

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// unavailable passes on what the caller found about a declared place.
func unavailable(rule Rule) check {
	return func(_ *judge, c *Candidate) (string, string) {
		if c.Unavailable == nil || c.Unavailable.rule() != rule {
			return "", ""
		}
		reason := c.Unavailable.Reason
		if reason == "" {
			reason = "it cannot be used"
		}
		return reason, c.Unavailable.Help
	}
}

// rule is that of the four which the caller meant.
func (u *Unavailable) rule() Rule {
	switch u.Rule {
	case RuleHandler, RuleNotYet, RuleCredentials:
		return u.Rule
	}
	return RuleHostUnfit
}

func checkIsolation(j *judge, c *Candidate) (string, string) {
	if j.floor == "" || slices.ContainsFunc(c.Capabilities.IsolationLevels, func(l extensions.Isolation) bool { return l.Meets(j.floor) }) {
		return "", ""
	}
	strongest := "none that is known"
	if n := len(c.Capabilities.IsolationLevels); n > 0 {
		strongest = string(c.Capabilities.IsolationLevels[n-1])
	}
	return fmt.Sprintf("its strongest isolation is %s, and at least %s is wanted", strongest, j.floor),
		fmt.Sprintf("choose a place with isolation %s, or lower isolation.level if %s is enough for this code", j.floor, strongest)
}

func checkEgress(j *judge, c *Candidate) (string, string) {
	if j.egress == extensions.EgressNone || c.Capabilities.Egress.Includes(j.egress) {
		return "", ""
	}
	wants := map[extensions.Egress]string{
		extensions.EgressDenyOnly: "a shut network (default: deny)",
		extensions.EgressCIDR:     "an allowlist of networks",
		extensions.EgressDomain:   "an allowlist of names",
	}[j.egress]
	can := map[extensions.Egress]string{
		extensions.EgressNone:     "it enforces no network policy",
		extensions.EgressDenyOnly: "it can only shut the network as a whole",
		extensions.EgressCIDR:     "it can only allow networks, not names",
	}[c.Capabilities.Egress]
	if can == "" {
		can = "what it enforces is not known"
	}
	help := "set network.default: allow if the code may reach everything, or choose a place that enforces it"
	if c.Capabilities.Egress.Includes(extensions.EgressDenyOnly) {
		help = "remove network.egress to shut the network, or choose a place that enforces allowlists"
	}
	return can + ", and " + wants + " is wanted", help
}

func checkTTL(j *judge, c *Candidate) (string, string) {
	limit := c.Capabilities.MaxTTL
	if s := c.Capabilities.MaxSessionDuration; s > 0 && (limit == 0 || s < limit) {
		limit = s
	}
	if limit == 0 || j.ttl() <= limit {
		return "", ""
	}
	return fmt.Sprintf("the ttl %s is above its maximum of %s", short(j.ttl()), short(limit)), "set a ttl of at most " + short(limit)
}

// short drops the zero minutes and seconds Go writes.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func checkExpiry(j *judge, c *Candidate) (string, string) {
	if c.selfHosted() || j.Billing == BillingBYOK || c.Capabilities.Expiry == extensions.ExpiryNative || c.Find.Recoverable() {
		return "", ""
	}
	return "it neither ends a sandbox by itself nor finds one again by id, so a lost one would cost platform credit without end",
		`set billing = "byok", so that your own account with the vendor bears it`
}

func checkRegion(j *judge, c *Candidate) (string, string) {
	want := j.Policy.Region
	if want == "" {
		return "", ""
	}
	have := c.regions()
	if slices.ContainsFunc(have, func(r string) bool { return inRegion(r, want) }) {
		return "", ""
	}
	// A vendor that runs anywhere can run there; where a machine stands is a
	// fact that somebody has to state.
	if c.Place == extensions.PlaceAccount && slices.Contains(have, "*") {
		return "", ""
	}
	if c.Place != extensions.PlaceAccount && (len(have) == 0 || slices.Contains(have, "*")) {
		return "nobody said in which region it is, and " + want + " is wanted", "set region on the host or the binding"
	}
	return fmt.Sprintf("it is in %s, and %s is wanted", strings.Join(have, ", "), want), "choose a place in " + want + ", or drop route.constraints.region"
}

// regions are the binding's, else the host's, else what is declared.
func (c *Candidate) regions() []string {
	switch {
	case c.Region != "":
		return []string{c.Region}
	case c.Host != nil && c.Host.Region != "":
		return []string{c.Host.Region}
	}
	return c.Capabilities.Regions
}

// inRegion: "eu-west-1" is in "eu-west" and in "eu", "europe" is not.
func inRegion(have, want string) bool {
	rest, ok := strings.CutPrefix(have, want)
	return ok && (rest == "" || rest[0] == '-')
}

func checkReadOnly(j *judge, c *Candidate) (string, string) {
	if j.Spec.Workspace.Access != extensions.AccessRO || c.Capabilities.ReadOnlyWorkspace {
		return "", ""
	}
	return "it cannot keep the workspace from being written", "set workspace.access: rw or none"
}
