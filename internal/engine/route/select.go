package route

import (
	"maps"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Select decides where a sandbox runs. The answer depends on q alone and not
// on the order of q.Candidates, to which the Decision points: what q refers to
// must not change while the Decision is in use.
func Select(q Query) Decision {
	j := newJudge(&q)
	d := Decision{Strategy: j.strategy}
	if err := j.check(); err != nil {
		d.err = err
		return d
	}
	eligible := make([]*Candidate, 0, len(q.Candidates))
	for i := range q.Candidates {
		c, before := &q.Candidates[i], len(j.refused)
		if j.judge(c); len(j.refused) == before {
			eligible = append(eligible, c)
		}
	}
	d.judge = j
	if len(eligible) > 0 {
		d.Order, d.Why = j.order(eligible)
		d.Chosen, d.Fallbacks = d.Order[0], j.fallbacks(d.Order)
		j.noteOrder(d.Order[:min(len(d.Order), maxTold)])
	}
	d.Notices = slices.Sorted(maps.Keys(j.notices))
	return d
}

// refused is a refusal that nobody has read yet: reasons are text, and text
// for thousands of places takes longer than deciding about them.
type refused struct {
	c    *Candidate
	rule *RuleInfo
}

// judge applies the rules stage by stage; the first stage that refuses ends
// it, with all it has against the candidate.
func (j *judge) judge(c *Candidate) {
	before := len(j.refused)
	for _, r := range j.rules {
		if len(j.refused) > before {
			first := j.refused[before].rule
			if first.Stage != r.Stage || c.NamedOnly || first.ID.everywhere() || c.Unavailable != nil && r.Stage == StageViability {
				return // what cannot be used at all is not picked apart
			}
		}
		if !r.passes(j, c) {
			j.refused = append(j.refused, refused{c, r})
		}
	}
	if len(j.refused) > before {
		return
	}
	for _, note := range j.notes {
		note(j, c)
	}
}

// read puts a refusal into words.
func (j *judge) read(x refused) Refusal {
	reason, help := x.rule.tell(j, x.c)
	return Refusal{Candidate: x.c.ID(), Extension: x.c.Binding, Host: x.c.HostName(), Stage: x.rule.Stage, Rule: x.rule.ID,
		Reason: reason, Help: j.helpOnHost(x.rule, x.c, help)}
}

// helpOnHost says what would make a rule pass on c's host, where the
// extension passes it and only the host is to blame.
func (j *judge) helpOnHost(r *RuleInfo, c *Candidate, help string) string {
	if c.Ceiling == nil || len(c.Narrowed) == 0 {
		return help
	}
	elsewhere := *c
	elsewhere.Capabilities = *c.Ceiling
	if !r.passes(j, &elsewhere) {
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

// check refuses queries that make no sense, whatever the candidates can do.
func (j *judge) check() error {
	strategies := []string{StrategyPreferSelfHosted, StrategyExplicit, StrategyLowestCost, StrategyLowestLatency}
	switch {
	case !slices.Contains(strategies, j.strategy):
		return invalid("unknown strategy %q", j.strategy).At("route.strategy").WithRemedy("%s", didYouMean(j.strategy, strategies))
	case j.Policy.AuthMode != "" && !slices.Contains(AuthModes, j.Policy.AuthMode):
		return invalid("unknown auth_mode %q", j.Policy.AuthMode).At("route.constraints.auth_mode").WithRemedy("%s", didYouMean(j.Policy.AuthMode, AuthModes))
	case j.strategy == StrategyExplicit && len(j.bindings) == 0 && len(j.Hosts) == 0:
		return invalid("the strategy explicit needs to be told a place").At("route.strategy").
			WithRemedy("set extension, route.fallback or hosts")
	case len(j.Candidates) == 0:
		return invalid("the catalog has no place a sandbox could run in").WithRemedy("add a file below extensions/ to the catalog")
	}
	if twice := namedTwice(j.Candidates); twice != nil {
		return extensions.Errorf(extensions.KindInternal, "two places are called %s", twice.ID())
	}
	return j.checkNames()
}

// checkNames: a pin or a host the request insists on has to exist; names that
// only order are a notice, because profiles are shared between users.
func (j *judge) checkNames() error {
	binding, host := func(c *Candidate) string { return c.Binding }, (*Candidate).HostName
	if pin := j.Policy.Extension; pin != "" && !j.there(pin, binding) {
		known, doubles := j.names(binding)
		return invalid("the profile pins %s, and the catalog has no extension of this name", pin).At("extension").
			WithRemedy("%s", didYouMean(pin, known, doubles...))
	}
	for _, name := range j.Hosts {
		if !j.there(name, host) {
			known, _ := j.names(host)
			return invalid("no extension of the catalog can use host %q", name).At("hosts").
				WithRemedy("%s", didYouMean(name, known))
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
				known, doubles := j.names(list.of)
				j.notices[list.field+" names "+extensions.Clean(name, 80)+", which is not there"+nearest(name, append(known, doubles...))] = true
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

// names are for messages; those of test doubles only for who nearly knows them.
func (j *judge) names(of func(*Candidate) string) (known, doubles []string) {
	seen := map[string]bool{}
	for i := range j.Candidates {
		if name := of(&j.Candidates[i]); name != "" {
			seen[name] = j.Candidates[i].NamedOnly
		}
	}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		if seen[name] {
			doubles = append(doubles, name)
		} else {
			known = append(known, name)
		}
	}
	return known, doubles
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

// nearest ends a notice with the name that may have been meant; "" where none is
// like it.
func nearest(word string, known []string) string {
	if near := strictyaml.NearestN(word, known, 1); len(near) > 0 {
		return "; the nearest is " + near[0]
	}
	return ""
}

// didYouMean says what is like word, which what is unlisted may be, or else what
// is known.
func didYouMean(word string, known []string, unlisted ...string) string {
	if near := strictyaml.NearestN(word, slices.Concat(known, unlisted), 3); len(near) > 0 {
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
