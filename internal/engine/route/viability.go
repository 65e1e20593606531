package route

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// available is for what the caller found about a declared place.
func available(rule Rule) func(*judge, *Candidate) bool {
	return func(_ *judge, c *Candidate) bool { return c.Unavailable == nil || c.Unavailable.rule() != rule }
}

func tellUnavailable(_ *judge, c *Candidate) (string, string) {
	reason := c.Unavailable.Reason
	if reason == "" {
		reason = "it cannot be used"
	}
	return reason, c.Unavailable.Help
}

// rule is that of the five which the caller meant.
func (u *Unavailable) rule() Rule {
	switch u.Rule {
	case RuleHandler, RuleNotYet, RuleCredentials, RuleUnreachable:
		return u.Rule
	}
	return RuleHostUnfit
}

func passIsolation(j *judge, c *Candidate) bool {
	levels := c.Capabilities.IsolationLevels
	for i := len(levels) - 1; i >= 0; i-- { // the strongest is the last
		if slices.Contains(j.strong, levels[i]) {
			return true
		}
	}
	return false
}

func tellIsolation(j *judge, c *Candidate) (string, string) {
	strongest := "none that is known"
	if n := len(c.Capabilities.IsolationLevels); n > 0 {
		strongest = string(c.Capabilities.IsolationLevels[n-1])
	}
	return fmt.Sprintf("its strongest isolation is %s, and at least %s is wanted", strongest, j.floor),
		fmt.Sprintf("choose a place with isolation %s, or lower isolation.level if %s is enough for this code", j.floor, strongest)
}

func passEgress(j *judge, c *Candidate) bool {
	return slices.Contains(j.enforces, c.Capabilities.Egress)
}

func tellEgress(j *judge, c *Candidate) (string, string) {
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

// MaxTTL is the longest a sandbox may live at a place; 0 where there is no limit.
func MaxTTL(c extensions.Capabilities) time.Duration {
	limit := c.MaxTTL
	if s := c.MaxSessionDuration; s > 0 && (limit == 0 || s < limit) {
		limit = s
	}
	return limit
}

func passTTL(j *judge, c *Candidate) bool {
	limit := MaxTTL(c.Capabilities)
	return limit == 0 || j.ttl() <= limit
}

func tellTTL(j *judge, c *Candidate) (string, string) {
	limit := MaxTTL(c.Capabilities)
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

func passExpiry(j *judge, c *Candidate) bool {
	return j.billing(c) == BillingBYOK || c.Capabilities.Expiry == extensions.ExpiryNative || c.selfHosted() || c.Find.Recoverable()
}

func tellExpiry(_ *judge, c *Candidate) (string, string) {
	return "it neither ends a sandbox by itself nor finds one again by id, so a lost one would cost platform credit without end", c.ownAccount()
}

// ownAccount is what helps where platform credit cannot pay.
func (c *Candidate) ownAccount() string {
	if c.Billing == BillingPlatform { // the key is the platform's
		return "choose a place where your own account with the vendor bears it"
	}
	return `set billing = "byok", so that your own account with the vendor bears it`
}

// ends reports that a sandbox ends there at its time, whoever watches.
func (c *Candidate) ends() bool {
	return c.Capabilities.Expiry == extensions.ExpiryNative || c.Capabilities.Expiry == extensions.ExpiryHost
}

// passCredit: what a wallet sets aside has to be a bound. That takes a price,
// and an end that comes by itself; of a fee that does not grow with time it does
// not.
func passCredit(_ *judge, c *Candidate) bool {
	switch {
	case c.selfHosted():
		return true
	case c.Credit:
		return c.ends() && !c.Price.Unbounded
	}
	return !c.Fee || c.ends() && !c.Price.FeeUnbounded
}

func tellCredit(_ *judge, c *Candidate) (string, string) {
	switch fee := c.Fee && !c.Credit; {
	case fee && !c.ends():
		return "the wallet would pay a fee as long as it runs, and it does not end a sandbox by itself: what that may cost has no bound",
			"choose a place that ends sandboxes by itself, or have the fee taken per creation"
	case fee:
		return "the wallet would pay a share of what it costs, which is not known", "add a price book for it to the catalog"
	}
	if !c.ends() {
		return "platform credit would pay for it, and it does not end a sandbox by itself: what that may cost has no bound", c.ownAccount()
	}
	return "platform credit would pay for it, and what it costs is not known", "add a price book for it to the catalog, or " + c.ownAccount()
}

func passRegion(j *judge, c *Candidate) bool {
	if one := c.region(); one != "" {
		return inRegion(one, j.Policy.Region)
	}
	for _, have := range c.Capabilities.Regions {
		// A vendor that runs anywhere can run there; where a machine stands is
		// a fact that somebody has to state.
		if inRegion(have, j.Policy.Region) || have == "*" && c.Place == extensions.PlaceAccount {
			return true
		}
	}
	return false
}

func tellRegion(j *judge, c *Candidate) (string, string) {
	have, want := c.regions(), j.Policy.Region
	if c.Place != extensions.PlaceAccount && (len(have) == 0 || slices.Contains(have, "*")) {
		return "nobody said in which region it is, and " + want + " is wanted", "set region on the host or the binding"
	}
	return fmt.Sprintf("it is in %s, and %s is wanted", strings.Join(have, ", "), want), "choose a place in " + want + ", or drop route.constraints.region"
}

// region is the binding's, else the host's; "" where neither states one.
func (c *Candidate) region() string {
	if c.Region == "" && c.Host != nil {
		return c.Host.Region
	}
	return c.Region
}

// PlacedIn is the region that a vendor has to be asked for where want is
// demanded: the binding's, else the first it declares that meets want; "" is
// the vendor's own choice. Of machines it is what their binding says.
func (c *Candidate) PlacedIn(want string) string {
	if c.Region != "" || want == "" || c.Place != extensions.PlaceAccount {
		return c.Region
	}
	if slices.Contains(c.Capabilities.Regions, want) {
		return want
	}
	for _, have := range c.Capabilities.Regions {
		if inRegion(have, want) {
			return have
		}
	}
	return want // it runs anywhere, or is refused
}

// regions is region, else what is declared.
func (c *Candidate) regions() []string {
	if one := c.region(); one != "" {
		return []string{one}
	}
	return c.Capabilities.Regions
}

// inRegion: "eu-west-1" is in "eu-west" and in "eu", "europe" is not.
func inRegion(have, want string) bool {
	rest, ok := strings.CutPrefix(have, want)
	return ok && (rest == "" || rest[0] == '-')
}

func passReadOnly(_ *judge, c *Candidate) bool { return c.Capabilities.ReadOnlyWorkspace }

func tellReadOnly(*judge, *Candidate) (string, string) {
	return "it cannot keep the workspace from being written", "set workspace.access: rw or none"
}

func passSecrets(j *judge, c *Candidate) bool {
	return slices.Contains(c.Capabilities.SecretsAs, j.Spec.Delivery())
}

func tellSecrets(j *judge, c *Candidate) (string, string) {
	if j.Spec.Delivery() == extensions.SecretsFile {
		return "it cannot give secrets as files in memory", "choose a place that can, or set secrets_as: env if its own records may hold them"
	}
	return "it gives secrets as files only", "set secrets_as: file, and read them below " + extensions.SecretsDir
}
