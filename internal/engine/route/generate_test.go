package route

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func pick[T any](t *rapid.T, label string, from ...T) T {
	return rapid.SampledFrom(from).Draw(t, label)
}

func genCandidate(t *rapid.T, i int) Candidate {
	c := able()
	c.Binding, c.Index = fmt.Sprintf("ext.%d", i), i
	c.Place = pick(t, "place", extensions.PlaceAccount, extensions.PlaceMachine, extensions.PlaceHost)
	if c.Place == extensions.PlaceHost {
		c.Host = &extensions.Host{Name: pick(t, "host", "one", "two", "three"), Region: pick(t, "host region", "", "eu", "us"),
			Priority: pick(t, "host priority", int64(0), 3)}
	}
	p := &c.Capabilities
	p.PricingModel = pick(t, "pricing", extensions.PricingSelfHosted, extensions.PricingMetered)
	p.IsolationLevels = extensions.IsolationLevels[:pick(t, "levels", 1, 2, 3, 5)]
	p.Egress = pick(t, "egress", extensions.EgressLevels...)
	p.CIDRPorts = pick(t, "ports", extensions.EgressPortSets...)
	p.MaxTTL = pick(t, "max ttl", 0, time.Hour, 3*time.Hour)
	p.Expiry = pick(t, "expiry", extensions.ExpiryNative, extensions.ExpirySweep)
	p.Limits = extensions.Limits[:pick(t, "limits", 0, 1, 4)]
	c.Find.Strength = pick(t, "find", extensions.FindStrong, extensions.FindNone)
	c.Powers = extensions.Powers[:pick(t, "powers", 0, 5, len(extensions.Powers))]
	c.Region = pick(t, "region", "", "", "eu-1")
	c.Priority = pick(t, "priority", int64(0), 5, -5)
	if rapid.Bool().Draw(t, "priced") {
		c.Price.Hourly = &meter.Money{Amount: meter.Amount(rapid.Int64Range(0, 3).Draw(t, "price") * 1e9),
			Currency: pick(t, "currency", meter.Currency("USD"), "USD", "EUR")}
	}
	if rapid.IntRange(0, 7).Draw(t, "unpriced") == 0 {
		c.Price = Price{Unpriced: &Unpriced{Reason: "it does not fit", Help: "correct its price"}}
	}
	c.Billing = pick(t, "paid", "", "", BillingPlatform, BillingBYOK)
	count := func(label string) *int64 {
		return pick(t, label, nil, ptr(int64(0)), ptr(int64(9)), ptr(int64(10)), ptr(int64(19)), ptr(int64(20)))
	}
	c.Room = Room{Max: count("max"), Live: count("live"), HostLive: count("live on host"), PlaceMax: count("told"), PlaceUsed: count("used")}
	if c.Host != nil && rapid.Bool().Draw(t, "bounded") {
		c.Host.Capacity = &extensions.HostCapacity{MaxSandboxes: 20}
	}
	if rapid.Bool().Draw(t, "shadowed") {
		c.Price.Shadow = &meter.Money{Amount: meter.Amount(rapid.Int64Range(1, 3).Draw(t, "shadow") * 1e9), Currency: "USD"}
	}
	c.Latency = Latency{CreateToReady: time.Duration(rapid.IntRange(0, 3).Draw(t, "seconds")) * time.Second,
		Samples: rapid.IntRange(0, 2).Draw(t, "samples")}
	c.NamedOnly = rapid.IntRange(0, 7).Draw(t, "double") == 0
	if rapid.IntRange(0, 5).Draw(t, "unavailable") == 0 {
		c.Unavailable = &Unavailable{Rule: RuleHostUnfit, Reason: "unfit", Help: "wait"}
	}
	return c
}

func ptr[T any](v T) *T { return &v }

