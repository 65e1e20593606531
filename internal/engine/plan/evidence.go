package plan

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Evidence is the input of a decision besides the request and the catalog. A plan gathers only what its
// arguments and the catalog's bytes determine, so that it always gives the same answer; a create gathers the
// rest.
type Evidence struct {
	// Account is the account whose permission, credit and limits apply.
	Account string
	Now     time.Time
	// Here is the machine that runs this program.
	Here Machine
	// Create says that credentials are required now. A plan only reports missing ones.
	Create bool
	// Hosts are those that the request or its profile may use, in order.
	Hosts []extensions.Host
	// Source is the sandbox to fork; nil = none.
	Source *ledger.Sandbox
	// FromLedger says that Hosts, Snapshot or Source are rows of a ledger, so the decision depends on more than the
	// arguments.
	FromLedger bool
	// Snapshot is the snapshot that the sandbox starts from; nil = none, or unknown here.
	Snapshot *ledger.Snapshot
	// At holds the evidence on each candidate's place, by candidate id.
	At map[string]Seen
	// Occupancy counts live sandboxes; nil = not counted.
	Occupancy *Occupancy
	// Granted holds the currencies in which the account's org ever had credit.
	Granted map[string]bool
	// Expected is how long the sandbox will probably run; 0 = not given.
	Expected time.Duration
	// Past holds how long lives of the profile ran, by binding.
	Past map[string]*meter.History
	// Probed says that the places that recorded facts ruled out were probed again.
	Probed bool
}

// Seen is what is known about one candidate's place.
type Seen struct {
	// Facts are what a probe of this very place found; nil = nothing is known. Recorded says that they come
	// from the ledger, Stale that a probe should find them out before the place is used. Unseen is why a
	// machine that the request depends on could not be probed.
	Facts    *extensions.Facts
	Recorded bool
	Stale    bool
	Unseen   error
	// Narrowed is what its extension says about the host's arguments; nil = its hosts do not differ.
	Narrowed *Narrowed
	// Missing are credentials that are not set here, in as many ways as there are to set them.
	Missing [][]extensions.CredentialField
	// Unconfigured says that it is a vendor's account, which only a pin brings into this decision.
	Unconfigured bool
	// Silence is how a recent call failed; Asked says that the place need not be asked again.
	Silence *Silence
	Asked   bool
	// Room is what the place reports about its room; nil = it was not asked.
	Room    *extensions.Capacity
	Latency route.Latency
}

// Narrowed holds capabilities without those that a host lacks, and what would restore each.
type Narrowed struct {
	Capabilities extensions.Capabilities
	Lost         []string
}

// Silence is a call that a place did not answer.
type Silence struct {
	At  time.Time
	Err error
}

// Lacks names the evidence that a create must gather before its decision counts; zero = none. At most one field
// is set.
type Lacks struct {
	Health *route.Candidate // whether it is up
	Room   *route.Candidate // how full it is
	// Facts are places to probe: the first choice, or those that recorded facts ruled out where none is left.
	Facts []*route.Candidate
}

// Nothing reports whether the decision stands.
func (l Lacks) Nothing() bool { return l.Health == nil && l.Room == nil && len(l.Facts) == 0 }
