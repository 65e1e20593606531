package route

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// available passes unless the caller found the place unusable by this rule.
func available(rule Rule) func(*judge, *Candidate) bool {
	return func(_ *judge, c *Candidate) bool { return c.Unavailable == nil || c.Unavailable.Rule != rule }
}

func tellUnavailable(_ *judge, c *Candidate) (string, string) {
	return c.Unavailable.Reason, c.Unavailable.Help
}

func passIsolation(j *judge, c *Candidate) bool {
	levels := c.Capabilities.IsolationLevels
	if j.Spec.Direct {
		return j.floor == extensions.IsolationNone && slices.Contains(levels, extensions.IsolationNone)
	}
	for i := len(levels) - 1; i >= 0; i-- { // the last is the strongest
		if slices.Contains(j.strong, levels[i]) {
			return true
		}
	}
	return false
}

func tellIsolation(j *judge, c *Candidate) (string, string) {
	switch {
	case j.Spec.Direct && j.floor != extensions.IsolationNone:
		return fmt.Sprintf("the profile's route needs at least isolation %s, but the request asks for none", j.floor),
			"leave out the isolation, or remove route.constraints.require_isolation from the profile"
	case j.Spec.Direct:
		return "it does not run commands without isolation", "choose ext.local, which runs on this machine"
	}
	strongest := "none that is known"
	if n := len(c.Capabilities.IsolationLevels); n > 0 {
		strongest = string(c.Capabilities.IsolationLevels[n-1])
	}
	return fmt.Sprintf("its strongest isolation is %s, but the request needs at least %s", strongest, j.floor),
		fmt.Sprintf("choose a place with isolation %s, or lower isolation.level if %s is enough for this code", j.floor, strongest)
}

func passEgress(j *judge, c *Candidate) bool {
	return c.Capabilities.Egress.Includes(j.egress)
}

func tellEgress(j *judge, c *Candidate) (string, string) {
	wants := map[extensions.Egress]string{
		extensions.EgressDenyOnly:   "a denied network (default: deny)",
		extensions.EgressCIDR:       "an allowlist of networks",
		extensions.EgressDomainOnly: "an allowlist of names",
		extensions.EgressDomain:     "an allowlist of networks and names",
	}[j.egress]
	can := map[extensions.Egress]string{
		extensions.EgressNone:       "it enforces no network policy",
		extensions.EgressDenyOnly:   "it can only deny the whole network",
		extensions.EgressCIDR:       "it can only allow networks, not names",
		extensions.EgressDomainOnly: "it can only allow names, not networks",
	}[c.Capabilities.Egress]
	if can == "" {
		can = "its enforcement is unknown"
	}
	help := "set network.default: allow if the code may reach everything, or choose a place that enforces this"
	if c.Capabilities.Egress.Includes(extensions.EgressDenyOnly) {
		help = "remove network.egress to deny the whole network, or choose a place that enforces allowlists"
	}
	return can + ", and " + wants + " is wanted", help
}

// passPorts leaves rules that the place does not have at all to passEgress.
func passPorts(j *judge, c *Candidate) bool {
	return !passEgress(j, c) || len(c.Capabilities.Unnamed(j.Spec.Network)) == 0
}

func tellPorts(j *judge, c *Candidate) (string, string) {
	return c.Capabilities.TellUnnamed(j.Spec.Network)
}

// noteNetwork tells what default deny leaves open.
func noteNetwork(j *judge, c *Candidate) {
	if c.Capabilities.DNS.OpenUnder(j.Spec.Network) {
		j.notice("%s leaves DNS open although the network is denied: data can leak through DNS queries", c.ID())
	}
	if c.Capabilities.Ingress == extensions.IngressPublic {
		j.notice("%s leaves the ports of a sandbox open to anyone who knows its address", c.ID())
	}
}

// MaxTTL returns the longest ttl at a place; 0 = no limit.
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

// short omits the zero minutes and seconds of Go's format.
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
	return j.billing(c) == BillingBYOK || c.Capabilities.Expiry == extensions.ExpiryNative || c.Capabilities.SelfHosted() ||
		c.Find.Recoverable()
}

func tellExpiry(_ *judge, c *Candidate) (string, string) {
	return "it neither ends a sandbox itself nor finds one by ID, so a lost one would use platform credit without end", c.ownAccount()
}

// ownAccount returns the remedy if platform credit cannot pay.
func (c *Candidate) ownAccount() string {
	if c.Billing == BillingPlatform { // the key is the platform's
		return "choose a place that your own account with the vendor pays"
	}
	return `set billing = "byok", so that your own account with the vendor pays`
}

// ends reports whether the place ends the sandbox on time by itself, paused if it is to be.
func (j *judge) ends(c *Candidate) bool {
	by := c.Capabilities.Expiry
	if j.DesiredMode == ModePaused {
		by = c.Capabilities.PausedExpiry
	}
	return by == extensions.ExpiryNative || by == extensions.ExpiryHost
}

