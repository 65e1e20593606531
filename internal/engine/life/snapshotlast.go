package life

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/book"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Where a snapshot ends its sandbox (Snapshots.EndsSource), it is all that is left of the work. So one that may have been
// taken is never undone: this run or the next finishes it. Its look-up may need what is left of the sandbox, which is torn
// down last; no other end of the sandbox comes before that.

// bySnapshot is the end reason of a sandbox that its snapshot ended.
const bySnapshot = "snapshot"

// onlyCopy refuses another snapshot of a sandbox that its snapshot ended, and names that: a run that was killed may have told
// nobody. nil = none ended it, or it is not kept.
func onlyCopy(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox) error {
	if row.State != lifecycle.Destroyed || row.EndReason != bySnapshot {
		return nil
	}
	kept, _ := l.ListSnapshots(ctx, ledger.SnapshotFilter{Account: row.Account, Live: true})
	for _, s := range slices.Backward(kept) {
		if s.SandboxID == row.ID && s.State == ledger.SnapshotReady {
			return extensions.Errorf(extensions.KindConflict, "snapshot %s ended sandbox %s (%s), which cannot be changed any more", s.ID, row.ID,
				row.Name).WithRemedy("if your own run took it and lost its state, import it:\n\nimport {\n  to = sandboxer_snapshot.NAME # the "+
				"address of this resource\n  id = %q\n}\n\notherwise choose a live sandbox, or undo the change of the snapshot's arguments", s.ID)
		}
	}
	return nil
}

// lastSnapshot takes a snapshot that ends its sandbox, after what a destroy does inside.
func (m *Manager) lastSnapshot(ctx context.Context, b *place.Backend, row ledger.Sandbox, p pending,
	req SnapshotRequest) (SnapshotView, error) {
	var report DestroyReport
	row, err := m.readyToEnd(ctx, b, p.op.Ledger, row, &report)
	if err != nil {
		_, lerr := m.notTaken(ctx, p, err)
		return SnapshotView{}, errors.Join(err, lerr)
	}
	made, _, err := m.takeSnapshot(ctx, p.op.Ledger, b, row, p.s, req)
	kept := p.s
	if err == nil {
		kept, err = m.keepSnapshot(ctx, b, p, made, nil)
	}
	if err != nil {
		sctx, cancel := settling(ctx)
		defer cancel()
		var unknown error
		if kept, unknown = m.settleSnapshot(sctx, b, p, nil); unknown != nil {
			return snapshotView(m.leaveUnsure(sctx, p, errors.Join(err, unknown))), extensions.Errorf(extensions.KindOf(err),
				"%w; whether it was taken is not known: %w", err, unknown).WithRemedy("run `sandboxer sweep` before anything else: it keeps the " +
				"snapshot and settles the sandbox that it ended, or finds that there is none. Terraform would replace it, unless you " +
				"`terraform untaint` it")
		}
		if kept.State == ledger.SnapshotDeleted {
			return SnapshotView{}, lookedFor(err)
		}
	}
	p.s = kept
	out := snapshotView(kept)
	out.Notices = append(report.Notices, m.partFrom(ctx, b, p)...)
	return out, failpoint.Hit(ctx, pointSnapshotKept)
}

// readyToEnd does what comes before the end of a sandbox. Its end may have begun before the snapshot was recorded; any later one
// waits for that.
func (m *Manager) readyToEnd(ctx context.Context, b *place.Backend, l *ledger.Ledger, row ledger.Sandbox,
	report *DestroyReport) (ledger.Sandbox, error) {
	if err := failpoint.Hit(ctx, pointSnapshotBegun); err != nil {
		return row, err
	}
	row, err := l.Get(ctx, row.ID)
	if err != nil {
		return row, err
	}
	if !lifecycle.Usable(row.State) {
		return row, extensions.Errorf(extensions.KindConflict, "sandbox %s (%s) is %s meanwhile", row.ID, row.Name, lifecycle.Shown(row.State)).
			WithRemedy("recreate it")
	}
	held, err := m.leases(ctx, l, row, "")
	if err != nil {
		return row, err
	}
	if len(held) > 1 {
		return row, extensions.Errorf(extensions.KindConflict, "%d hold sandbox %s (%s), which the snapshot would end", len(held), row.ID,
			row.Name).WithRemedy("take it when one holds it alone")
	}
	last := m.partingOf(row)
	if row, err = m.wake(ctx, l, row, last, nil); err == nil {
		err = m.farewell(ctx, b, row, last, report, nil)
	}
	return row, err
}

