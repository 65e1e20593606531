package book

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/flight"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Operation is one begun intent on one sandbox. Each of its steps is a compare-and-set under its fence and
// happens once.
type Operation struct {
	Ledger *ledger.Ledger
	Holder ledger.HolderID
	Key    string
	Row    ledger.Sandbox // as the last step left it
	Notify notice.Notify
	// Route, if set, is recorded with the end of a create.
	Route json.RawMessage

	steps   int
	release func() // of the turn
}

// Close ends the operation's turn. Recovery settles an operation that is left open.
func (o *Operation) Close() {
	if o != nil && o.release != nil {
		o.release()
	}
}

// Apply takes one step. The caller's cancellation does not interrupt it, because outside effects must be
// recorded.
func (o *Operation) Apply(ctx context.Context, c ledger.Change) error {
	o.steps++
	c.ID = o.Row.ID
	c.Key = fmt.Sprintf("%s/%d", o.Key, o.steps)
	c.Expect.Fence, c.Expect.Holder = o.Row.Fence, o.Holder
	row, err := o.Ledger.Apply(context.WithoutCancel(ctx), c)
	if extensions.IsKind(err, extensions.KindIndeterminate) { // its key makes it happen once
		row, err = o.Ledger.Apply(context.WithoutCancel(ctx), c)
	}
	if err != nil {
		return err
	}
	o.Row = row
	return nil
}

// Prepare readies an operation on a sandbox or a snapshot and takes its turn: one at a time in this process, as
// the ledger does between processes. Close ends the turn.
func (b *Book) Prepare(ctx context.Context, l *ledger.Ledger, kind ledger.IntentKind, id string, notify notice.Notify) (*Operation, error) {
	holder, err := l.Holder(ctx)
	if err != nil {
		return nil, err
	}
	key, err := b.Key(kind, id)
	if err != nil {
		return nil, err
	}
	release, err := b.turns.take(ctx, id)
	if err != nil {
		return nil, extensions.Classify(string(kind), "", extensions.ID(id), err)
	}
	return &Operation{Ledger: l, Holder: holder, Key: key, Notify: notify, release: release}, nil
}

// Begin begins an intent on an existing row; Close ends its turn. It waits for a live holder's operation and
// takes over a dead one's intent. Of the change's own Intent only Metered counts.
func (b *Book) Begin(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, kind ledger.IntentKind, change ledger.Change,
	notify notice.Notify) (*Operation, error) {
	op, err := b.Prepare(ctx, l, kind, string(row.ID), notify)
	if err != nil {
		return nil, err
	}
	change.ID, change.Key = row.ID, op.Key
	change.Expect.Generation = row.Generation
	metered := change.Intent != nil && change.Intent.Metered
	change.Intent = &ledger.OpenIntent{Key: op.Key, Kind: kind, Holder: op.Holder, Supersede: true, Metered: metered}
	told := false
	for {
		op.Row, err = l.Apply(ctx, change)
		if extensions.IsKind(err, extensions.KindIndeterminate) {
			op.Row, err = l.Apply(context.WithoutCancel(ctx), change)
		}
		var busy *ledger.Busy
		if err == nil {
			return op, nil
		}
		if !errors.As(err, &busy) {
			op.Close()
			return nil, err
		}
		if !told {
			notify.Tell("Waiting for another run", "%s", busy.Error())
			told = true
		}
		if WaitForOthers(ctx) != nil {
			op.Close()
			return nil, err
		}
	}
}

// otherAge is the interval of looks at a live holder's operation.
const otherAge = 200 * time.Millisecond

// WaitForOthers waits before the next look at another run's operation. If ctx ends first, it returns ctx's error.
func WaitForOthers(ctx context.Context) error { return flight.Sleep(ctx, otherAge) }

// Key returns a new key for one operation.
func (b *Book) Key(kind ledger.IntentKind, id string) (string, error) {
	nonce, err := extensions.NewID(b.Rand)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s/%s/%s", kind, id, nonce[len(nonce)-8:]), nil
}

// Abandoned reports whether an open intent has no owner: its holder is dead, or this process could not close it.
func (b *Book) Abandoned(ctx context.Context, l *ledger.Ledger, in ledger.Intent) (bool, error) {
	alive, err := l.HolderAlive(ctx, in.Holder)
	if err != nil || !alive {
		return !alive, err
	}
	self, err := l.Holder(ctx)
	if err != nil || in.Holder != self || b.turns.taken(in.Subject) {
		return false, err
	}
	// Its turn had ended. Is it still open after that?
	now, err := l.Intent(ctx, in.Key)
	return now.State == ledger.Dispatched, err
}

