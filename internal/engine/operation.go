package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Points between the steps of create and destroy where tests end the process.
const (
	pointPrepared    = "engine.create.prepared"    // nothing recorded
	pointBegun       = "engine.create.begun"       // intent recorded, nothing asked
	pointPlaced      = "engine.create.placed"      // place recorded, nothing asked
	pointProvisioned = "engine.create.provisioned" // made, handle not stored
	pointHandle      = "engine.create.handle"      // handle stored
	pointReady       = "engine.create.ready"       // ready there, not here
	pointConfirmed   = "engine.create.confirmed"   // done here, not told
	pointDestroying  = "engine.destroy.begun"      // intent recorded, nothing ended
	pointTorn        = "engine.destroy.torn"       // ended there, not here
	pointDestroyed   = "engine.destroy.confirmed"  // done here, not told

	pointSnapshotBegun = "engine.snapshot.begun"     // intent recorded, nothing asked
	pointSnapshotMade  = "engine.snapshot.made"      // made there, not recorded
	pointSnapshotKept  = "engine.snapshot.confirmed" // done here, not told

	pointExtending = "engine.extend.begun" // intent recorded, nothing asked
	pointExtended  = "engine.extend.moved" // moved there, not here
)

// operation is one begun intent on one sandbox: every step is a
// compare-and-set under its fence, and happens once.
type operation struct {
	e      *Engine
	l      ledger.Ledger
	holder ledger.HolderID
	key    string
	row    ledger.Sandbox
	steps  int
	notify Notify
	// route, where set, is recorded with the end of a create.
	route   json.RawMessage
	release func() // of the turn
}

// close ends the operation's turn. Whatever it left open is for recovery.
func (o *operation) close() {
	if o != nil && o.release != nil {
		o.release()
	}
}

// cleanupTime bounds what is still done after a caller gave up.
const cleanupTime = 2 * time.Minute

// settling is a context for what must be done even though ctx has ended.
func settling(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
}

// apply takes one step. It is not cut off by the caller's cancellation: what
// happened outside must be recorded.
func (o *operation) apply(ctx context.Context, c ledger.Change) error {
	o.steps++
	c.ID = o.row.ID
	c.Key = fmt.Sprintf("%s/%d", o.key, o.steps)
	c.Expect.Fence, c.Expect.Holder = o.row.Fence, o.holder
	row, err := o.l.Apply(context.WithoutCancel(ctx), c)
	if extensions.IsKind(err, extensions.KindIndeterminate) { // its key makes it happen once
		row, err = o.l.Apply(context.WithoutCancel(ctx), c)
	}
	if err != nil {
		return err
	}
	o.row = row
	return nil
}

// openOperation begins an intent on an existing row; close ends its turn. An
// operation of a living holder is waited for; a dead one's intent is taken
// over. Of a change's own Intent only Metered counts.
func (e *Engine) openOperation(ctx context.Context, l ledger.Ledger, row ledger.Sandbox, kind ledger.IntentKind, change ledger.Change, notify Notify) (*operation, error) {
	holder, err := l.Holder(ctx)
	if err != nil {
		return nil, err
	}
	key, err := e.operationKey(kind, row.ID)
	if err != nil {
		return nil, err
	}
	release, err := e.turns.take(ctx, string(row.ID))
	if err != nil {
		return nil, place.Classify(string(kind), row.ID, err)
	}
	change.ID, change.Key = row.ID, key
	change.Expect.Generation = row.Generation
	metered := change.Intent != nil && change.Intent.Metered
	change.Intent = &ledger.OpenIntent{Key: key, Kind: kind, Holder: holder, Supersede: true, Metered: metered}
	told := false
	for {
		now, err := l.Apply(ctx, change)
		if extensions.IsKind(err, extensions.KindIndeterminate) {
			now, err = l.Apply(context.WithoutCancel(ctx), change)
		}
		if err == nil {
			return &operation{e: e, l: l, holder: holder, key: key, row: now, notify: notify, release: release}, nil
		}
		var busy *ledger.Busy
		if !errors.As(err, &busy) {
			release()
			return nil, err
		}
		if !told {
			notify.tell("Waiting for another run", "%s", busy.Error())
			told = true
		}
		if place.Sleep(ctx, waitForOthers) != nil {
			release()
			return nil, err
		}
	}
}