// leaveUnsure leaves a snapshot of which nothing is known to the end of its sandbox, whoever ends that.
func (m *Manager) leaveUnsure(ctx context.Context, p pending, cause error) ledger.Snapshot {
	reason, c := reasonOf(cause), p.change("/unsure")
	if c.Patch.Reason = &reason; p.s.State != ledger.SnapshotFailed {
		c.To = ledger.SnapshotFailed
	}
	c.Finish = &ledger.FinishIntent{Outcome: ledger.Failed, Reason: reason}
	if s, err := applySnapshot(ctx, p.op.Ledger, c); err == nil {
		return s
	}
	return p.s // the next run finds its operation open
}

// notTaken closes a snapshot of which nothing exists.
func (m *Manager) notTaken(ctx context.Context, p pending, cause error) (ledger.Snapshot, error) {
	if p.s.State == ledger.SnapshotFailed {
		c := p.change("/ending")
		c.To = ledger.SnapshotDeleting
		if _, err := applySnapshot(ctx, p.op.Ledger, c); err != nil {
			return p.s, err
		}
	}
	reason, now, c := reasonOf(cause), m.book.Now(), p.change("/none")
	c.To, c.Patch = ledger.SnapshotDeleted, ledger.SnapshotPatch{Reason: &reason, EndedAt: &now}
	c.Finish = &ledger.FinishIntent{Outcome: ledger.Failed, Reason: reason}
	return applySnapshot(ctx, p.op.Ledger, c)
}

// settleSnapshot finds out whether a snapshot was taken, and records it, or that there is none. An error leaves it open.
func (m *Manager) settleSnapshot(ctx context.Context, b *place.Backend, p pending, finish *ledger.FinishIntent) (ledger.Snapshot, error) {
	if !unsure(p.s) {
		return p.s, nil
	}
	h, err := b.FindSnapshotSettled(ctx, p.s.ID)
	var made extensions.Snapshot
	if err == nil {
		made, err = b.StatSnapshot(ctx, h)
	}
	switch {
	case absent(err):
		return m.notTaken(ctx, p, err)
	case err != nil:
		return p.s, err
	}
	return m.keepSnapshot(ctx, b, p, made, finish)
}

// unsure reports that nobody knows whether a snapshot was taken.
func unsure(s ledger.Snapshot) bool {
	return s.State == ledger.SnapshotCreating || s.State == ledger.SnapshotFailed && s.Handle.ID == ""
}

// partFrom tears down and settles a sandbox that its snapshot has ended, and closes the snapshot's operation. A sandbox that
// cannot be ended now is left to a sweep.
func (m *Manager) partFrom(ctx context.Context, b *place.Backend, p pending) []notice.Notice {
	ctx, cancel := settling(ctx)
	defer cancel()
	l := p.op.Ledger
	var report DestroyReport
	row, err := l.Get(ctx, p.s.SandboxID)
	if err == nil && row.State != lifecycle.Destroyed {
		var o extensions.Observation
		// One that lives was made again under its id: it is not the snapshot's.
		if o, err = b.Look(ctx, row.Handle); err == nil && (o.Phase == extensions.PhaseFailed || endedBecause(o) != "" ||
			o.Phase == extensions.PhaseAbsent) {
			report, err = m.end(ctx, l, row, cause{reason: bySnapshot})
			err = errors.Join(book.Settled(err), report.unsettled)
		}
	}
	c := p.change("/done")
	c.Finish = &ledger.FinishIntent{Outcome: ledger.Confirmed}
	_, lerr := applySnapshot(ctx, l, c)
	if err = errors.Join(err, lerr); err != nil {
		report.Notices = append(report.Notices, notice.Notice{Summary: "Its sandbox is not settled yet",
			Detail: fmt.Sprintf("The snapshot %s is kept, and ended sandbox %s, whose end could not be settled: %s. What to do: run "+
				"`sandboxer sweep` later, which settles it.", p.s.ID, p.s.SandboxID, err)})
	}
	return report.Notices
}

