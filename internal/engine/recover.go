package engine

import (
	"context"
	"errors"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// recovery runs once per engine, before its first change. A run that was cut
// off by its caller, or failed, counts for nothing: the next caller tries.
type recovery struct {
	turn chan struct{} // of one place: who fills it recovers
	done bool
}

// recovered gives the ledger for a change that waits for recovery.
func (e *Engine) recovered(ctx context.Context, notify Notify) (ledger.Ledger, error) {
	l, err := e.writer(ctx)
	if err == nil {
		err = e.recoverOnce(ctx, notify)
	}
	return l, err
}

func (e *Engine) recoverOnce(ctx context.Context, notify Notify) error {
	select {
	case e.recovery.turn <- struct{}{}:
	case <-ctx.Done():
		return place.Classify("recover", "", ctx.Err())
	}
	defer func() { <-e.recovery.turn }()
	if e.recovery.done {
		return nil
	}
	err := e.Recover(ctx, notify)
	e.recovery.done = err == nil
	return err
}

// Recover settles what a dead process left in between: it finishes destroys,
// removes what an unfinished create had made, and closes both. Operations of
// living processes are left alone; what cannot be settled from here (no
// credential, not reachable) is told and kept. It runs by itself once before
// the first mutating operation of an Engine.
func (e *Engine) Recover(ctx context.Context, notify Notify) error {
	e.sweepScratch()
	l, err := e.writer(ctx)
	if err != nil {
		return err
	}
	e.settleNoted(ctx, l, notify)
	intents, err := l.OpenIntents(ctx, ledger.IntentFilter{Account: e.account})
	if err != nil {
		return err
	}
	for _, in := range intents {
		over, err := e.abandoned(ctx, l, in)
		if err != nil {
			return err
		}
		if !over {
			continue
		}
		if err := e.recoverIntent(ctx, l, in, notify); err != nil {
			if ctx.Err() != nil {
				return err
			}
			notify.tell("Left for later", "%s of %s by a run that died could not be settled: %s", in.Kind, in.Subject, err.Error())
		}
	}
	return nil
}

// abandoned reports that nobody works on an open intent any more: its holder
// is dead, or it is one of this engine's own that could not be closed.
func (e *Engine) abandoned(ctx context.Context, l ledger.Ledger, in ledger.Intent) (bool, error) {
	alive, err := l.HolderAlive(ctx, in.Holder)
	if err != nil || !alive {
		return !alive, err
	}
	self, err := l.Holder(ctx)
	if err != nil || in.Holder != self || e.turns.taken(in.Subject) {
		return false, err
	}
	// Its turn was over when looked at. Was it open even after that?
	now, err := l.Intent(ctx, in.Key)
	return now.State == ledger.Dispatched, err
}

func (e *Engine) recoverIntent(ctx context.Context, l ledger.Ledger, in ledger.Intent, notify Notify) error {
	if extensions.ValidSnapshotID(in.Subject) {
		return e.recoverSnapshot(ctx, l, in)
	}
	row, err := l.Get(ctx, ID(in.Subject))
	if err != nil {
		return err
	}
	return e.recoverRow(ctx, l, row, notify)
}

// recoverRow settles one sandbox whose last operation died.
func (e *Engine) recoverRow(ctx context.Context, l ledger.Ledger, row ledger.Sandbox, notify Notify) error {
	if lifecycle.Unsettled(row.State) {
		notify.tell("Cleaning up after a run that died", "%s (%s) was left %s", row.ID, row.Name, row.State)
		_, err := e.end(ctx, l, row, ended{reason: "recovered", notify: notify})
		return stale(err)
	}
	// A change in place (extend, adopt, sync): the sandbox itself is whole.
	// What the backend enforces now is unknown, so it is brought in line.
	op, err := e.openOperation(ctx, l, row, ledger.IntentExtend, ledger.Change{Event: ledger.NewNote("sandbox.recovering", nil)}, notify)
	if err != nil {
		return stale(err)
	}
	defer op.close()
	err = e.realign(ctx, op)
	done := ledger.Change{Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed}, Event: ledger.NewNote("sandbox.recovered", nil)}
	if err != nil {
		done.Finish = &ledger.FinishIntent{Outcome: ledger.Failed, Reason: extensions.Clean(err.Error(), 500)}
	} else {
		done.Reserve = e.settledEnd(ctx, l, op.row, op.row.ExpiresAt)
	}
	return errors.Join(err, op.apply(ctx, done))
}

// realign makes the backend's deadline and generation those of the ledger.
func (e *Engine) realign(ctx context.Context, op *operation) error {
	if !lifecycle.Usable(op.row.State) || lifecycle.Overdue(e.now(), op.row.ExpiresAt) {
		return nil
	}
	b, err := e.places.Open(ctx, placeOf(op.row))
	if err != nil {
		return err
	}
	if b.Binding.Descriptor.Has(extensions.PowerGenerationSet) {
		// A conflict says that it carries this generation, or a later one.
		if err := b.SetGeneration(ctx, op.row.Handle, op.row.Generation); err != nil && !absent(err) && !extensions.IsKind(err, extensions.KindConflict) {
			return err
		}
	}
	if b.Binding.Descriptor.Has(extensions.PowerExtend) {
		if err := b.Extend(ctx, op.row.Handle, op.row.ExpiresAt); err != nil && !absent(err) {
			return err
		}
	}
	return nil
}

// stale turns "someone else was faster" into success: it is settled.
func stale(err error) error {
	var s *ledger.Stale
	if errors.As(err, &s) {
		return nil
	}
	return err
}
