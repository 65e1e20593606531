package life

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/book"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// recovery runs once per engine, before its first change. A run that its caller cut off, or that failed,
// does not count: the next caller tries again.
type recovery struct {
	turn chan struct{} // capacity 1: whoever fills it recovers
	done time.Time     // when what was overdue was last ended; zero = no recovery yet
	// again says that this engine itself gave up an operation since.
	again atomic.Bool
}

// overdueAgainAfter is how often an engine that lives on ends what became overdue meanwhile, before a change.
const overdueAgainAfter = 5 * time.Minute

// recovered returns the ledger for a change, after recovery.
func (m *Manager) recovered(ctx context.Context, notify notice.Notify) (*ledger.Ledger, error) {
	l, err := m.book.Writer(ctx)
	if err == nil {
		err = m.recoverOnce(ctx, notify)
	}
	return l, err
}

func (m *Manager) recoverOnce(ctx context.Context, notify notice.Notify) error {
	select {
	case m.recovery.turn <- struct{}{}:
	case <-ctx.Done():
		return extensions.Classify("recover", "", "", ctx.Err())
	}
	defer func() { <-m.recovery.turn }()
	now := m.book.Now()
	var err error
	switch done := m.recovery.done; {
	case done.IsZero() || m.recovery.again.Swap(false):
		m.recovery.done = time.Time{} // if it fails, it is not done
		err = m.Recover(ctx, notify)
	case now.Sub(done) >= overdueAgainAfter:
		err = m.endAllOverdue(ctx, notify)
	default:
		return nil
	}
	if err == nil {
		m.recovery.done = now
	}
	return err
}

// Recover settles the unfinished operations of dead processes: it completes destroys, removes the objects of
// unfinished creates, and closes both. It leaves operations of living processes alone. It reports and keeps
// operations that cannot be settled from here (no credential, unreachable). It also ends overdue sandboxes
// and snapshots that nothing else ends. It runs once by itself before an Engine's first mutating operation.
func (m *Manager) Recover(ctx context.Context, notify notice.Notify) error {
	m.scratch.Sweep()
	l, err := m.book.Writer(ctx)
	if err != nil {
		return err
	}
	m.book.SettleNoted(ctx, l, notify)
	intents, err := l.OpenIntents(ctx, ledger.IntentFilter{Account: m.account})
	if err != nil {
		return err
	}
	for _, in := range intents {
		over, err := m.book.Abandoned(ctx, l, in)
		if err != nil {
			return err
		}
		if !over {
			continue
		}
		if err := m.recoverIntent(ctx, l, in, notify); err != nil {
			if ctx.Err() != nil {
				return err
			}
			next := extensions.RemedyOf(err)
			if next != "" {
				next = ". What to do: " + next
			}
			notify.Tell("Not settled yet", "The %s of %s by an earlier run could not be settled: %s%s", in.Kind, in.Subject, err.Error(), next)
		}
	}
	return m.endAllOverdue(ctx, notify)
}

// endAllOverdue ends the sandboxes and the snapshots that are overdue and that nothing else ends.
func (m *Manager) endAllOverdue(ctx context.Context, notify notice.Notify) error {
	l, err := m.book.Writer(ctx)
	if err == nil {
		err = m.endOverdue(ctx, l, notify)
	}
	if err != nil {
		return err
	}
	return m.endOverdueSnapshots(ctx, l, notify)
}

func (m *Manager) recoverIntent(ctx context.Context, l *ledger.Ledger, in ledger.Intent, notify notice.Notify) error {
	if extensions.ValidSnapshotID(in.Subject) {
		return m.recoverSnapshot(ctx, l, in, notify)
	}
	row, err := l.Get(ctx, extensions.ID(in.Subject))
	if err != nil {
		return err
	}
	return m.recoverRow(ctx, l, row, in, notify)
}