// passCredit: a hold must be bounded. That takes a price and an end enforced by the place; a fee that does not grow with
// time needs neither.
func passCredit(j *judge, c *Candidate) bool {
	switch {
	case c.Capabilities.SelfHosted():
		return true
	case c.Credit:
		return j.ends(c) && !c.Price.Unbounded
	}
	return !c.Fee || j.ends(c) && !c.Price.FeeUnbounded
}

func tellCredit(j *judge, c *Candidate) (string, string) {
	sandbox := "a sandbox"
	if j.DesiredMode == ModePaused {
		sandbox = "a paused one"
	}
	switch fee := c.Fee && !c.Credit; {
	case fee && !j.ends(c):
		return "the wallet would pay a fee while it runs, and it does not end " + sandbox + " itself: the cost has no limit",
			"choose a place that ends sandboxes itself, or charge the fee per creation"
	case fee:
		return "the wallet would pay a share of its price, which is unknown", "add a price book for it to the catalog"
	}
	if !j.ends(c) {
		return "platform credit would pay for it, and it does not end " + sandbox + " itself: the cost has no limit", c.ownAccount()
	}
	return "platform credit would pay for it, and its price is unknown", "add a price book for it to the catalog, or " + c.ownAccount()
}

func passRegion(j *judge, c *Candidate) bool {
	if one := c.region(); one != "" {
		return inRegion(one, j.Policy.Region)
	}
	for _, have := range c.Capabilities.Regions {
		// A vendor that runs anywhere can run there; a machine's region must be stated.
		if have != extensions.RegionUnstated && inRegion(have, j.Policy.Region) || have == "*" && c.Place == extensions.PlaceAccount {
			return true
		}
	}
	return false
}

func tellRegion(j *judge, c *Candidate) (string, string) {
	have, want := c.regions(), j.Policy.Region
	nowhere := len(have) == 0 || slices.Contains(have, "*")
	if c.Place != extensions.PlaceAccount && nowhere || slices.Contains(have, extensions.RegionUnstated) {
		return "its region is unknown, but the request needs " + want, "set region on the host or the binding"
	}
	return fmt.Sprintf("it is in %s, but the request needs %s", strings.Join(have, ", "), want), "choose a place in " + want +
		", or drop route.constraints.region"
}

// region is the binding's, else the host's; "" where neither states one.
func (c *Candidate) region() string {
	if c.Region == "" && c.Host != nil {
		return c.Host.Region
	}
	return c.Region
}

// PlacedIn returns the region to request from a vendor if want is demanded: the
// binding's, else its first declared one that matches want; "" is the vendor's own
// choice. For machines it is the binding's.
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
	return want // it runs anywhere, or it is refused
}

// regions returns region, else the declared ones.
func (c *Candidate) regions() []string {
	if one := c.region(); one != "" {
		return []string{one}
	}
	return c.Capabilities.Regions
}

// inRegion: "eu-west-1" is in "eu-west" and in "eu", but not in "europe".
func inRegion(have, want string) bool {
	rest, ok := strings.CutPrefix(have, want)
	return ok && (rest == "" || rest[0] == '-')
}

func passReadOnly(_ *judge, c *Candidate) bool { return c.Capabilities.ReadOnlyWorkspace }

func tellReadOnly(*judge, *Candidate) (string, string) {
	return "it cannot make the workspace read-only", "set workspace.access: rw or none"
}

func passEntrypoint(j *judge, c *Candidate) bool {
	return slices.Contains(c.Capabilities.Entrypoints, j.Spec.Entrypoint.Mode)
}

func tellEntrypoint(j *judge, c *Candidate) (string, string) {
	what := "the image's own entrypoint"
	if j.Spec.Entrypoint.Mode == extensions.EntrypointArgv {
		what = "a command as the entrypoint"
	}
	help := "remove entrypoint and run the program as a command, or choose a place that runs it"
	if j.Spec.Entrypoint.Mode == extensions.EntrypointImage && slices.Contains(c.Capabilities.Entrypoints, extensions.EntrypointArgv) {
		help = "write the image's command as entrypoint: [program, argument], or choose a place that runs it"
	}
	return "it cannot run " + what, help
}

func passIdleReap(j *judge, c *Candidate) bool {
	return c.Capabilities.CheckIdleReap(j.Spec.IdleReap) == nil
}

func tellIdleReap(*judge, *Candidate) (string, string) {
	return "it does not end idle sandboxes, so ttl.idle_reap would have no effect",
		"remove ttl.idle_reap and set a shorter ttl, or choose " +
			"a place that ends idle sandboxes"
}

func passSecrets(j *judge, c *Candidate) bool {
	return slices.Contains(c.Capabilities.SecretsAs, j.Spec.Delivery())
}

func tellSecrets(j *judge, c *Candidate) (string, string) {
	if j.Spec.Delivery() == extensions.SecretsFile {
		return "it cannot deliver secrets as files in memory",
			"choose a place that can, or set secrets_as: env if its own records may contain them"
	}
	return "it delivers secrets only as files", "set secrets_as: file, and read them below " + extensions.SecretsDir
}