// waitForOthers is how often a living holder's operation is looked at.
const waitForOthers = 200 * time.Millisecond

func (e *Engine) operationKey(kind ledger.IntentKind, id ID) (string, error) {
	nonce, err := extensions.NewID(e.opts.Rand)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s/%s/%s", kind, id, nonce[len(nonce)-8:]), nil
}

func (n Notify) tell(summary, format string, args ...any) {
	if n != nil {
		n(Notice{Summary: summary, Detail: fmt.Sprintf(format, args...)})
	}
}

// placeOf names the backend that holds a row's sandbox.
func placeOf(row ledger.Sandbox) place.Address {
	return place.Address{Binding: row.Extension, Account: row.Account, Host: row.HostRef}
}

// discard closes the operation on a sandbox that is proved absent.
func (o *operation) discard(ctx context.Context, outcome ledger.IntentState, endReason string, cause error, end ending) error {
	reason, kind := "", ""
	if cause != nil {
		reason = reasonOf(cause)
	}
	if endReason == unresolvedEnd {
		kind = "sandbox.unresolved"
	}
	if !lifecycle.Can(o.row.State, lifecycle.Destroyed) && o.row.State != lifecycle.Destroying {
		if err := o.apply(ctx, ledger.Change{To: lifecycle.Destroying, Patch: ledger.Patch{Reason: &reason}}); err != nil {
			return err
		}
	}
	return o.apply(ctx, ledger.Change{
		To:     lifecycle.Destroyed,
		Patch:  ledger.Patch{EndedAt: &end.at, EndReason: &endReason, EndEstimated: &end.estimated, Reason: &reason, Route: o.route},
		Finish: &ledger.FinishIntent{Outcome: outcome, Reason: reason},
		Meter:  ledger.MeterOps{Close: end.close()}, Unresolved: endReason == unresolvedEnd,
		Event: ledger.NewNote(kind, map[string]any{"end_reason": endReason, "reason": reason}),
	})
}

// held runs what may make something only as long as nobody may take this run
// for dead.
func held(ctx context.Context, l ledger.Ledger, f func(context.Context) error) error {
	guarded, done := l.Guard(ctx)
	defer done()
	err := f(guarded)
	if err != nil && ctx.Err() == nil && guarded.Err() != nil {
		cause := context.Cause(guarded)
		return extensions.Errorf(extensions.KindOf(err), "%w: %w", cause, err).WithRemedy("%s", extensions.RemedyOf(cause))
	}
	return err
}

// fail closes the operation with something possibly left behind.
func (o *operation) fail(ctx context.Context, cause error, event string) error {
	reason := reasonOf(cause)
	c := ledger.Change{
		Patch:  ledger.Patch{Reason: &reason, Route: o.route},
		Finish: &ledger.FinishIntent{Outcome: ledger.Failed, Reason: reason},
		Event:  ledger.NewNote(event, map[string]any{"reason": reason, "kind": string(extensions.KindOf(cause))}),
	}
	if o.row.State != lifecycle.Failed {
		c.To = lifecycle.Failed
	}
	return o.apply(ctx, c)
}

// ending is when a sandbox ended and whose clock says so.
type ending struct {
	at        time.Time
	source    string            // backend | ours | deadline | seen-alive
	estimated bool              // nobody told; see untold
	usage     *extensions.Usage // what the backend measured, if it told
}

func (end ending) close() *ledger.MeterClose {
	return &ledger.MeterClose{At: end.at, Source: end.source, Estimated: end.estimated, Usage: end.usage}
}
