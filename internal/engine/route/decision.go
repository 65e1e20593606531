package route

// Stage is one step of a decision.
type Stage string

// The stages in order.
const (
	StageIntent     Stage = "intent"     // pins: extension, hosts, origin
	StagePermission Stage = "permission" // what the account may use
	StageViability  Stage = "viability"  // what the place can do
	StagePreference Stage = "preference" // the strategy's order
	StageRanking    Stage = "ranking"    // ties
	StageBind       Stage = "bind"       // the choice and its fallbacks
)

// Stages lists every stage in order.
var Stages = []Stage{StageIntent, StagePermission, StageViability, StagePreference, StageRanking, StageBind}

// Refusal says why one candidate may not run the sandbox, and what would help.
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
	Kind      string `json:"kind,omitempty"` // extensions.Kind of the failure
}

// Decision is a choice with its reasons. Its JSON is stable: it is kept in
// the ledger and shown as a resource's route.
type Decision struct {
	// Chosen is nil where Err is not.
	Chosen *Candidate
	// Fallbacks are what may be tried after Chosen, in order.
	Fallbacks []*Candidate
	// Order is every eligible candidate, best first: Chosen, Fallbacks and,
	// behind them, what a list of fallbacks leaves out.
	Order []*Candidate
	// Refusals are sorted by candidate; all are of the candidate's earliest
	// refusing stage.
	Refusals []Refusal
	// Notices are for people: what was accepted with a reservation.
	Notices  []string
	Strategy string
	Why      string // why Chosen comes first
	Attempts []Attempt

	err error
}

// Err is nil where a candidate was chosen. It is KindUnsupported where every
// candidate was refused and KindInvalid for a query that makes no sense, such
// as a pin nothing is called by.
func (d Decision) Err() error { return d.err }
