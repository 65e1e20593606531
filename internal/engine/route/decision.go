package route

import "slices"

// Stage is one step of a decision.
type Stage string

// The stages that refuse, in order.
const (
	StageIntent     Stage = "intent"     // pins: extension, hosts, origin
	StagePermission Stage = "permission" // what the account may use
	StageViability  Stage = "viability"  // what the place can do
)

// Refusal is why one candidate may not run the sandbox, and a remedy.
type Refusal struct {
	Candidate string `json:"candidate"` // Candidate.ID
	Extension string `json:"extension"`
	Host      string `json:"host,omitempty"`
	Stage     Stage  `json:"stage"`
	Rule      Rule   `json:"rule"`
	Reason    string `json:"reason"`
	Help      string `json:"help"`
}

// Attempt is one try at provisioning; the engine appends them in order.
type Attempt struct {
	Candidate string `json:"candidate"`
	Outcome   string `json:"outcome"`        // "ready", or what happened
	Kind      string `json:"kind,omitempty"` // the failure's Kind
}

// Decision is a choice with its reasons. Its JSON is stable: the ledger stores it,
// and a resource's route shows it.
type Decision struct {
	// Chosen is nil if Err is not.
	Chosen *Candidate
	// Fallbacks are the places to try after Chosen, in order.
	Fallbacks []*Candidate
	// Order is every eligible candidate, best first: Chosen, Fallbacks and then those that a list of fallbacks omits.
	Order []*Candidate
	// Notices are reservations, for people.
	Notices  []string
	Strategy string
	Why      string // why Chosen comes first
	Attempts []Attempt

	judge *judge // nil for the zero Decision and where err is set
	err   error
}

// Err is nil if a candidate was chosen. If every candidate was refused, it is
// KindUnsupported, or KindExhausted or KindUnreachable if only capacity or an
// answer is missing. For an invalid query, such as an unknown pin, it is
// KindInvalid.
func (d Decision) Err() error {
	if d.err != nil || d.judge == nil || d.Chosen != nil {
		return d.err
	}
	return d.allRefused()
}

// Refusals are sorted by candidate; all of a candidate's are of its earliest refusing stage.
func (d Decision) Refusals() []Refusal {
	out := []Refusal{}
	for _, x := range d.refused() {
		out = append(out, d.judge.read(x))
	}
	return out
}

// refused sorts refusals by candidate and keeps the order of rules.
func (d Decision) refused() []refused {
	if d.judge == nil {
		return nil
	}
	sorted := slices.Clone(d.judge.refused)
	slices.SortStableFunc(sorted, func(a, b refused) int { return byName(a.c, b.c) })
	return sorted
}
