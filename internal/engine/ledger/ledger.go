package ledger

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Ledger is one open ledger: a view for each kind of caller. All methods are safe for concurrent use, and several processes may open the
// same ledger. A cancelled context starts nothing new, but a transaction that has started is finished, so
// its outcome is always known.
//
// Errors are *extensions.Error: KindNotFound for missing rows; KindConflict for a taken name
// ([NameTaken]), a stale expectation ([Stale]) or an operation under way ([Busy]); KindInvalid for an
// invalid call; KindUnsupported for a write to a ledger that is read-only or has a newer schema;
// KindUnavailable if the disk or the lock refuses; KindInternal for a damaged file.
type Ledger struct {
	Identity
	Operations
	Sandboxes
	Snapshots
	Machines
	Evidence
	Money
	Usages
	Record
}

// Identity tells which ledger is open, and the time of its clock.
type Identity interface {
	// ID returns the permanent id of the ledger; "" for a missing one opened read-only.
	ID() string
	// URL returns what was opened, for messages.
	URL() string
	// ServerTime returns the time of the server that machines share; zero for a file, and for a missing
	// ledger opened read-only.
	ServerTime(ctx context.Context) (time.Time, error)
	// Close ends this holder and releases its files.
	Close() error
}

// Operations is the view of callers that begin operations and check who holds those under way.
type Operations interface {
	// Holder registers this open ledger as a holder of intents: a file lock beside the database that ends
	// with Close or with the process. Later calls return the same id. Fails read-only.
	Holder(ctx context.Context) (HolderID, error)
	// HolderAlive reports whether id still holds its lock. It cleans up after a dead holder unless the
	// ledger is read-only.
	HolderAlive(ctx context.Context, id HolderID) (bool, error)
	// Guard limits a call into a backend to the life of this holder. The context ends, with KindUnavailable
	// as its cause, shortly before others may take the holder for dead, so a former holder creates nothing
	// after another has taken over. Where the kernel knows which holders live, it ends only with ctx.
	Guard(ctx context.Context) (context.Context, context.CancelFunc)
	// OpenIntents returns unfinished operations on sandboxes and snapshots, oldest first.
	OpenIntents(ctx context.Context, f IntentFilter) ([]Intent, error)
	// Intents returns every operation on a sandbox or a snapshot, finished ones too, by fence.
	Intents(ctx context.Context, subject string) ([]Intent, error)
	// Intent returns one intent by its key.
	Intent(ctx context.Context, key string) (Intent, error)
}

// Sandboxes is the view of callers that change sandboxes: each write is one transaction.
type Sandboxes interface {
	// Begin records a sandbox before anything can cost money: its row in state requested, which claims
	// (Account, Name), the open create intent, the quote with its prices, and the first event. Repeating a
	// Key returns the current row. A taken name is *NameTaken.
	Begin(ctx context.Context, b Begin) (Sandbox, error)
	// Apply is the one compare-and-set transaction on a sandbox; see [Change]. Repeating a Key changes
	// nothing and returns the current row.
	Apply(ctx context.Context, c Change) (Sandbox, error)
	// Get returns a sandbox in any state, by id.
	Get(ctx context.Context, id extensions.ID) (Sandbox, error)
	// ByName returns the sandbox that claims the name now.
	ByName(ctx context.Context, account, name string) (Sandbox, error)
	// List returns sandboxes, oldest first.
	List(ctx context.Context, f Filter) ([]Sandbox, error)
	// Leases returns the leases on a sandbox that several hold, oldest first; those that lapsed too.
	Leases(ctx context.Context, id extensions.ID) ([]Lease, error)
}

// Snapshots is the view of callers that take, keep and delete snapshots.
type Snapshots interface {
	// BeginSnapshot records a snapshot in state creating, with its intent.
	BeginSnapshot(ctx context.Context, b BeginSnapshot) (Snapshot, error)
	// ApplySnapshot is Apply for snapshots.
	ApplySnapshot(ctx context.Context, c SnapshotChange) (Snapshot, error)
	// GetSnapshot returns a snapshot in any state.
	GetSnapshot(ctx context.Context, id string) (Snapshot, error)
	// ListSnapshots returns snapshots, oldest first.
	ListSnapshots(ctx context.Context, f SnapshotFilter) ([]Snapshot, error)
}

// Machines is the view of callers that register machines and probe places.
type Machines interface {
	// PutHost creates or changes a host; equal content changes nothing. KindConflict if its current ref is
	// neither Host.Ref nor one of Host.Replaces.
	PutHost(ctx context.Context, h Host) (Host, error)
	// Host returns a host of the account by name.
	Host(ctx context.Context, account, name string) (Host, error)
	// Hosts lists an account's hosts by name; "" lists those of all accounts.
	Hosts(ctx context.Context, account string) ([]Host, error)
	// DeleteHost removes a host and the facts of the places on it; an unknown one is success.
	DeleteHost(ctx context.Context, account, name string) error
	// PutFacts records the facts of places of one account and replaces their earlier facts. Equal facts, with
	// an equal time, change nothing.
	PutFacts(ctx context.Context, all ...Facts) error
	// Facts returns what was last found at a place.
	Facts(ctx context.Context, account, extension, host string) (Facts, error)
}

