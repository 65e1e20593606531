package route

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
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
		c.Host = &extensions.Host{Name: pick(t, "host", "one", "two", "three"), Region: pick(t, "host region", "", "eu", "us"), Priority: pick(t, "host priority", int64(0), 3)}
	}
	p := &c.Capabilities
	p.PricingModel = pick(t, "pricing", extensions.PricingSelfHosted, extensions.PricingMetered)
	p.IsolationLevels = extensions.IsolationLevels[:pick(t, "levels", 1, 2, 3, 5)]
	p.Egress = pick(t, "egress", extensions.EgressLevels...)
	p.MaxTTL = pick(t, "max ttl", 0, time.Hour, 3*time.Hour)
	p.Expiry = pick(t, "expiry", extensions.ExpiryNative, extensions.ExpirySweep)
	p.EnforcesResourceLimits = rapid.Bool().Draw(t, "limits")
	c.Find.Strength = pick(t, "find", extensions.FindStrong, extensions.FindNone)
	c.Powers = extensions.Powers[:pick(t, "powers", 0, 5, len(extensions.Powers))]
	c.Region = pick(t, "region", "", "", "eu-1")
	c.Priority = pick(t, "priority", int64(0), 5, -5)
	if rapid.Bool().Draw(t, "priced") {
		c.Price.Hourly = &meter.Money{Amount: meter.Amount(rapid.Int64Range(0, 3).Draw(t, "price") * 1e9), Currency: pick(t, "currency", meter.Currency("USD"), "USD", "EUR")}
	}
	c.Billing = pick(t, "paid", "", "", BillingPlatform, BillingBYOK)
	count := func(label string) *int64 {
		return pick(t, label, nil, ptr(int64(0)), ptr(int64(9)), ptr(int64(10)), ptr(int64(19)), ptr(int64(20)))
	}
	c.Room = Room{Max: count("max"), Live: count("live"), HostLive: count("live on host")}
	if c.Host != nil && rapid.Bool().Draw(t, "bounded") {
		c.Host.Capacity = &extensions.HostCapacity{MaxSandboxes: 20}
	}
	if rapid.Bool().Draw(t, "shadowed") {
		c.Price.Shadow = &meter.Money{Amount: meter.Amount(rapid.Int64Range(1, 3).Draw(t, "shadow") * 1e9), Currency: "USD"}
	}
	c.Latency = Latency{CreateToReady: time.Duration(rapid.IntRange(0, 3).Draw(t, "seconds")) * time.Second, Samples: rapid.IntRange(0, 2).Draw(t, "samples")}
	if rapid.IntRange(0, 5).Draw(t, "unavailable") == 0 {
		c.Unavailable = &Unavailable{Rule: RuleNotYet, Reason: "not yet", Help: "wait"}
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
		a := AccountPolicy{ID: fmt.Sprintf("policy.%d", i), RequireIsolation: pick(t, "required isolation", "", "", extensions.IsolationContainer),
			Billing: pick(t, "billing allowed", nil, nil, []string{BillingBYOK})}
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
	if region == "" {
		region = "*"
	}
	for _, a := range p.Policies {
		regional := region == "*" && a.Regions.Allowed == nil && len(a.Regions.Forbidden) == 0 || region != "*" && in(a.Regions, region)
		isolated := a.RequireIsolation == "" || q.Spec.Isolation.Meets(a.RequireIsolation) || c.Capabilities.IsolationLevels[0].Meets(a.RequireIsolation)
		paid := a.Billing == nil || c.Capabilities.PricingModel == extensions.PricingSelfHosted || q.Billing == BillingBYOK
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
	billing := cmp.Or(q.Billing, BillingPlatform)
	pool := !full(c.Room.Max, c.Room.Live) && !hosted && (own || c.Billing == "" || c.Billing == billing) &&
		(q.Policy.AuthMode == "" || c.Place != extensions.PlaceAccount)
	named := c.Binding == q.Policy.Extension || slices.Contains(q.Policy.Fallback, c.Binding)
	return c.Unavailable == nil && permitted(q, c) && pool && affordable && (!c.NamedOnly || named) &&
		(q.Policy.Extension == "" || c.Binding == q.Policy.Extension || slices.Contains(q.Policy.Fallback, c.Binding)) &&
		at(last) >= at(q.Spec.Isolation) && slices.Index(extensions.EgressLevels, c.Capabilities.Egress) >= need &&
		(c.Capabilities.MaxTTL == 0 || time.Duration(q.Spec.TTL) <= c.Capabilities.MaxTTL) &&
		(q.Spec.Resources.CPU == nil || c.Capabilities.EnforcesResourceLimits) &&
		(q.DesiredMode != ModePaused || slices.Contains(c.Powers, extensions.PowerPause)) &&
		(own || q.Billing == BillingBYOK || c.Capabilities.Expiry == extensions.ExpiryNative || c.Find.Strength == extensions.FindStrong) &&
		(q.Policy.Region == "" || anywhere || region == "eu" || region == "eu-1")
}

func TestEveryCandidateIsOrderedOrRefusedAndNeverWrongly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := genQuery(t)
		d := Select(q)
		refused := map[string]Stage{}
		for _, r := range d.Refusals() {
			if s, ok := refused[r.Candidate]; ok && s != r.Stage {
				t.Fatalf("%s is refused at %s and at %s", r.Candidate, s, r.Stage)
			}
			refused[r.Candidate] = r.Stage
		}
		ordered := map[string]bool{}
		for _, c := range d.Order {
			if ordered[c.ID()] {
				t.Fatalf("%s is ordered twice", c.ID())
			}
			ordered[c.ID()] = true
		}
		for _, c := range q.Candidates {
			if want := eligible(q, c); ordered[c.ID()] != want || (refused[c.ID()] == "") != want {
				t.Fatalf("%s: eligible %v, ordered %v, refused at %q\n%s", c.ID(), want, ordered[c.ID()], refused[c.ID()], tell(d))
			}
		}
		if len(ordered)+len(refused) != len(q.Candidates) {
			t.Fatalf("%d ordered, %d refused of %d", len(ordered), len(refused), len(q.Candidates))
		}
		wantChoice(t, d)
	})
}