// finishSnapshot takes over the snapshot of a dead run, and with it the end of its sandbox.
func (m *Manager) finishSnapshot(ctx context.Context, l *ledger.Ledger, b *place.Backend, s ledger.Snapshot, notify notice.Notify) error {
	p, err := m.takeOver(ctx, l, s)
	if err != nil {
		return err
	}
	defer p.op.Close()
	s, err = m.settleSnapshot(ctx, b, p, nil)
	if err != nil {
		m.leaveUnsure(ctx, p, err)
	}
	if p.s = s; err != nil || s.State != ledger.SnapshotReady {
		return err
	}
	notify.Tell("Finishing a snapshot of a dead run", "%s is kept, and ended %s", s.ID, s.SandboxID)
	for _, n := range m.partFrom(ctx, b, p) {
		notify.Tell(n.Summary, "%s", n.Detail)
	}
	return nil
}

// takeOver begins the operation of a snapshot anew; Close ends its turn.
func (m *Manager) takeOver(ctx context.Context, l *ledger.Ledger, s ledger.Snapshot) (pending, error) {
	op, err := m.book.Prepare(ctx, l, ledger.IntentSnapshot, s.ID, nil)
	if err != nil {
		return pending{}, err
	}
	s, err = l.ApplySnapshot(ctx, ledger.SnapshotChange{ID: s.ID, Key: op.Key,
		Intent: &ledger.OpenIntent{Key: op.Key, Kind: ledger.IntentSnapshot, Holder: op.Holder, Supersede: true}})
	if err != nil {
		op.Close()
	}
	return pending{op: op, s: s}, err
}

// afterSnapshots waits until no snapshot is under way that needs what is left of a sandbox, and records those of dead runs.
func (m *Manager) afterSnapshots(ctx context.Context, l *ledger.Ledger, b *place.Backend, row ledger.Sandbox, notify notice.Notify) error {
	for told := false; b.Binding.Descriptor.Snapshots.EndsSource; told = true {
		busy, err := m.snapshotUnderWay(ctx, l, b, row)
		if err != nil || busy == "" {
			return err
		}
		if !told {
			notify.Tell("Waiting for another run", "it takes the snapshot %s of %s", busy, row.ID)
		}
		if err := book.WaitForOthers(ctx); err != nil {
			return extensions.Classify("destroy", "", row.ID, err)
		}
	}
	return nil
}

// snapshotUnderWay is one that a living run takes of a sandbox; "" = none does. What is unsure of others is settled.
func (m *Manager) snapshotUnderWay(ctx context.Context, l *ledger.Ledger, b *place.Backend, row ledger.Sandbox) (string, error) {
	all, err := l.ListSnapshots(ctx, ledger.SnapshotFilter{Account: row.Account, Live: true})
	if err != nil {
		return "", err
	}
	for _, s := range all {
		if s.SandboxID != row.ID || !unsure(s) {
			continue
		}
		intents, err := l.OpenIntents(ctx, ledger.IntentFilter{Subject: s.ID})
		if err != nil {
			return "", err
		}
		for _, in := range intents {
			if over, err := m.book.Abandoned(ctx, l, in); err != nil || !over {
				return s.ID, err
			}
		}
		p, err := m.takeOver(ctx, l, s)
		if err != nil {
			return "", err
		}
		if _, err = m.settleSnapshot(ctx, b, p, &ledger.FinishIntent{Outcome: ledger.Confirmed}); err != nil {
			m.leaveUnsure(ctx, p, err)
		}
		p.op.Close()
		if err != nil {
			return "", err
		}
	}
	return "", nil
}

// endedBySnapshot reports that a snapshot has ended a sandbox whose end nobody settled. Of one that has failed, only a snapshot that
// was taken says that.
func (m *Manager) endedBySnapshot(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox) bool {
	b, err := m.catalog.Named(row.Extension)
	if err != nil || !b.Descriptor.Snapshots.EndsSource {
		return false
	}
	all, err := l.ListSnapshots(ctx, ledger.SnapshotFilter{Account: row.Account})
	return err == nil && slices.ContainsFunc(all, func(s ledger.Snapshot) bool {
		return s.SandboxID == row.ID && (s.Handle.ID != "" || unsure(s) && row.State != lifecycle.Failed) && !s.CreatedAt.Before(row.ReadyAt)
	})
}

// leftBySnapshot reports that a sandbox counts as failed only because the end that its snapshot gave it is not settled.
func (m *Manager) leftBySnapshot(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox) bool {
	return row.State == lifecycle.Failed && m.endedBySnapshot(ctx, l, row)
}

// unsettledView tells such a sandbox as ended by its snapshot.
func unsettledView(s *Sandbox) {
	s.State, s.Reason = string(lifecycle.Expired), "a snapshot ended it, and its cost is not settled yet"
}