// Evidence is the view of callers that plan: the past, and the room left.
type Evidence interface {
	// Occupancy counts an account's sandboxes by place, as Room does: those that have a place, are not
	// destroyed and have not passed their deadline. Empty places are left out.
	Occupancy(ctx context.Context, account string) ([]Occupied, error)
	// ReadyTimes returns how long the latest sandboxes at a place took to become ready in their first life,
	// newest first, at most newest.
	ReadyTimes(ctx context.Context, account, extension, host string, newest int) ([]Readiness, error)
	// Lifetimes returns how long finished lives of the profile (its id, any version) ran, if their end is
	// known, latest end first, at most newest. An extension of "" means any.
	Lifetimes(ctx context.Context, account, profile, extension string, newest int) ([]Lifetime, error)
	// Paces returns the current use of each ceiling, and how much a begin with this reserve would add; nil
	// stands for the least amount in the ceiling's currency.
	Paces(ctx context.Context, ceilings []bank.Ceiling, reserve *bank.Reserve) ([]bank.Pace, error)
}

// Money is the view of callers that grant credit and set limits.
type Money interface {
	// Grant adds credit to a wallet once and returns the wallet. Reusing the key for a different grant is
	// KindConflict.
	Grant(ctx context.Context, g Grant) (bank.Balance, error)
	// PutBudget sets a budget's limit; its reserved and spent amounts stay. NoLimit with Hard unset removes
	// it.
	PutBudget(ctx context.Context, b bank.Budget) (bank.Budget, error)
	// Balances lists an org's accounts by id.
	Balances(ctx context.Context, org string) ([]bank.Balance, error)
	// Budgets lists an org's budgets by id, including those of its workspaces and removed ones.
	Budgets(ctx context.Context, org string) ([]bank.Budget, error)
	// Held lists what is set aside for a sandbox, oldest first.
	Held(ctx context.Context, id extensions.ID) ([]bank.Transfer, error)
}

// Usages is the view of callers that report usage and charges.
type Usages interface {
	// Meters returns the sandbox's meters, one per generation that ran, oldest first.
	Meters(ctx context.Context, id extensions.ID) ([]bank.Meter, error)
	// Charges returns the sandbox's charges, ordered by meter, segment and component.
	Charges(ctx context.Context, id extensions.ID) ([]bank.Charge, error)
	// Usage sums the usage that ended in the period, grouped by the dimensions and always by currency, in the
	// order of the dimensions. Empty groups have no row.
	Usage(ctx context.Context, f UsageFilter, by ...bank.Dimension) ([]bank.UsageRow, error)
	// EachCharge passes every selected charge to yield, ordered by the meter's end, meter, segment and
	// component. Its memory is bounded. Charges settled meanwhile may or may not appear. yield may use the
	// ledger; its error stops the reading and is returned unchanged.
	EachCharge(ctx context.Context, f UsageFilter, yield func(bank.ChargeRow) error) error
	// EachOpenMeter passes the selected running meters to yield, ordered by id, under the same rules as
	// EachCharge.
	EachOpenMeter(ctx context.Context, f UsageFilter, yield func(bank.Meter) error) error
	// Quote returns a stored quote by digest.
	Quote(ctx context.Context, digest string) (Quote, error)
}

// Record is the view of callers that deliver and check events.
type Record interface {
	// Events reads a stream from fromSeq (1 is the first), at most limit events; 0 reads all.
	Events(ctx context.Context, stream string, fromSeq int64, limit int) ([]chain.Event, error)
	// Head returns the end of a stream's chain, for receipts to pin. An empty stream has Seq 0.
	Head(ctx context.Context, stream string) (chain.Head, error)
	// Outbox returns how far a sink has received a stream. It needs no setup: every sink begins with the
	// first event.
	Outbox(ctx context.Context, sink, stream string) (Outbox, error)
	// MoveOutbox records a step of a delivery and returns the new position. Events first sent 24 hours ago
	// and not answered become ambiguous.
	MoveOutbox(ctx context.Context, step OutboxStep) (Outbox, error)
	// Verify checks the whole ledger; pinned heads prove that nothing was cut off. Findings are in the
	// report; an error means that the check could not run.
	Verify(ctx context.Context, pinned ...chain.Head) (chain.Report, error)
}

// HolderID identifies one open ledger of one process.
type HolderID string