func wantChoice(t *rapid.T, d Decision) {
	if len(d.Order) == 0 {
		for _, x := range d.told() {
			want := extensions.KindUnsupported
			if x.rule.ID == RuleCapacity {
				want = extensions.KindExhausted
			}
			if k := extensions.KindOf(d.Err()); k != extensions.KindUnsupported && k != want {
				t.Fatalf("%s, and %s refused", k, x.rule.ID)
			}
		}
		if d.Chosen != nil || d.Err() == nil {
			t.Fatalf("chose %v, %v", d.Chosen, d.Err())
		}
		for _, x := range d.told() {
			r := d.judge.read(x)
			if r.Reason == "" || r.Help == "" {
				t.Fatalf("a refusal without words: %+v", r)
			}
			if !strings.Contains(d.Err().Error(), r.Reason) {
				t.Fatalf("the error leaves out %+v", r)
			}
		}
		return
	}
	if d.Err() != nil || d.Chosen != d.Order[0] || !slices.Equal(d.Fallbacks, d.Order[1:1+len(d.Fallbacks)]) {
		t.Fatalf("the choice is not the head of the order:\n%s", tell(d))
	}
}

func TestShufflingTheCandidatesChangesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := genQuery(t)
		first := everything(t, Select(q))
		q.Candidates = rapid.Permutation(q.Candidates).Draw(t, "shuffled")
		if again := everything(t, Select(q)); again != first {
			t.Fatalf("first\n%s\nthen\n%s", first, again)
		}
	})
}

func everything(t *rapid.T, d Decision) string {
	j, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return tell(d) + d.Explain() + string(j)
}

func TestAnOrderRespectsItsStrategy(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := genQuery(t)
		q.Policy.Extension, q.Policy.Fallback, q.Policy.MaxCostPerHour = "", nil, nil
		for i := range q.Candidates {
			if p := q.Candidates[i].Price.Hourly; p != nil {
				p.Currency = "USD"
			}
		}
		d := Select(q)
		for i := 1; i < len(d.Order); i++ {
			a, b := d.Order[i-1], d.Order[i]
			switch q.Policy.Strategy {
			case StrategyLowestCost:
				if wanted(a.Price.Hourly, a) > wanted(b.Price.Hourly, b) {
					t.Fatalf("dear %s before cheap %s", a.ID(), b.ID())
				}
			case StrategyLowestLatency:
				if x, y := a.Latency.CreateToReady, b.Latency.CreateToReady; y > 0 && (x == 0 || x > y) {
					t.Fatalf("slow %s before fast %s", a.ID(), b.ID())
				}
			default:
				if !a.selfHosted() && b.selfHosted() {
					t.Fatalf("metered %s before self-hosted %s", a.ID(), b.ID())
				}
			}
		}
	})
}

// wanted is what lowest-cost counts, in whole units; unknown is above all.
func wanted(hourly *meter.Money, c *Candidate) int64 {
	free := hourly == nil || hourly.Amount == 0
	switch {
	case c.Capabilities.PricingModel == extensions.PricingSelfHosted && free && c.Price.Shadow != nil:
		return int64(c.Price.Shadow.Amount / 1e9)
	case hourly == nil:
		return 1000
	}
	return int64(hourly.Amount / 1e9)
}

func TestALongListOfRefusalsIsCutVisibly(t *testing.T) {
	t.Parallel()
	var q Query
	for i := range maxTold + 5 {
		c := able()
		c.Binding, c.Capabilities.GPU = fmt.Sprintf("ext.%02d", i), false
		q.Candidates = append(q.Candidates, c)
	}
	q.Spec.Resources.GPU = &extensions.GPU{Count: 1}
	d := Select(q)
	if text := d.Err().Error(); strings.Count(text, "\n") != maxTold+1 || !strings.HasSuffix(text, "- and 5 more reasons of other places") || len(d.Refusals()) != maxTold+5 {
		t.Errorf("%d refusals told as\n%s", len(d.Refusals()), text)
	}
}

