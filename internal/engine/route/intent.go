package route

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// judge is a query with what its checks need again and again.
type judge struct {
	*Query
	strategy string
	bindings []string // allowed ones in order; empty = all
	floor    extensions.Isolation
	egress   extensions.Egress
	powers   map[extensions.Power]string // needed -> why
	workload string
	rules    []*RuleInfo // those that this query can break
	notices  map[string]bool
	pending  []string // notices of the candidate being judged
}

func newJudge(q *Query) *judge {
	j := &judge{Query: q, strategy: q.Policy.Strategy, floor: q.Spec.Isolation, egress: q.Spec.Network.Needs(),
		powers: map[extensions.Power]string{}, notices: map[string]bool{}}
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
	for i := range Rules {
		if p := Rules[i].power; p == "" || j.powers[p] != "" {
			j.rules = append(j.rules, &Rules[i])
		}
	}
	switch {
	case q.Spec.Image != nil:
		j.workload = "image"
	case q.Spec.Compose != nil:
		j.workload = "compose"
	case q.Spec.Containers != nil:
		j.workload = "containers"
	}
	return j
}

// notice counts once the candidate has passed every rule.
func (j *judge) notice(format string, args ...any) {
	j.pending = append(j.pending, fmt.Sprintf(format, args...))
}

func checkPin(j *judge, c *Candidate) (string, string) {
	if len(j.bindings) == 0 || slices.Contains(j.bindings, c.Binding) {
		return "", ""
	}
	what := "the profile lists " + strings.Join(j.bindings, ", ")
	if j.Policy.Extension != "" {
		what = "the profile pins " + j.Policy.Extension
	}
	return what, "add " + c.Binding + " to route.fallback, or remove the pin"
}

func checkHost(j *judge, c *Candidate) (string, string) {
	if len(j.Hosts) == 0 || slices.Contains(j.Hosts, c.HostName()) {
		return "", ""
	}
	what := "it is not on a host"
	if c.Host != nil {
		what = "it is on host " + c.Host.Name
	}
	help := "leave hosts out"
	if c.Host != nil {
		help = "add " + c.Host.Name + " to hosts, or leave hosts out"
	}
	return what + ", and the request insists on " + strings.Join(j.Hosts, ", "), help
}

// checkNamedOnly keeps test doubles out of real routes: nobody gets a pretended
// sandbox without having asked for one.
func checkNamedOnly(j *judge, c *Candidate) (string, string) {
	if !c.NamedOnly || c.Binding == j.Policy.Extension || slices.Contains(j.Policy.Fallback, c.Binding) ||
		j.Origin != nil && c.Binding == j.Origin.Binding {
		return "", ""
	}
	return "it is a test double and runs nothing", "set extension: " + c.Binding + " in the profile where a pretended sandbox is wanted"
}

func checkOrigin(j *judge, c *Candidate) (string, string) {
	what, command := "the snapshot", "snapshot"
	switch {
	case j.Spec.FromSnapshot != nil:
	case j.Spec.FromSandbox != "":
		what, command = "the sandbox to fork", "sandbox"
	default:
		return "", ""
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
	if strings.HasPrefix(o.Host, "{") {
		if h, err := extensions.ParseHostRef(o.Host); err == nil {
			return h.Name
		}
	}
	return o.Host
}
