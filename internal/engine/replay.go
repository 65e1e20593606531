package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// How a row of the spool ends whose sandbox goes on in the ledger, and what is
// noted of it before the ledger is told: from then on the ledger may have it.
const (
	movedOn  = "moved"
	movingOn = "moving"
)

// handedOver reports a row of the spool that is not the spool's to change any
// more: without the ledger it is ended and extended by its receipt, as all that
// the ledger has.
func handedOver(row ledger.Sandbox) bool {
	return row.EndReason == movedOn || row.EndReason == movingOn
}

// replay brings what the spool holds into the ledger, in the order it was made,
// each life in one transaction. A name that somebody else has by now is a
// conflict: both sandboxes stay.
func (e *Engine) replay(ctx context.Context, l ledger.Ledger, notify Notify) error {
	s, err := e.spool(ctx, false)
	if err != nil || s == nil {
		return err
	}
	if err := e.recoverIn(ctx, s, notify); err != nil {
		return err
	}
	if kept, ok := s.(*spoolLedger); ok {
		s = kept.Ledger // to go on with what was marked before
	}
	rows, err := s.List(ctx, ledger.Filter{Account: e.account})
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := e.replayOne(ctx, l, s, row, notify); err != nil {
			return err
		}
	}
	e.books.replayed.Store(true)
	return nil
}

// replayOne moves one sandbox; what somebody works on is left where it is.
func (e *Engine) replayOne(ctx context.Context, l, s ledger.Ledger, row ledger.Sandbox, notify Notify) error {
	switch {
	case row.EndReason == movedOn:
		return nil
	case lifecycle.Terminal(row.State):
		return e.carryOver(ctx, l, s, row, notify)
	}
	open, err := s.OpenIntents(ctx, ledger.IntentFilter{Subject: string(row.ID)})
	if err != nil {
		return err
	}
	if len(open) > 0 {
		if over, err := e.abandoned(ctx, s, open[0]); err != nil || !over || row.EndReason != movingOn {
			return err
		}
	}
	mark := movingOn
	op, err := e.openOperation(ctx, s, row, ledger.IntentAdopt, ledger.Change{Patch: ledger.Patch{EndReason: &mark}, Event: note("sandbox.moving", nil)}, notify)
	if err != nil {
		return stale(err)
	}
	defer op.close()
	if stop := failpoint.Hit(ctx, pointMoving); stop != nil {
		return stop
	}
	if err := e.carryOver(ctx, l, s, op.row, notify); err != nil {
		failed := ledger.Change{Finish: &ledger.FinishIntent{Outcome: ledger.Failed, Reason: extensions.Clean(err.Error(), 500)}}
		if refused(err) {
			mark = ""
			failed.Patch.EndReason = &mark
		}
		return errors.Join(err, op.apply(ctx, failed))
	}
	if stop := failpoint.Hit(ctx, pointTold); stop != nil {
		return stop
	}
	// At once: a run that died in between would leave a sandbox to be ended.
	now, reason, expect := e.now(), movedOn, ledger.Expect{Fence: op.row.Fence, Holder: op.holder}
	_, err = s.Replay(context.WithoutCancel(ctx), nil,
		ledger.Change{ID: row.ID, Key: op.key + "/moving", Expect: expect, To: lifecycle.Destroying},
		ledger.Change{ID: row.ID, Key: op.key + "/moved", To: lifecycle.Destroyed, Patch: ledger.Patch{EndedAt: &now, EndReason: &reason},
			Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed}, Meter: ledger.MeterOps{Close: &ledger.MeterClose{At: now, Source: "ours", Booked: &ledger.Booked{}}},
			Event: note("sandbox.moved", map[string]any{"ledger": l.ID()})})
	return err
}

// refused reports that the ledger has taken nothing, for certain.
func refused(err error) bool {
	switch extensions.KindOf(err) {
	case extensions.KindConflict, extensions.KindInvalid, extensions.KindUnauthorized, extensions.KindUnsupported, extensions.KindExhausted, extensions.KindNotFound:
		return true
	}
	return false
}

// carryOver records in l the life that s has of a sandbox. What never ran and
// is over left nothing to record. It has happened already, so neither a taken
// name nor a budget without room keeps it out.
func (e *Engine) carryOver(ctx context.Context, l, s ledger.Ledger, row ledger.Sandbox, notify Notify) error {
	b, changes, err := e.lifeOf(ctx, l, s, row)
	if err != nil || b == nil {
		return err
	}
	var told []Notice
	for last := &changes[len(changes)-1]; ; {
		_, err = l.Replay(ctx, b, changes...)
		var taken *ledger.NameTaken
		switch {
		case short(err) && last.Reserve != nil && last.Reserve.Amount > 0:
			last.Reserve.Amount = 0
			told = append(told, Notice{Summary: "More is in use than there is room for", Detail: fmt.Sprintf("%s (%s) was made here while the ledger could not be reached, "+
				"and nothing could be set aside for it: %s. It goes on, and what it costs is booked at its end.", row.ID, row.Name, err)})
		case errors.As(err, &taken) && !b.Unclaimed:
			b.Unclaimed = true
			b.Event = note("sandbox.conflict", map[string]any{"spool": s.ID(), "name": row.Name, "taken_by": taken.Existing.ID})
			reason := fmt.Sprintf("conflict: while the ledger could not be reached, the name %q was taken by %s", row.Name, taken.Existing.ID)
			if row.Reason != "" {
				reason = row.Reason + "; " + reason
			}
			last.Patch.Reason = &reason
			told = append(told, Notice{Summary: "Two sandboxes have one name", Detail: fmt.Sprintf("%s, made here while the ledger could not be reached, and %s elsewhere are both called %q. "+
				"Both stay; the name is the latter's. Destroy the one you do not need: sandboxer sandbox destroy %s", row.ID, taken.Existing.ID, row.Name, row.ID)})
		default:
			for _, n := range told {
				if err == nil && notify != nil {
					notify(n)
				}
			}
			return err
		}
	}
}

// spoolKey makes the move of a sandbox out of a spool happen once.
func spoolKey(spool string, id ID) string { return "spool/" + spool + "/" + string(id) }

// spoolOf reads the spool from a key that spoolKey made, or one of its steps'.
func spoolOf(key string) (spool string, ok bool) {
	rest, ok := strings.CutPrefix(key, "spool/")
	spool, _, whole := strings.Cut(rest, "/")
	return spool, ok && whole
}