func genQuery(t *rapid.T) Query {
	var q Query
	n := rapid.IntRange(1, 9).Draw(t, "n")
	for i := range n {
		q.Candidates = append(q.Candidates, genCandidate(t, i))
	}
	q.Spec.Isolation = pick(t, "floor", extensions.IsolationLevels[:4]...)
	q.Spec.Network.Default = pick(t, "network", "allow", "deny")
	if rapid.Bool().Draw(t, "rules") {
		q.Spec.Network.Egress = []extensions.EgressRule{{CIDR: "10.0.0.0/8"}}
	}
	q.Spec.TTL = extensions.Duration(pick(t, "ttl", time.Minute, time.Hour, 2*time.Hour))
	if rapid.Bool().Draw(t, "cpu") {
		q.Spec.Resources.CPU = new(extensions.Milli)
	}
	q.DesiredMode = pick(t, "mode", "", "", ModePaused)
	q.Billing = pick(t, "billing", "", BillingPlatform, BillingBYOK)
	q.Prefer, q.Fallback = pick(t, "prefer", nil, []string{"two"}), pick(t, "fallback", nil, []string{"one", "two"})
	q.Policy.Strategy = pick(t, "strategy", "", StrategyPreferSelfHosted, StrategyLowestCost, StrategyLowestLatency)
	q.Policy.Region = pick(t, "in", "", "", "eu")
	if rapid.Bool().Draw(t, "pinned") {
		q.Policy.Extension = fmt.Sprintf("ext.%d", rapid.IntRange(0, n-1).Draw(t, "pin"))
	}
	q.Policy.Fallback = pick(t, "route fallback", nil, []string{"ext.1", "ext.0"})
	q.Policy.AuthMode = pick(t, "auth mode", "", "", "", AuthModeLocal)
	q.Permission = genPermission(t, n)
	if rapid.Bool().Draw(t, "limited") {
		q.Policy.MaxCostPerHour = &meter.Money{Amount: 1e9, Currency: "USD"}
	}
	return q
}

func genPermission(t *rapid.T, n int) Permission {
	p := Permission{Account: "acme/web", Required: rapid.Bool().Draw(t, "required")}
	some := func(label string, from ...string) []string {
		return pick(t, label, nil, nil, from[:len(from)/2], from)
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "policies") {
		a := AccountPolicy{ID: fmt.Sprintf("policy.%d", i),
			RequireIsolation: pick(t, "required isolation", "", "", extensions.IsolationContainer),
			Billing:          pick(t, "billing allowed", nil, nil, []string{BillingBYOK})}
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("ext.%d", i))
		}
		a.Extensions = Access{Allowed: some("allowed", all...), Forbidden: some("forbidden", "ext.1", "ext.2")}
		a.Hosts = Access{Allowed: some("allowed hosts", "one", "two"), Forbidden: some("forbidden hosts", "two", "three")}
		a.Regions = Access{Allowed: some("allowed regions", "eu"), Forbidden: some("forbidden regions", "us")}
		p.Policies = append(p.Policies, a)
	}
	if rapid.IntRange(0, 9).Draw(t, "unreadable") == 0 {
		p.Unreadable = []string{"policies/a.yaml: not YAML"}
	}
	return p
}

// meant is eligible's part about the request itself.
func meant(q Query, c Candidate) bool {
	named := c.Binding == q.Policy.Extension || slices.Contains(q.Policy.Fallback, c.Binding)
	return (!c.NamedOnly || named) && (q.Policy.Extension == "" || named) && (q.Policy.AuthMode == "" || c.Place == extensions.PlaceMachine)
}