// Settled turns the error of a settlement by another run into success.
func Settled(err error) error {
	var s *ledger.Stale
	if errors.As(err, &s) {
		return nil
	}
	return err
}

// Unresolved is the end reason of a sandbox that may or may not have existed.
const Unresolved = "unresolved"

// Discard closes the operation on a sandbox that is proved absent. endReason is why it ended, reason the
// failure, "" = none.
func (o *Operation) Discard(ctx context.Context, outcome ledger.IntentState, endReason, reason string, end Ending) error {
	kind := ""
	if endReason == Unresolved {
		kind = "sandbox.unresolved"
	}
	if !lifecycle.Can(o.Row.State, lifecycle.Destroyed) && o.Row.State != lifecycle.Destroying {
		if err := o.Apply(ctx, ledger.Change{To: lifecycle.Destroying, Patch: ledger.Patch{Reason: &reason}}); err != nil {
			return err
		}
	}
	return o.Apply(ctx, ledger.Change{
		To:     lifecycle.Destroyed,
		Patch:  ledger.Patch{EndedAt: &end.At, EndReason: &endReason, EndEstimated: &end.Estimated, Reason: &reason, Route: o.Route},
		Finish: &ledger.FinishIntent{Outcome: outcome, Reason: reason},
		Meter:  end.Meter(), Unresolved: endReason == Unresolved,
		Event: ledger.NewNote(kind, map[string]any{"end_reason": endReason, "reason": reason}),
	})
}

// Guarded runs f, which may create something, only while no other run may take this one for dead.
func Guarded(ctx context.Context, l *ledger.Ledger, f func(context.Context) error) error {
	guarded, done := l.Guard(ctx)
	defer done()
	err := f(guarded)
	if err != nil && ctx.Err() == nil && guarded.Err() != nil {
		cause := context.Cause(guarded)
		return extensions.Errorf(extensions.KindOf(err), "%w: %w", cause, err).WithRemedy("%s", extensions.RemedyOf(cause))
	}
	return err
}

// Fail closes an operation that may have left something behind. kind is the kind of the error in reason.
func (o *Operation) Fail(ctx context.Context, reason string, kind extensions.Kind, event string) error {
	c := ledger.Change{
		Patch:  ledger.Patch{Reason: &reason, Route: o.Route},
		Finish: &ledger.FinishIntent{Outcome: ledger.Failed, Reason: reason},
		Event:  ledger.NewNote(event, map[string]any{"reason": reason, "kind": string(kind)}),
	}
	if o.Row.State != lifecycle.Failed {
		c.To = lifecycle.Failed
	}
	return o.Apply(ctx, c)
}

// Ending is when a sandbox ended, and by whose clock.
type Ending struct {
	// Began is what its place said of its start at the end; nil if nothing.
	Began     *ledger.MeterOpen
	At        time.Time
	Source    string            // backend | ours | deadline | seen-alive
	Estimated bool              // the true end is unknown
	Usage     *extensions.Usage // as measured by the backend, if it does
	Idle      bool              // it ended because it was idle
	Refused   []string          // what it measured and cannot be true; see Believed
}

// Meter ends a meter.
func (end Ending) Meter() ledger.MeterOps {
	return ledger.MeterOps{Began: end.Began,
		Close: &ledger.MeterClose{At: end.At, Source: end.Source, Estimated: end.Estimated, Usage: end.Usage,
			Refused: end.Refused}}
}

// Idle is the end reason of a sandbox that its place ended because it was idle.
const Idle = "idle"

// Reason returns the end reason: the given one, unless the sandbox had already ended when it was due.
func (end Ending) Reason(reason string, row ledger.Sandbox) string {
	if end.Idle {
		return Idle
	}
	if reason == "destroyed" && (end.Source == "deadline" || lifecycle.Overdue(end.At, row.ExpiresAt)) {
		return "expired"
	}
	return reason
}

// LastSeen returns when a sandbox was last known to be alive; zero = never.
func LastSeen(row ledger.Sandbox) time.Time {
	if row.SeenAliveAt.IsZero() {
		return row.ReadyAt
	}
	return row.SeenAliveAt
}
