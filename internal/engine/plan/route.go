package plan

import (
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
)

// Refusal says why a candidate is ruled out and what would admit it.
type Refusal struct {
	Stage  string `json:"stage"`
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
	Remedy string `json:"remedy"`
}

// Route is the decision as it was taken and carried out.
type Route struct {
	Strategy  string     `json:"strategy"`
	Order     []string   `json:"order"`               // surviving candidates, "ext.local@host", fixed before the first attempt
	Why       string     `json:"why,omitempty"`       // why the first of Order is first
	Fallbacks []string   `json:"fallbacks,omitempty"` // what may be tried after it, in order
	Notices   []string   `json:"notices,omitempty"`   // what was accepted with reservations
	Chosen    string     `json:"chosen"`              // the candidate that holds the sandbox
	Attempts  []Attempt  `json:"attempts,omitempty"`
	Refused   []Rejected `json:"refused,omitempty"`
	Explained string     `json:"explained"`
}

// Attempt is one try at a place.
type Attempt struct {
	Candidate string `json:"candidate"`
	Outcome   string `json:"outcome"` // ready | exhausted | unavailable | ...
	Reason    string `json:"reason,omitempty"`
}

// Rejected is a candidate that routing ruled out.
type Rejected struct {
	Candidate string    `json:"candidate"`
	Refusals  []Refusal `json:"refusals"`
}

// routeOf returns a decision as it is recorded and shown.
func routeOf(d route.Decision) Route {
	r := Route{Strategy: d.Strategy, Explained: d.Explain(), Order: []string{}, Why: d.Why, Notices: d.Notices}
	for _, c := range d.Order {
		r.Order = append(r.Order, c.ID())
	}
	for _, c := range d.Fallbacks {
		r.Fallbacks = append(r.Fallbacks, c.ID())
	}
	byCandidate := map[string]int{}
	for _, f := range d.Refusals() {
		i, ok := byCandidate[f.Candidate]
		if !ok {
			i = len(r.Refused)
			byCandidate[f.Candidate] = i
			r.Refused = append(r.Refused, Rejected{Candidate: f.Candidate})
		}
		r.Refused[i].Refusals = append(r.Refused[i].Refusals,
			Refusal{Stage: string(f.Stage), Rule: string(f.Rule), Reason: f.Reason, Remedy: f.Help})
	}
	return r
}
