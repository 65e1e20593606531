package route

import "slices"

// ownersRules are, beside those of the permission stage, what the owner of a
// ledger holds others to: who pays, and what platform credit may pay for.
var ownersRules = []Rule{RuleBilling, RuleExpiry, RuleCredit}

// Forbidden returns what the owner of a ledger has against a place that
// somebody chose by another catalog: the refusals of the permission stage, else
// those of money. What the place can do is for those to judge who use it. Of q
// its Spec, Billing and Permission count.
func Forbidden(q Query, c Candidate) []Refusal {
	q.Candidates = []Candidate{c}
	j := newJudge(&q)
	j.notes = nil
	j.rules = slices.DeleteFunc(j.rules, func(r *RuleInfo) bool { return r.Stage != StagePermission && !slices.Contains(ownersRules, r.ID) })
	j.judge(&q.Candidates[0])
	out := make([]Refusal, 0, len(j.refused))
	for _, x := range j.refused {
		out = append(out, j.read(x))
	}
	return out
}