// recoverRow settles one sandbox whose last operation died.
func (m *Manager) recoverRow(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, died ledger.Intent, notify notice.Notify) error {
	if lifecycle.Unsettled(row.State) {
		notify.Tell("Cleaning up after a run that died", "%s (%s) was left %s", row.ID, row.Name, row.State)
		how := cause{reason: "recovered", notify: notify}
		if died.Kind == ledger.IntentDestroy {
			how.begun = died.StartedAt
		}
		_, err := m.end(ctx, l, row, how)
		return book.Settled(err)
	}
	// After a change in place (extend, adopt, mode, sync) the sandbox itself is whole. What the backend enforces now is
	// unknown, so it is realigned. It is asked first: until it answers, the dead run's operation stays open, and its age
	// says when a mode was asked for.
	begun := ledger.Change{Expect: ledger.Expect{Fence: row.Fence}, Event: ledger.NewNote("sandbox.recovering", nil)}
	var o extensions.Observation
	if lifecycle.Usable(row.State) {
		err := m.book.CheckClock()
		if err != nil && !lifecycle.Overdue(m.book.Now(), row.ExpiresAt) {
			return err // it would set a wrong deadline
		}
		if o, err = m.lookAgain(ctx, row); err != nil {
			return err
		}
		resuming := died.Kind == ledger.IntentMode && o.Phase == extensions.PhaseProvisioning
		if resuming && !lifecycle.Overdue(m.book.Now(), row.ExpiresAt) {
			if o, err = m.resumeAgain(ctx, row); err != nil {
				return err
			}
		}
		if err := m.seenMode(ctx, &book.Operation{Ledger: l, Row: row}, o, died.StartedAt, &begun); err != nil {
			return err
		}
	}
	op, err := m.book.Begin(ctx, l, row, ledger.IntentExtend, begun, notify)
	if err != nil {
		return book.Settled(err)
	}
	defer op.Close()
	deadline, err := m.realign(ctx, op.Row, o)
	if err != nil {
		return err // left open: the next run tries again
	}
	return op.Apply(ctx, ledger.Change{Patch: ledger.Patch{ExpiresAt: &deadline}, Reserve: m.releaseSurplus(ctx, l, op.Row, deadline),
		Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed}, Event: ledger.NewNote("sandbox.recovered", nil)})
}

func (m *Manager) resumeAgain(ctx context.Context, row ledger.Sandbox) (extensions.Observation, error) {
	b, err := m.places.Open(ctx, placeOf(row))
	if err != nil {
		return extensions.Observation{}, err
	}
	return b.Resume(ctx, row.Handle, row.ExpiresAt)
}

// realign sets the backend's deadline and generation to those of the ledger, and returns the deadline that then
// holds: that of a place which can only move it later, and has. What is paused is paused once more, as a
// change of mode that died may have reached only a part of it. o is what the place shows.
func (m *Manager) realign(ctx context.Context, row ledger.Sandbox, o extensions.Observation) (deadline time.Time, err error) {
	deadline = row.ExpiresAt
	if !lifecycle.Usable(row.State) || lifecycle.Overdue(m.book.Now(), deadline) {
		return deadline, nil
	}
	b, err := m.places.Open(ctx, placeOf(row))
	if err != nil {
		return deadline, err
	}
	if modeOf(o) == ledger.Paused {
		if _, err := b.Pause(ctx, row.Handle); err != nil && !absent(err) {
			return deadline, err
		}
	}
	if b.Binding.Descriptor.Has(extensions.PowerGenerationSet) {
		// A conflict means that it carries this generation or a later one.
		if err := b.SetGeneration(ctx, row.Handle, row.Generation); err != nil && !absent(err) &&
			!extensions.IsKind(err, extensions.KindConflict) {
			return deadline, err
		}
	}
	switch {
	case m.inLedgerAlone(b, row) || !b.Binding.Descriptor.Has(extensions.PowerExtend):
		return deadline, nil
	case b.Binding.Capabilities.ExtendTTL == extensions.ExtendLater && o.Deadline.After(deadline) && !endsAt(b, o, deadline):
		return o.Deadline, nil
	}
	if err := b.Extend(ctx, row.Handle, deadline); err != nil && !absent(err) {
		return deadline, err
	}
	return deadline, nil
}

// unfinished lists the sandboxes that dead runs left between states.
func (m *Manager) unfinished(ctx context.Context, l *ledger.Ledger) ([]extensions.ID, error) {
	intents, err := l.OpenIntents(ctx, ledger.IntentFilter{Account: m.account})
	if err != nil {
		return nil, err
	}
	var out []extensions.ID
	for _, in := range intents {
		row, err := l.Get(ctx, extensions.ID(in.Subject))
		if err != nil || !lifecycle.Unsettled(row.State) {
			continue // a snapshot's, or a change to a sandbox that lives on
		}
		alive, err := l.HolderAlive(ctx, in.Holder)
		if err != nil {
			return nil, err
		}
		if !alive {
			out = append(out, row.ID)
		}
	}
	return out, nil
}
