package route

import (
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
	for i := range q.Candidates {
		c := &q.Candidates[i]
		if refusals := j.judge(c); len(refusals) > 0 {
			d.Refusals = append(d.Refusals, refusals...)
			continue
		}
		d.Order = append(d.Order, c)
	}
	slices.SortStableFunc(d.Refusals, func(a, b Refusal) int { return strings.Compare(a.Candidate, b.Candidate) })
	d.Order = j.order(d.Order)
	d.Notices = slices.Sorted(maps.Keys(j.notices))
	if len(d.Order) == 0 {
		d.err = d.refused(j)
		return d
	}
	d.Chosen, d.Fallbacks = d.Order[0], j.fallbacks(d.Order)
	d.Why = j.why(d.Order)
	return d
}

// judge applies the rules stage by stage; the first stage that refuses ends
// it, with all it has against the candidate.
func (j *judge) judge(c *Candidate) []Refusal {
	var out []Refusal
	j.pending = j.pending[:0]
	for i := range Rules {
		r := &Rules[i]
		if len(out) > 0 && (out[0].Stage != r.Stage || c.Unavailable != nil && r.Stage == StageViability) {
			break // what cannot be used at all is not picked apart
		}
		reason, help := r.check(j, c)
		if reason == "" {
			continue
		}
		out = append(out, Refusal{Candidate: c.ID(), Extension: c.Binding, Host: c.HostName(), Stage: r.Stage, Rule: r.ID, Reason: reason, Help: help})
	}
	if len(out) == 0 {
		for _, n := range j.pending {
			j.notices[n] = true
		}
	}
	return out
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
	ids, bindings, hosts := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range j.Candidates {
		c := &j.Candidates[i]
		if ids[c.ID()] {
			return extensions.Errorf(extensions.KindInternal, "two places are called %s", c.ID())
		}
		ids[c.ID()], bindings[c.Binding], hosts[c.HostName()] = true, true, true
	}
	delete(hosts, "")
	return j.checkNames(bindings, hosts)
}

// checkNames: a pin or a host the request insists on has to exist; names that
// only order are a notice, because profiles are shared between users.
func (j *judge) checkNames(bindings, hosts map[string]bool) error {
	if pin := j.Policy.Extension; pin != "" && !bindings[pin] {
		return invalid("the profile pins %s, and the catalog has no extension of this name", pin).At("extension").
			WithRemedy("%s", didYouMean(pin, slices.Sorted(maps.Keys(bindings))))
	}
	for _, name := range j.Hosts {
		if !hosts[name] {
			return invalid("no extension of the catalog can use host %q", name).At("hosts").
				WithRemedy("%s", didYouMean(name, slices.Sorted(maps.Keys(hosts))))
		}
	}
	for _, list := range []struct {
		field string
		names []string
		known map[string]bool
	}{
		{"route.fallback", j.Policy.Fallback, bindings}, {"options", slices.Collect(maps.Keys(j.Options)), bindings},
		{"placement.prefer", j.prefer(), hosts}, {"placement.fallback", j.placementFallback(), hosts},
	} {
		for _, name := range list.names {
			if !list.known[name] {
				j.notice("%s names %s, which is not there", list.field, extensions.Clean(name, 80))
			}
		}
	}
	for _, n := range j.pending {
		j.notices[n] = true
	}
	return nil
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
