package route

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Select decides where a sandbox runs. The answer depends only on q, not on the
// order of q.Candidates. The Decision points into q, which must not change while
// the Decision is in use.
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

// refused is a refusal without text: building text for thousands of places takes longer than deciding about them.
type refused struct {
	c    *Candidate
	rule *RuleInfo
}

// judge applies the rules stage by stage. The first stage that refuses ends it, with all of its reasons.
func (j *judge) judge(c *Candidate) {
	before := len(j.refused)
	for _, r := range j.rules {
		if len(j.refused) > before {
			first := j.refused[before].rule
			if first.Stage != r.Stage || c.NamedOnly || first.ID.everywhere() || c.Unavailable != nil && r.Stage == StageViability {
				return // an unusable place has no further reasons
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

// read builds the text of a refusal.
func (j *judge) read(x refused) Refusal {
	reason, help := x.rule.tell(j, x.c)
	return Refusal{Candidate: x.c.ID(), Extension: x.c.Binding, Host: x.c.HostName(), Stage: x.rule.Stage, Rule: x.rule.ID,
		Reason: reason, Help: j.helpOnHost(x.rule, x.c, help)}
}

// helpOnHost returns what would make a rule pass on c's host, or at its account, if the extension passes it and only that
// place does not.
func (j *judge) helpOnHost(r *RuleInfo, c *Candidate, help string) string {
	if c.Declared == nil || len(c.Narrowed) == 0 {
		return help
	}
	elsewhere := *c
	elsewhere.Capabilities = *c.Declared
	if !r.passes(j, &elsewhere) {
		return help
	}
	where := "on this host: "
	if c.Host == nil {
		where = "at this account: "
	}
	return where + strings.Join(about(r.ID, c.Narrowed), "; ")
}

// about selects the reasons that concern the rule: each begins with its subject, and the rule's name ends with it ("ttl" for
// "viability.ttl-max"). If none
// does, all may.
func about(rule Rule, reasons []string) []string {
	topic := string(rule)[strings.LastIndexByte(string(rule), '.')+1:]
	var out []string
	for _, reason := range reasons {
		if subject, text, ok := strings.Cut(reason, ": "); ok && (subject == topic || strings.HasPrefix(topic, subject+"-")) {
			out = append(out, text)
		}
	}
	if len(out) == 0 {
		return reasons
	}
	return out
}

// check refuses queries that make no sense for any candidate.
func (j *judge) check() error {
	strategies := []string{StrategyPreferSelfHosted, StrategyExplicit, StrategyLowestCost, StrategyLowestLatency}
	switch {
	case !slices.Contains(strategies, j.strategy):
		return invalid("unknown strategy %q", j.strategy).At("route.strategy").WithRemedy("%s", didYouMean(j.strategy, strategies))
	case j.Policy.AuthMode != "" && !slices.Contains(AuthModes, j.Policy.AuthMode):
		return invalid("unknown auth_mode %q", j.Policy.AuthMode).At("route.constraints.auth_mode").WithRemedy("%s",
			didYouMean(j.Policy.AuthMode, AuthModes))
	case j.strategy == StrategyExplicit && len(j.bindings) == 0 && len(j.Hosts) == 0:
		return invalid("the strategy explicit needs a place").At("route.strategy").
			WithRemedy("set extension, route.fallback or hosts")
	case len(j.Candidates) == 0 && len(j.Unconfigured) > 0:
		return extensions.Errorf(extensions.KindUnsupported, "no place to run a sandbox is configured").
			WithRemedy("%s", configure(j.Unconfigured[0]))
	case len(j.Candidates) == 0:
		return invalid("the catalog has no place to run a sandbox").WithRemedy("add a file below extensions/ to the catalog")
	}
	if twice := namedTwice(j.Candidates); twice != nil {
		return extensions.Errorf(extensions.KindInternal, "two places are called %s", twice.ID())
	}
	return j.checkNames()
}

// checkNames: pinned extensions and required hosts must exist. Unknown names that only order are a notice, because users
// share profiles.
func (j *judge) checkNames() error {
	binding, host := func(c *Candidate) string { return c.Binding }, (*Candidate).HostName
	if pin := j.Policy.Extension; pin != "" && !j.there(pin, binding) {
		known, doubles := j.names(binding)
		known = append(known, j.Unconfigured...)
		return invalid("the profile pins %s, which the catalog does not have", pin).At("extension").
			WithRemedy("%s", didYouMean(pin, known, doubles...))
	}
	for _, name := range j.Hosts {
		if !j.there(name, host) {
			known, _ := j.names(host)
			return invalid("no extension in the catalog can use host %q", name).At("hosts").
				WithRemedy("%s", didYouMean(name, known))
		}
	}
	for _, list := range []struct {
		field   string
		names   []string
		of      func(*Candidate) string
		binding bool
	}{
		{"route.fallback", j.Policy.Fallback, binding, true}, {"options", slices.Collect(maps.Keys(j.Options)), binding, true},
		{"placement.prefer", j.prefer(), host, false}, {"placement.fallback", j.placementFallback(), host, false},
	} {
		for _, name := range list.names {
			if !j.there(name, list.of) && !(list.binding && slices.Contains(j.Unconfigured, name)) {
				known, doubles := j.names(list.of)
				j.notices[list.field+" names "+extensions.Clean(name, 80)+", which does not exist"+nearest(name, append(known, doubles...))] = true
			}
		}
	}
	return nil
}

// configure says how a vendor's binding takes part.
func configure(binding string) string {
	return fmt.Sprintf("give credentials[%q] in the provider block, or put enabled: true in a binding of your own "+
		"(extensions/%s.yaml of your catalog), or pin it with extension: %s in the profile", binding, binding, binding)
}

func (j *judge) there(name string, of func(*Candidate) string) bool {
	for i := range j.Candidates {
		if name != "" && of(&j.Candidates[i]) == name {
			return true
		}
	}
	return false
}

// names lists names for messages; doubles are the test doubles, for whoever nearly spells one.
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

// prefer and placementFallback are empty if the request names its hosts.
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

// nearest ends a notice with the most similar name; "" if there is none.
func nearest(word string, known []string) string {
	if near := strictyaml.NearestN(word, known, 1); len(near) > 0 {
		return "; the nearest is " + near[0]
	}
	return ""
}

// didYouMean suggests a name similar to word, which may be an unlisted one, or else lists the known ones.
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
