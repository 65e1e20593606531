package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// recovery runs once per engine before its first change.
type recovery struct {
	once sync.Once
	err  error
}

func (e *Engine) recoverOnce(ctx context.Context, notify Notify) error {
	e.recovery.once.Do(func() { e.recovery.err = e.Recover(ctx, notify) })
	return e.recovery.err
}

// Recover settles what a dead process left in between: it finishes destroys,
// removes what an unfinished create had made, and closes both. Operations of
// living processes are left alone; what cannot be settled from here (no
// credential, not reachable) is told and kept. It runs by itself once before
// the first mutating operation of an Engine.
func (e *Engine) Recover(ctx context.Context, notify Notify) error {
	l, err := e.writer(ctx)
	if err != nil {
		return err
	}
	intents, err := l.OpenIntents(ctx, ledger.IntentFilter{Account: e.account})
	if err != nil {
		return err
	}
	for _, in := range intents {
		alive, err := l.HolderAlive(ctx, in.Holder)
		if err != nil {
			return err
		}
		if alive {
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
	op, err := e.openOperation(ctx, l, row, ledger.IntentExtend, ledger.Change{Event: note("sandbox.recovering", nil)}, notify)
	if err != nil {
		return stale(err)
	}
	err = e.realign(ctx, op)
	outcome := ledger.Confirmed
	reason := ""
	if err != nil {
		outcome, reason = ledger.Failed, extensions.Clean(err.Error(), 500)
	}
	return errors.Join(err, op.apply(ctx, ledger.Change{Finish: &ledger.FinishIntent{Outcome: outcome, Reason: reason}, Event: note("sandbox.recovered", nil)}))
}

// realign makes the backend's deadline and generation those of the ledger.
func (e *Engine) realign(ctx context.Context, op *operation) error {
	if !lifecycle.Usable(op.row.State) {
		return nil
	}
	b, err := e.backend(ctx, placeOf(op.row))
	if err != nil {
		return err
	}
	if b.binding.Descriptor.Has(extensions.PowerExtend) {
		if err := e.moveDeadline(ctx, b, op.row, op.row.ExpiresAt); err != nil && !absent(err) {
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