func TestTheJSONFormIsStable(t *testing.T) {
	t.Parallel()
	a, b := able(), able()
	b.Binding, b.Capabilities.Egress = "ext.bad", extensions.EgressNone
	q := Query{Candidates: []Candidate{a, b}}
	q.Spec.Network.Default = "deny"
	d := Select(q)
	d.Attempts = append(d.Attempts, Attempt{Candidate: "ext.able", Outcome: "ready"})
	got, err := json.Marshal(d)
	const want = `{"strategy":"prefer-self-hosted","chosen":"ext.able","why":"it is the only place that can run it","order":["ext.able"],"fallbacks":[],` +
		`"refusals":[{"candidate":"ext.bad","extension":"ext.bad","stage":"viability","rule":"viability.egress",` +
		`"reason":"it enforces no network policy, and a shut network (default: deny) is wanted",` +
		`"help":"set network.default: allow if the code may reach everything, or choose a place that enforces it"}],` +
		`"notices":[],"attempts":[{"candidate":"ext.able","outcome":"ready"}]}`
	if err != nil || string(got) != want {
		t.Errorf("got\n%s, %v\nwant\n%s", got, err, want)
	}
}

func TestExplainTellsChoiceFallbacksRefusalsAndNotes(t *testing.T) {
	t.Parallel()
	a, b, c := able(), able(), able()
	b.Binding, b.Priority = "ext.next", -1
	c.Binding, c.Capabilities.GPU = "ext.small", false
	q := Query{Candidates: []Candidate{a, b, c}, Prefer: []string{"attic"}}
	q.Spec.Network.Default = "allow"
	q.Spec.Resources.GPU = &extensions.GPU{Count: 1}
	const want = `ext.able: its priority is higher.
If it has no room: ext.next.
Refused:
- ext.small: it has no GPU (viability.gpu). What would help: remove resources.gpu, or choose a place with one.
Note: placement.prefer names attic, which is not there.`
	if got := Select(q).Explain(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestNeedsNamesEachPowerOnce(t *testing.T) {
	t.Parallel()
	var q Query
	if n := Needs(q); len(n) != 0 {
		t.Errorf("an empty request needs %v", n)
	}
	q.Spec.Readiness = &extensions.Probe{Command: []string{"true"}}
	q.Spec.Toolchain.Install = []string{"make"}
	q.Spec.Workspace = extensions.Workspace{Mode: extensions.WorkspaceMirror, Access: extensions.AccessRW}
	if n := Needs(q); !slices.Equal(n, []extensions.Power{extensions.PowerExec, extensions.PowerFiles}) {
		t.Errorf("got %v", n)
	}
}

// Ten thousand places: vendors' accounts, of which a share is refused, and a
// hundred extensions on a hundred hosts, by price.
func BenchmarkSelect10000(b *testing.B) {
	base := Query{}
	base.Spec.Network.Default = "deny"
	base.Spec.Isolation = extensions.IsolationContainer
	base.Spec.TTL = extensions.Duration(2 * time.Hour)
	for _, share := range []int{0, 50, 100} {
		q := base
		for i := range 10_000 {
			c := able()
			c.Binding, c.Index, c.Priority = fmt.Sprintf("ext.%d", i*7919%10_000), i, int64(i%13)
			if i%100 < share {
				c.Capabilities.MaxTTL = time.Hour
			}
			q.Candidates = append(q.Candidates, c)
		}
		b.Run(fmt.Sprintf("refused=%d%%", share), func(b *testing.B) { benchmarkSelect(b, q) })
	}
	q := base
	q.Policy.Strategy, q.Policy.Region, q.Prefer = StrategyLowestCost, "eu", []string{"host-7"}
	for i := range 10_000 {
		c := able()
		c.Binding, c.Place, c.Index = fmt.Sprintf("ext.%d", i%100), extensions.PlaceHost, i%100
		c.Host = &extensions.Host{Name: fmt.Sprintf("host-%d", i/100*37%100), Region: "eu-west", Priority: int64(i % 7)}
		c.Price.Hourly = &meter.Money{Amount: meter.Amount(i * 7919 % 997 * 1_000_003), Currency: "USD"}
		q.Candidates = append(q.Candidates, c)
	}
	b.Run("hosts by price", func(b *testing.B) { benchmarkSelect(b, q) })
}

func benchmarkSelect(b *testing.B, q Query) {
	var took []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		d := Select(q)
		took = append(took, time.Since(start))
		if len(d.Order)+len(d.judge.refused) != 10_000 {
			b.Fatal(len(d.Order), len(d.judge.refused))
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
	b.ReportMetric(float64(took[0].Microseconds())/1000, "fastest-ms")
}