// permitted is eligible's part about the account.
func permitted(q Query, c Candidate) bool {
	p := q.Permission
	if len(p.Unreadable) > 0 || p.Required && len(p.Policies) == 0 {
		return false
	}
	in := func(a Access, name string) bool {
		return (a.Allowed == nil || slices.Contains(a.Allowed, name)) && !slices.Contains(a.Forbidden, name)
	}
	region, host := c.Region, ""
	if c.Host != nil {
		host = c.Host.Name
		if region == "" {
			region = c.Host.Region
		}
	}
	if region == "eu-1" {
		region = "eu"
	}
	if region == "" && c.Place == extensions.PlaceAccount { // asked for what is demanded
		region = q.Policy.Region
	}
	if region == "" {
		region = "*"
	}
	for _, a := range p.Policies {
		regional := region == "*" && a.Regions.Allowed == nil && len(a.Regions.Forbidden) == 0 || region != "*" && in(a.Regions, region)
		isolated := a.RequireIsolation == "" || q.Spec.Isolation.Meets(a.RequireIsolation) ||
			c.Capabilities.IsolationLevels[0].Meets(a.RequireIsolation)
		paid := a.Billing == nil || c.Capabilities.PricingModel == extensions.PricingSelfHosted || cmp.Or(q.Billing, c.Billing) == BillingBYOK
		if !in(a.Extensions, c.Binding) || c.Place != extensions.PlaceAccount && !in(a.Hosts, host) || !regional || !isolated || !paid {
			return false
		}
	}
	return true
}

// eligible is what the rules promise, written down a second time and in one
// piece, for what genQuery draws.
func eligible(q Query, c Candidate) bool {
	own := c.Capabilities.PricingModel == extensions.PricingSelfHosted
	last := c.Capabilities.IsolationLevels[len(c.Capabilities.IsolationLevels)-1]
	at := func(l extensions.Isolation) int { return slices.Index(extensions.IsolationLevels, l) }
	need := 0
	if q.Spec.Network.Default == "deny" {
		need = 1 + len(q.Spec.Network.Egress)
	}
	region := c.Region
	if region == "" && c.Host != nil {
		region = c.Host.Region
	}
	anywhere := c.Place == extensions.PlaceAccount && region == ""
	affordable := true
	if q.Policy.MaxCostPerHour != nil {
		affordable = own && c.Price.Hourly == nil || c.Price.Hourly != nil && c.Price.Hourly.Currency == "USD" && c.Price.Hourly.Amount <= 1e9
	}
	full := func(max, live *int64) bool { return max != nil && (*max == 0 || live != nil && *live*10 > *max*9) }
	hosted := c.Host != nil && c.Host.Capacity != nil && full(&c.Host.Capacity.MaxSandboxes, c.Room.HostLive)
	unlike := q.Billing != "" && c.Billing != "" && q.Billing != c.Billing
	pool := !full(c.Room.Max, c.Room.Live) && !full(c.Room.PlaceMax, c.Room.PlaceUsed) && !hosted && (own || !unlike)
	return c.Unavailable == nil && c.Price.Unpriced == nil && meant(q, c) && permitted(q, c) && pool && affordable &&
		at(last) >= at(q.Spec.Isolation) && slices.Index(extensions.EgressLevels, c.Capabilities.Egress) >= need &&
		(need < 2 || c.Capabilities.Egress != extensions.EgressDomainOnly &&
			!slices.Contains([]extensions.EgressPorts{extensions.PortsHTTPS, extensions.PortsOne}, c.Capabilities.CIDRPorts)) &&
		(c.Capabilities.MaxTTL == 0 || time.Duration(q.Spec.TTL) <= c.Capabilities.MaxTTL) &&
		(q.Spec.Resources.CPU == nil || slices.Contains(c.Capabilities.Limits, extensions.LimitCPU)) &&
		(q.DesiredMode != ModePaused || slices.Contains(c.Powers, extensions.PowerPause)) &&
		(own || q.Billing == BillingBYOK || q.Billing == "" && c.Billing == BillingBYOK || c.Capabilities.Expiry == extensions.ExpiryNative ||
			c.Find.Strength == extensions.FindStrong) &&
		(q.Policy.Region == "" || anywhere || region == "eu" || region == "eu-1")
}
