package route

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// judge is a query with values that its rules use repeatedly.
type judge struct {
	*Query
	strategy string
	bindings []string // allowed ones in order; empty = all
	floor    extensions.Isolation
	strong   []extensions.Isolation // levels that meet the floor
	egress   extensions.Egress
	powers   map[extensions.Power]string // needed -> why
	limits   []extensions.Limit          // resources that are limited
	workload string
	rules    []*RuleInfo // those that this query can break
	notes    []func(*judge, *Candidate)
	doubles  bool // some candidate is NamedOnly
	unusable bool // some candidate is Unavailable
	unpriced bool // some candidate is Unpriced
	refused  []refused
	notices  map[string]bool
}

func newJudge(q *Query) *judge {
	j := &judge{Query: q, strategy: q.Policy.Strategy, floor: q.Spec.Isolation, egress: q.Spec.Network.Needs(),
		powers: map[extensions.Power]string{}, notices: map[string]bool{}, limits: q.Spec.Resources.Limits()}
	if j.strategy == "" {
		j.strategy = StrategyPreferSelfHosted
	}
	j.bindings = q.bindings()
	if want := q.Policy.RequireIsolation; want != "" && (j.floor == "" || !j.floor.Meets(want)) {
		j.floor = want
	}
	for _, l := range extensions.IsolationLevels {
		if l.Meets(j.floor) {
			j.strong = append(j.strong, l)
		}
	}
	for _, n := range needs {
		if !n.when(q) {
			continue
		}
		if had := j.powers[n.power]; had != "" {
			j.powers[n.power] = had + ", and " + n.why
			continue
		}
		j.powers[n.power] = n.why
	}
	switch {
	case q.Spec.Image != nil:
		j.workload = "image"
	case q.Spec.Compose != nil:
		j.workload = "compose"
	case q.Spec.Containers != nil:
		j.workload = "containers"
	}
	for i := range q.Candidates {
		c := &q.Candidates[i]
		j.doubles, j.unusable, j.unpriced = j.doubles || c.NamedOnly, j.unusable || c.Unavailable != nil, j.unpriced || c.Price.Unpriced != nil
	}
	for i := range Rules {
		if r := &Rules[i]; r.asked == nil || r.asked(j) {
			j.rules = append(j.rules, r)
		}
	}
	if j.egress != extensions.EgressNone {
		j.notes = append(j.notes, noteNetwork)
	}
	if len(j.limits) > 0 && q.Spec.Resources.BestEffort {
		j.notes = append(j.notes, noteLimits)
	}
	if q.Policy.MaxCostPerHour != nil {
		j.notes = append(j.notes, noteMaxCost)
	}
	return j
}

func (j *judge) notice(format string, args ...any) { j.notices[fmt.Sprintf(format, args...)] = true }

func (j *judge) pinned() bool  { return len(j.bindings) > 0 }
func (j *judge) lacks() bool   { return j.unusable }
func (j *judge) insists() bool { return len(j.Hosts) > 0 }
func (j *judge) hasOrigin() bool {
	return j.Spec.FromSnapshot != nil || j.Spec.FromSandbox != ""
}

func passPin(j *judge, c *Candidate) bool { return slices.Contains(j.bindings, c.Binding) }

func tellPin(j *judge, c *Candidate) (string, string) {
	what := "the profile lists " + strings.Join(j.bindings, ", ")
	switch {
	case j.Policy.ByRequest:
		return "the request names " + j.Policy.Extension, "leave the extension out of the request"
	case j.Policy.Extension != "":
		what = "the profile pins " + j.Policy.Extension
	}
	return what, "add " + c.Binding + " to route.fallback, or remove the pin"
}

func passHost(j *judge, c *Candidate) bool { return slices.Contains(j.Hosts, c.HostName()) }

func tellHost(j *judge, c *Candidate) (string, string) {
	what, help := "it is not on a host", "remove hosts"
	if c.Host != nil {
		what, help = "it is on host "+c.Host.Name, "add "+c.Host.Name+" to hosts, or remove hosts"
	}
	return what + ", but the request requires " + strings.Join(j.Hosts, ", "), help
}

// passNamedOnly keeps test doubles out of real routes: nobody gets a simulated sandbox without asking for one.
func passNamedOnly(j *judge, c *Candidate) bool {
	return !c.NamedOnly || c.Binding == j.Policy.Extension || slices.Contains(j.Policy.Fallback, c.Binding) ||
		j.Origin != nil && c.Binding == j.Origin.Binding
}

func tellNamedOnly(_ *judge, c *Candidate) (string, string) {
	return "it is a test double and runs nothing", "set extension: " + c.Binding + " in the profile to get a simulated sandbox"
}
