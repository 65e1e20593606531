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

// Operation is one begun intent on one sandbox: every step is a
// compare-and-set under its fence, and happens once.
type Operation struct {
	Ledger ledger.Ledger
	Holder ledger.HolderID
	Key    string
	Row    ledger.Sandbox // as the last step left it
	Notify notice.Notify
	// Route, where set, is recorded with the end of a create.
	Route json.RawMessage

	steps   int
	release func() // of the turn
}

// Close ends the operation's turn. Whatever it left open is for recovery.
func (o *Operation) Close() {
	if o != nil && o.release != nil {
		o.release()
	}
}

// Apply takes one step. It is not cut off by the caller's cancellation: what
// happened outside must be recorded.
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

// Prepare makes ready to begin an operation on what id names, a sandbox or a
// snapshot, and takes its turn: one at a time in this process, as the ledger does
// between processes. Close ends the turn.
func (b *Book) Prepare(ctx context.Context, l ledger.Ledger, kind ledger.IntentKind, id string, notify notice.Notify) (*Operation, error) {
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

// Begin begins an intent on an existing row; Close ends its turn. An operation
// of a living holder is waited for; a dead one's intent is taken over. Of a
// change's own Intent only Metered counts.
func (b *Book) Begin(ctx context.Context, l ledger.Ledger, row ledger.Sandbox, kind ledger.IntentKind, change ledger.Change, notify notice.Notify) (*Operation, error) {
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

// otherAge is how often a living holder's operation is looked at.
const otherAge = 200 * time.Millisecond

// WaitForOthers waits until it is time to look again at what another run does,
// or until ctx ends, whose error it returns.
func WaitForOthers(ctx context.Context) error { return flight.Sleep(ctx, otherAge) }

// Key makes a key for one operation.
func (b *Book) Key(kind ledger.IntentKind, id string) (string, error) {
	nonce, err := extensions.NewID(b.Rand)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s/%s/%s", kind, id, nonce[len(nonce)-8:]), nil
}

// Abandoned reports that nobody works on an open intent any more: its holder is
// dead, or it is one of this process's own that could not be closed.
func (b *Book) Abandoned(ctx context.Context, l ledger.Ledger, in ledger.Intent) (bool, error) {
	alive, err := l.HolderAlive(ctx, in.Holder)
	if err != nil || !alive {
		return !alive, err
	}
	self, err := l.Holder(ctx)
	if err != nil || in.Holder != self || b.turns.taken(in.Subject) {
		return false, err
	}
	// Its turn was over when looked at. Was it open even after that?
	now, err := l.Intent(ctx, in.Key)
	return now.State == ledger.Dispatched, err
}

// Settled turns "someone else was faster" into success: it is settled.
func Settled(err error) error {
	var s *ledger.Stale
	if errors.As(err, &s) {
		return nil
	}
	return err
}

// Unresolved is why a sandbox ended of which nobody will ever know whether it
// was made.
const Unresolved = "unresolved"

// Discard closes the operation on a sandbox that is proved absent. endReason is
// why it ended, reason what went wrong, "" = nothing.
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
		Meter:  ledger.MeterOps{Close: end.Close()}, Unresolved: endReason == Unresolved,
		Event: ledger.NewNote(kind, map[string]any{"end_reason": endReason, "reason": reason}),
	})
}

// Guarded runs what may make something only as long as nobody may take this run
// for dead.
func Guarded(ctx context.Context, l ledger.Ledger, f func(context.Context) error) error {
	guarded, done := l.Guard(ctx)
	defer done()
	err := f(guarded)
	if err != nil && ctx.Err() == nil && guarded.Err() != nil {
		cause := context.Cause(guarded)
		return extensions.Errorf(extensions.KindOf(err), "%w: %w", cause, err).WithRemedy("%s", extensions.RemedyOf(cause))
	}
	return err
}

// Fail closes the operation with something possibly left behind. kind is that of
// the error that reason tells of.
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

// Ending is when a sandbox ended and whose clock says so.
type Ending struct {
	At        time.Time
	Source    string            // backend | ours | deadline | seen-alive
	Estimated bool              // nobody told
	Usage     *extensions.Usage // what the backend measured, if it told
}

// Close is the end of a meter.
func (end Ending) Close() *ledger.MeterClose {
	return &ledger.MeterClose{At: end.At, Source: end.Source, Estimated: end.Estimated, Usage: end.Usage}
}

// Reason keeps the truth for a sandbox that expired before anybody came to end
// it.
func (end Ending) Reason(reason string, row ledger.Sandbox) string {
	if reason == "destroyed" && (end.Source == "deadline" || lifecycle.Overdue(end.At, row.ExpiresAt)) {
		return "expired"
	}
	return reason
}

// LastSeen is when a sandbox is known to have lived; zero = it never did.
func LastSeen(row ledger.Sandbox) time.Time {
	if row.SeenAliveAt.IsZero() {
		return row.ReadyAt
	}
	return row.SeenAliveAt
}
