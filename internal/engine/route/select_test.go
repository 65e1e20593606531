package route

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestEveryCandidateIsOrderedOrRefusedAndNeverWrongly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := genQuery(t)
		d := Select(q)
		refused := map[string]Stage{}
		for _, r := range d.Refusals() {
			if r.Reason == "" || r.Help == "" {
				t.Fatalf("a refusal without words: %+v", r)
			}
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
		for _, c := range q.Candidates {
			earliest := StageViability
			switch {
			case !meant(q, c):
				earliest = StageIntent
			case !permitted(q, c):
				earliest = StagePermission
			}
			if s := refused[c.ID()]; s != "" && s != earliest {
				t.Fatalf("%s is refused at %s, and first at %s", c.ID(), s, earliest)
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
			if !strings.Contains(d.Err().Error(), r.Reason) {
				t.Fatalf("the error leaves out %+v", r)
			}
		}
		return
	}
	for _, x := range d.told() {
		if r := d.judge.read(x); !strings.Contains(d.Explain(), r.Candidate+": "+r.Reason+" ("+string(r.Rule)+")") {
			t.Fatalf("it does not explain %+v:\n%s", r, d.Explain())
		}
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
				if !a.Capabilities.SelfHosted() && b.Capabilities.SelfHosted() {
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
	if text := d.Err().Error(); strings.Count(text, "\n") != maxTold+1 || !strings.HasSuffix(text, "- and 5 more reasons of other places") ||
		len(d.Refusals()) != maxTold+5 {
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
		`"reason":"it enforces no network policy, and a denied network (default: deny) is wanted",` +
		`"help":"set network.default: allow if the code may reach everything, or choose a place that enforces this"}],` +
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
Note: placement.prefer names attic, which does not exist.`
	if got := Select(q).Explain(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestExplainKeepsTestDoublesToItself(t *testing.T) {
	t.Parallel()
	a, double := able(), able()
	double.Binding, double.NamedOnly = "ext.double", true
	q := Query{Candidates: []Candidate{a, double}}
	q.Spec.Network.Default = "allow"
	if got := Select(q).Explain(); strings.Contains(got, "double") || strings.Contains(got, "Refused") {
		t.Errorf("beside a place: %s", got)
	}
	q.Candidates = q.Candidates[1:]
	if got := Select(q).Explain(); !strings.Contains(got, "ext.double: it is a test double") {
		t.Errorf("alone: %s", got)
	}
}
