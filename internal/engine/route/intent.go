package route

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// judge is a query with what its rules need again and again.
type judge struct {
	*Query
	strategy string
	bindings []string // allowed ones in order; empty = all
	floor    extensions.Isolation
	strong   []extensions.Isolation // levels that meet the floor
	egress   extensions.Egress
	enforces []extensions.Egress         // levels that include egress
	powers   map[extensions.Power]string // needed -> why
	limits   []string                    // resources that are limited
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
		powers: map[extensions.Power]string{}, notices: map[string]bool{}, limits: limitsOf(q.Spec.Resources)}
	if j.strategy == "" {
		j.strategy = StrategyPreferSelfHosted
	}
	if q.Policy.Extension != "" {
		j.bindings = append(j.bindings, q.Policy.Extension)
	}
	if q.Policy.Extension != "" || j.strategy == StrategyExplicit {
		j.bindings = append(j.bindings, q.Policy.Fallback...)
	}
	if want := q.Policy.RequireIsolation; want != "" && (j.floor == "" || !j.floor.Meets(want)) {
		j.floor = want
	}
	for _, l := range extensions.IsolationLevels {
		if l.Meets(j.floor) {
			j.strong = append(j.strong, l)
		}
	}
	for _, e := range extensions.EgressLevels {
		if e.Includes(j.egress) {
			j.enforces = append(j.enforces, e)
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
	if j.Policy.Extension != "" {
		what = "the profile pins " + j.Policy.Extension
	}
	return what, "add " + c.Binding + " to route.fallback, or remove the pin"
}

func passHost(j *judge, c *Candidate) bool { return slices.Contains(j.Hosts, c.HostName()) }

func tellHost(j *judge, c *Candidate) (string, string) {
	what, help := "it is not on a host", "leave hosts out"
	if c.Host != nil {
		what, help = "it is on host "+c.Host.Name, "add "+c.Host.Name+" to hosts, or leave hosts out"
	}
	return what + ", and the request insists on " + strings.Join(j.Hosts, ", "), help
}

// passNamedOnly keeps test doubles out of real routes: nobody gets a pretended
// sandbox without having asked for one.
func passNamedOnly(j *judge, c *Candidate) bool {
	return !c.NamedOnly || c.Binding == j.Policy.Extension || slices.Contains(j.Policy.Fallback, c.Binding) ||
		j.Origin != nil && c.Binding == j.Origin.Binding
}

func tellNamedOnly(_ *judge, c *Candidate) (string, string) {
	return "it is a test double and runs nothing", "set extension: " + c.Binding + " in the profile where a pretended sandbox is wanted"
}

func tellOrigin(j *judge, c *Candidate) (string, string) {
	what, command := "the sandbox to fork", "sandbox"
	if j.Spec.FromSnapshot != nil {
		what, command = "the snapshot", "snapshot"
	}
	help := "make the new sandbox where the " + command + " is"
	if j.Origin == nil {
		if s := j.Spec.FromSnapshot; s != nil && s.Handle.Extension != "" && s.Handle.Extension != c.Handler {
			return what + " was made by " + s.Handle.Extension, help
		}
		return "", "" // where it will be is not known yet
	}
	if j.Origin.Binding != "" && j.Origin.Binding != c.Binding {
		return what + " lives in " + j.Origin.Binding, help
	}
	// This machine is one place, whatever name a host gives it.
	if host := j.Origin.hostName(); c.Place == extensions.PlaceHost && host != c.HostName() {
		return what + " lives on host " + host, help
	}
	return "", ""
}

// hostName accepts a name or a ref.
func (o *Origin) hostName() string {
	if extensions.IsHostRef(o.Host) {
		if h, err := extensions.ParseHostRef(o.Host); err == nil {
			return h.Name
		}
	}
	return o.Host
}
