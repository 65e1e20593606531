package route

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Select decides where a sandbox runs. The answer depends on q alone and not
// on the order of q.Candidates, to which the Decision points.
func Select(q Query) Decision {
	j := newJudge(&q)
	d := Decision{Strategy: j.strategy}
	if err := j.check(); err != nil {
		d.err = err
		return d
	}
	var eligible []*Candidate
	var refused []Refusal
	for i := range q.Candidates {
		c, before := &q.Candidates[i], len(refused)
		if refused = j.judge(c, refused); len(refused) == before {
			eligible = append(eligible, c)
		}
	}
	d.Order, d.Refusals = j.order(eligible), byCandidate(refused)
	d.Notices = slices.Sorted(maps.Keys(j.notices))
	if len(d.Order) == 0 {
		d.err = d.refused(j)
		return d
	}
	d.Chosen, d.Fallbacks = d.Order[0], j.fallbacks(d.Order)
	d.Why = j.why(d.Order)
	return d
}

// judge applies the rules stage by stage and appends what they refuse; the
// first stage that refuses ends it, with all it has against the candidate.
func (j *judge) judge(c *Candidate, refused []Refusal) []Refusal {
	before := len(refused)
	j.pending = j.pending[:0]
	for _, r := range j.rules {
		if len(refused) > before && (refused[before].Stage != r.Stage || c.NamedOnly || c.Unavailable != nil && r.Stage == StageViability) {
			break // what cannot be used at all is not picked apart
		}
		if reason, help := r.check(j, c); reason != "" {
			help = j.helpOnHost(r, c, help)
			refused = append(refused, Refusal{Candidate: c.ID(), Extension: c.Binding, Host: c.HostName(), Stage: r.Stage, Rule: r.ID, Reason: reason, Help: help})
		}
	}
	if len(refused) == before {
		for _, n := range j.pending {
			j.notices[n] = true
		}
	}
	return refused
}

// helpOnHost says what would make a rule pass on c's host, where the
// extension passes it and only the host is to blame.
func (j *judge) helpOnHost(r *RuleInfo, c *Candidate, help string) string {
	if c.Ceiling == nil || len(c.Narrowed) == 0 {
		return help
	}
	elsewhere, pending := *c, len(j.pending)
	elsewhere.Capabilities = *c.Ceiling
	reason, _ := r.check(j, &elsewhere)
	j.pending = j.pending[:pending]
	if reason != "" {
		return help
	}
	return "on this host: " + strings.Join(about(r.ID, c.Narrowed), "; ")
}

// about picks the reasons that concern the rule: each begins with what it is
// about, as the rule's name ends with it. Where none does, all may.
func about(rule Rule, reasons []string) []string {
	topic := string(rule)[strings.LastIndexByte(string(rule), '.')+1:] + ": "
	var out []string
	for _, reason := range reasons {
		if text, ok := strings.CutPrefix(reason, topic); ok {
			out = append(out, text)
		}
	}
	if len(out) == 0 {
		return reasons
	}
	return out
}

// byCandidate sorts by candidate and keeps the order of rules. It moves
// indexes, because a Refusal is large.
func byCandidate(refused []Refusal) []Refusal {
	at := make([]int, len(refused))
	for i := range at {
		at[i] = i
	}
	slices.SortFunc(at, func(a, b int) int {
		return cmp.Or(strings.Compare(refused[a].Candidate, refused[b].Candidate), a-b)
	})
	sorted := make([]Refusal, len(refused))
	for i, from := range at {
		sorted[i] = refused[from]
	}
	return sorted
}

// check refuses queries that make no sense, whatever the candidates can do.
func (j *judge) check() error {
	strategies := []string{StrategyPreferSelfHosted, StrategyExplicit, StrategyLowestCost, StrategyLowestLatency}
	switch {
	case !slices.Contains(strategies, j.strategy):
		return invalid("unknown strategy %q", j.strategy).At("route.strategy").WithRemedy("%s", didYouMean(j.strategy, strategies))
	case j.strategy == StrategyLowestLatency:
		return invalid("the strategy %s comes with a later release", j.strategy).At("route.strategy").
			WithRemedy("use %s, %s or %s", StrategyPreferSelfHosted, StrategyLowestCost, StrategyExplicit)
	case j.strategy == StrategyExplicit && len(j.bindings) == 0 && len(j.Hosts) == 0:
		return invalid("the strategy explicit needs to be told a place").At("route.strategy").
			WithRemedy("set extension, route.fallback or hosts")
	case len(j.Candidates) == 0:
		return invalid("the catalog has no place a sandbox could run in").WithRemedy("add a file below extensions/ to the catalog")
	}
	ids := make(map[string]struct{}, len(j.Candidates))
	for i := range j.Candidates {
		ids[j.Candidates[i].ID()] = struct{}{}
		if len(ids) == i {
			return extensions.Errorf(extensions.KindInternal, "two places are called %s", j.Candidates[i].ID())
		}
	}
	return j.checkNames()
}

// checkNames: a pin or a host the request insists on has to exist; names that
// only order are a notice, because profiles are shared between users.
func (j *judge) checkNames() error {
	binding, host := func(c *Candidate) string { return c.Binding }, (*Candidate).HostName
	if pin := j.Policy.Extension; pin != "" && !j.there(pin, binding) {
		return invalid("the profile pins %s, and the catalog has no extension of this name", pin).At("extension").
			WithRemedy("%s", didYouMean(pin, j.names(binding)))
	}
	for _, name := range j.Hosts {
		if !j.there(name, host) {
			return invalid("no extension of the catalog can use host %q", name).At("hosts").
				WithRemedy("%s", didYouMean(name, j.names(host)))
		}
	}
	for _, list := range []struct {
		field string
		names []string
		of    func(*Candidate) string
	}{
		{"route.fallback", j.Policy.Fallback, binding}, {"options", slices.Collect(maps.Keys(j.Options)), binding},
		{"placement.prefer", j.prefer(), host}, {"placement.fallback", j.placementFallback(), host},
	} {
		for _, name := range list.names {
			if !j.there(name, list.of) {
				j.notices[list.field+" names "+extensions.Clean(name, 80)+", which is not there"] = true
			}
		}
	}
	return nil
}

func (j *judge) there(name string, of func(*Candidate) string) bool {
	for i := range j.Candidates {
		if name != "" && of(&j.Candidates[i]) == name {
			return true
		}
	}
	return false
}

func (j *judge) names(of func(*Candidate) string) []string {
	seen := map[string]bool{}
	for i := range j.Candidates {
		if name := of(&j.Candidates[i]); name != "" {
			seen[name] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// prefer and placementFallback are empty where the request names its hosts.
func (j *judge) prefer() []string {
	if len(j.Hosts) > 0 {
		return nil
	}
	return j.Prefer
}

func (j *judge) placementFallback() []string {
	if len(j.Hosts) > 0 {
		return nil
	}
	return j.Fallback
}

func invalid(format string, args ...any) *extensions.Error {
	return extensions.Errorf(extensions.KindInvalid, format, args...)
}

func didYouMean(word string, known []string) string {
	if near := strictyaml.NearestN(word, known, 3); len(near) > 0 {
		return "did you mean " + strings.Join(near, " or ") + "?"
	}
	switch {
	case len(known) == 0:
		return "there is none"
	case len(known) > 12:
		known = append(slices.Clone(known[:12]), "…")
	}
	return "there are: " + strings.Join(known, ", ")
}
