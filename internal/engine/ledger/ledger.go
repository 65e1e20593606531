package ledger

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Ledger is one opened ledger. All methods may be called from several
// goroutines, and several processes may have the same ledger open. A
// cancelled context starts nothing new; a transaction that has started is
// finished, so its outcome is always known.
//
// Errors are *extensions.Error: KindNotFound for what is not there,
// KindConflict for a taken name ([NameTaken]), a stale expectation ([Stale])
// or an operation under way ([Busy]), KindInvalid for a wrong call,
// KindUnsupported for a write to a ledger opened read-only or owned by a
// newer version, KindUnavailable when the disk or the lock refuses,
// KindInternal for a damaged file.
type Ledger interface {
	// ID names this ledger for ever; "" for a missing one opened read-only.
	ID() string
	// URL is what was opened, for messages.
	URL() string

	// Holder registers this opened ledger as the holder of intents: a file
	// lock beside the database that ends with Close or with the process.
	// Later calls return the same id. Not available read-only.
	Holder(ctx context.Context) (HolderID, error)
	// HolderAlive reports whether id's lock is still held. It cleans up after
	// a dead one unless the ledger was opened read-only.
	HolderAlive(ctx context.Context, id HolderID) (bool, error)

	// Begin records a sandbox before anything can cost money: its row in
	// state requested claiming (Account, Name), the open create intent, the
	// quote with its prices, and the first event. The same Key again returns
	// the row as it is now. A taken name is *NameTaken.
	Begin(ctx context.Context, b Begin) (Sandbox, error)
	// Apply is the one compare-and-set transaction on a sandbox; see Change.
	// The same Key again changes nothing and returns the row as it is now.
	Apply(ctx context.Context, c Change) (Sandbox, error)

	// Get returns a sandbox in any state, by id.
	Get(ctx context.Context, id extensions.ID) (Sandbox, error)
	// ByName returns the sandbox that claims the name now.
	ByName(ctx context.Context, account, name string) (Sandbox, error)
	// List returns sandboxes, oldest first.
	List(ctx context.Context, f Filter) ([]Sandbox, error)
	// Occupancy counts an account's sandboxes by place, as Room does: those
	// that were given one, are not destroyed and not past their end. Places
	// without any are left out.
	Occupancy(ctx context.Context, account string) ([]Occupied, error)
	// ReadyTimes tells of the sandboxes that last came to be ready at a place
	// in their first life, the newest first, at most so many.
	ReadyTimes(ctx context.Context, account, extension, host string, newest int) ([]Readiness, error)
	// Lifetimes tells how long lives of the profile (its id, any version) ran
	// that are over and whose end is known, the last to end first, at most so
	// many; extension "" is any.
	Lifetimes(ctx context.Context, account, profile, extension string, newest int) ([]Lifetime, error)
	// OpenIntents returns operations that were begun and not finished, oldest
	// first, of sandboxes and snapshots.
	OpenIntents(ctx context.Context, f IntentFilter) ([]Intent, error)
	// Intent returns one intent by its key.
	Intent(ctx context.Context, key string) (Intent, error)

	// PutHost creates or changes a host; equal content changes nothing. Conflict:
	// it has another ref than Host.Replaces lets it have.
	PutHost(ctx context.Context, h Host) (Host, error)
	// Host returns one host of the account by name.
	Host(ctx context.Context, account, name string) (Host, error)
	// Hosts lists an account's hosts by name; "" lists all accounts'.
	Hosts(ctx context.Context, account string) ([]Host, error)
	// DeleteHost forgets a host; an unknown one is success.
	DeleteHost(ctx context.Context, account, name string) error

	// BeginSnapshot records a snapshot in state creating, with its intent.
	BeginSnapshot(ctx context.Context, b BeginSnapshot) (Snapshot, error)
	// ApplySnapshot is Apply for snapshots.
	ApplySnapshot(ctx context.Context, c SnapshotChange) (Snapshot, error)
	// GetSnapshot returns a snapshot in any state.
	GetSnapshot(ctx context.Context, id string) (Snapshot, error)
	// Snapshots lists snapshots, oldest first.
	Snapshots(ctx context.Context, f SnapshotFilter) ([]Snapshot, error)

	// Meters returns the sandbox's meters, one per generation that ran, oldest first.
	Meters(ctx context.Context, id extensions.ID) ([]Meter, error)
	// Charges returns the sandbox's charges in order of meter, segment, component.
	Charges(ctx context.Context, id extensions.ID) ([]Charge, error)
	// Usage adds up, told apart by dimensions and always by currency, what
	// ended in the period, in the order of the dimensions. Nothing is one row
	// less, never a row of zeros.
	Usage(ctx context.Context, f UsageFilter, by ...Dimension) ([]UsageRow, error)
	// EachCharge tells every charge the filter selects, in order of the meter's
	// end, meter, segment and component. Its memory does not grow with their
	// number. What is settled meanwhile may be told or not. yield may use the
	// ledger; its error ends the reading and is returned as it is.
	EachCharge(ctx context.Context, f UsageFilter, yield func(ChargeRow) error) error
	// EachOpenMeter tells the running meters the filter selects, by id, in the
	// same way.
	EachOpenMeter(ctx context.Context, f UsageFilter, yield func(Meter) error) error
	// Quote returns a stored quote by digest.
	Quote(ctx context.Context, digest string) (Quote, error)

	// Grant puts credit into a wallet, once, and returns the wallet. The same
	// key for another grant is KindConflict.
	Grant(ctx context.Context, g Grant) (Balance, error)
	// PutBudget sets a budget's limit; what is reserved and spent stays. With
	// NoLimit, and not hard, it is removed.
	PutBudget(ctx context.Context, b Budget) (Budget, error)
	// Balances lists an org's accounts by id.
	Balances(ctx context.Context, org string) ([]Balance, error)
	// Budgets lists an org's budgets by id, its workspaces' and removed ones
	// included.
	Budgets(ctx context.Context, org string) ([]Budget, error)
	// Paces tells what counts against ceilings now, as a begin that sets aside the
	// reserve would count it; nil is the least there is in the currency of each.
	Paces(ctx context.Context, ceilings []Ceiling, reserve *Reserve) ([]Pace, error)
	// Held lists what is set aside for a sandbox, the oldest first.
	Held(ctx context.Context, id extensions.ID) ([]Transfer, error)

	// Events reads a stream from seq (1 is the first), at most limit; 0 = all.
	Events(ctx context.Context, stream string, fromSeq int64, limit int) ([]Event, error)
	// Head is the end of a stream's chain, to be pinned in receipts. An empty
	// stream has Seq 0.
	Head(ctx context.Context, stream string) (Head, error)
	// Outbox tells how far a sink has got with a stream. Nothing needs to be
	// set up: every sink begins with the first event.
	Outbox(ctx context.Context, sink, stream string) (Outbox, error)
	// MoveOutbox records a step of a delivery and returns how far it is now.
	// What was first sent 24 hours ago and not answered becomes ambiguous.
	MoveOutbox(ctx context.Context, step OutboxStep) (Outbox, error)

	// Verify checks the whole ledger; pinned heads prove that nothing was cut
	// off. Findings are in the report; the error is for not being able to look.
	Verify(ctx context.Context, pinned ...Head) (Report, error)

	// Replay takes several steps of one sandbox in one transaction, once: cs,
	// after b unless that is nil. A life that was led while this ledger could
	// not be reached is recorded so; what is recorded already stays as it is.
	Replay(ctx context.Context, b *Begin, cs ...Change) (Sandbox, error)

	// Guard bounds a call into a backend by this holder's life: the context
	// ends, KindUnavailable its cause, a moment before others may take the
	// holder for dead, so that nothing is made behind the back of one who took
	// over. Where the kernel knows who lives, it only ends with ctx.
	Guard(ctx context.Context) (context.Context, context.CancelFunc)

	// Close ends this holder and releases the files.
	Close() error
}

// Options open a ledger. The zero value is for writing.
type Options struct {
	// ReadOnly opens for reading: nothing is created or changed, and a
	// missing ledger reads as empty.
	ReadOnly bool
	// Now is the clock for events and defaults; nil means time.Now.
	Now func() time.Time
	// NewID names a new ledger; "" draws a random name.
	NewID string
	// Earlier names what, other than the files beside it, tells that there was a
	// ledger at the address before; "" and nil = nothing. It is asked about an
	// empty file, which is damage then.
	Earlier func() string
	// LockTimeout bounds the wait for other writers; 0 means 60 s.
	LockTimeout time.Duration
	// Lease is how long a holder counts as alive after it was last heard of,
	// where machines share the ledger; 0 means 30 s, which is also the most.
	Lease time.Duration
}

// HolderID names one opened ledger of one process.
type HolderID string
