package life

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/book"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Destroy ends a sandbox and settles it. It needs only the id, and the ledger never blocks it: if the
// ledger cannot be read or written, the receipt suffices, and the next run that can write the ledger
// settles. A sandbox that is already gone is success.
func (m *Manager) Destroy(ctx context.Context, rec plan.Receipt, opts DestroyOptions) (DestroyReport, error) {
	m.heardOf(rec)
	if _, err := extensions.ParseID(string(rec.ID)); err != nil {
		return DestroyReport{}, err
	}
	l, row, err := m.rowToEnd(ctx, rec, opts.Notify)
	for err == nil {
		if row.State == lifecycle.Destroyed {
			return m.endedBefore(ctx, l, row), nil
		}
		switch taken := m.notOurs(ctx, l, row, rec); {
		case extensions.IsKind(taken, extensions.KindConflict):
			return DestroyReport{AlreadyGone: true, Notices: []notice.Notice{takenOver(row.ID, row.Name, row.Generation)}}, nil
		case taken != nil:
			return DestroyReport{}, taken
		}
		report, drop, done, endErr := m.destroyLeased(ctx, l, row, rec, opts)
		if !done {
			report, endErr = m.end(ctx, l, row, cause{reason: "destroyed", forget: opts.Forget, replaced: opts.Replaced, sync: true,
				drop: drop, lease: rec.Lease, notify: opts.Notify})
		}
		if endErr == nil || book.Settled(endErr) != nil || ctx.Err() != nil {
			return report, endErr
		}
		row, err = l.Get(ctx, rec.ID) // another run was faster: decide again
	}
	if ctx.Err() != nil {
		return DestroyReport{}, extensions.Classify("destroy", "", rec.ID, err)
	}
	if absent(err) {
		err = nil // created with another ledger
		if opts.Replaced {
			_, err = m.book.Writer(ctx)
		}
	}
	if opts.Replaced && err != nil {
		return DestroyReport{}, notReplaced(rowOf(rec), err)
	}
	if rec.Lease != "" && !opts.All {
		return m.noteRelease(ctx, rowOf(rec), rec, err)
	}
	return m.endOutside(ctx, rowOf(rec), rec, opts.Forget, err, opts.Notify)
}

// endedBefore reports an end that was settled earlier.
func (m *Manager) endedBefore(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox) DestroyReport {
	report := DestroyReport{AlreadyGone: true, EndedAt: row.EndedAt}
	if cs, err := l.Charges(context.WithoutCancel(ctx), row.ID); err == nil {
		report.Charges = chargesOf(cs)
	}
	return report
}

func takenOver(id extensions.ID, name string, generation int64) notice.Notice {
	return notice.Notice{Summary: "Taken over by another owner",
		Detail: fmt.Sprintf("Another run adopted or re-created sandbox %s (%s), generation %d. This run leaves it alone.", id, name, generation)}
}

// rowToEnd returns the row, after settling what a dead run may have left of it. It creates no ledger where
// there is nothing to settle.
func (m *Manager) rowToEnd(ctx context.Context, rec plan.Receipt, notify notice.Notify) (*ledger.Ledger, ledger.Sandbox, error) {
	r, err := m.book.Reader(ctx)
	var row ledger.Sandbox
	if err == nil {
		row, err = r.Get(ctx, rec.ID)
	}
	if err != nil || row.State == lifecycle.Destroyed {
		return r, row, err
	}
	l, err := m.book.Writer(ctx)
	if err != nil {
		return nil, ledger.Sandbox{}, err
	}
	if err := m.recoverOnce(ctx, notify); err != nil {
		notify.Tell("Recovery did not finish", "%s", err.Error())
	}
	row, err = l.Get(ctx, rec.ID)
	return l, row, err
}

// cause says why and how a sandbox is to end.
type cause struct {
	reason   string // destroyed | expired | lost | recovered | snapshot | unresolved
	forget   bool
	replaced bool // another is about to be made in its place
	sync     bool // first run pre_release and bring a mirrored workspace back
	// begun is when a run that died began to end it; zero = none did.
	begun time.Time
	// drop are the leases that end with it; with any, it ends only if nobody else holds it.
	drop []string
	// lease is that of the caller, for a note if the ledger cannot be written.
	lease  string
	notify notice.Notify
}

// end is the one way in which a recorded sandbox ends: intent, teardown, settlement.
func (m *Manager) end(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, how cause) (DestroyReport, error) {
	report := DestroyReport{}
	b, err := m.openToEnd(ctx, row)
	if last := m.partingOf(row); err == nil && b != nil && how.sync && lifecycle.Usable(row.State) {
		if row, err = m.wake(ctx, l, row, last, how.notify); err == nil {
			err = m.farewell(ctx, b, row, last, &report, how.notify)
		}
	}
	if err != nil && !(how.forget && unreachable(err)) {
		return report, m.keepRemedy(err, row.ID)
	}
	change := ledger.Change{Event: ledger.NewNote("sandbox.destroying", map[string]any{"why": how.reason})}
	if row.State != lifecycle.Destroying {
		change.To = lifecycle.Destroying
	}
	change.Release, change.Expect.Unleased = how.drop, len(how.drop) > 0
	op, oerr := m.book.Begin(ctx, l, row, ledger.IntentDestroy, change, how.notify)
	switch {
	case ledgerDown(ctx, oerr):
		if how.replaced {
			return report, notReplaced(row, oerr)
		}
		if how.lease != "" {
			rec := m.receipt(row)
			rec.Ledger, rec.Lease = l.ID(), how.lease
			return m.noteRelease(ctx, row, rec, oerr)
		}
		return m.endUnrecorded(ctx, row, l.ID(), how.forget, report, oerr)
	case oerr != nil:
		return report, oerr
	}
	defer op.Close()
	if stop := failpoint.Hit(ctx, pointDestroying); stop != nil && err == nil {
		err = stop
	}
	if err == nil && placeOf(op.Row) != placeOf(row) { // placed while this run waited for it
		b, err = m.openToEnd(ctx, op.Row)
	}
	if err == nil && b != nil {
		err = m.afterSnapshots(ctx, l, b, op.Row, how.notify)
	}
	gone := m.endingOf(op.Row, time.Time{})
	if err == nil && b != nil {
		gone, err = m.endThere(ctx, l, b, op.Row, &report)
		if m.neverKnown(b, op.Row, err) {
			how.reason, gone, err = book.Unresolved, m.endingOf(op.Row, time.Time{}), nil
			report.Notices = append(report.Notices, unresolvedNotice(op.Row))
		}
	}
	if err != nil {
		return m.endFailed(ctx, op, how, err, report)
	}
	return m.settle(ctx, op, how, gone, report)
}

// openToEnd opens the place of a row; nil if no place was ever asked.
func (m *Manager) openToEnd(ctx context.Context, row ledger.Sandbox) (*place.Backend, error) {
	if row.Extension == "" {
		return nil, nil
	}
	return m.places.Open(ctx, placeOf(row))
}

func (m *Manager) endFailed(ctx context.Context, op *book.Operation, how cause, cause error, report DestroyReport) (DestroyReport, error) {
	if how.reason == "recovered" {
		return report, m.keepRemedy(cause, op.Row.ID) // left open: the next run tries again
	}
	event := "sandbox.destroy-failed"
	if how.forget && unreachable(cause) {
		event = "sandbox.forgotten"
	}
	if err := op.Fail(ctx, reasonOf(cause), extensions.KindOf(cause), event); err != nil {
		return report, errors.Join(cause, err)
	}
	if event == "sandbox.forgotten" {
		report.Forgotten = true
		report.Notices = append(report.Notices, notice.Notice{Summary: "Forgotten, not ended",
			Detail: fmt.Sprintf("%s could not be reached; the ledger keeps it as an orphan for `sandboxer sweep`: %s", op.Row.ID, cause)})
		return report, nil
	}
	return report, m.keepRemedy(cause, op.Row.ID)
}

// endThere tears down at the backend; absence is success, and the end of what is elsewhere. l is nil if its ledger cannot be asked.
func (m *Manager) endThere(ctx context.Context, l *ledger.Ledger, b *place.Backend, row ledger.Sandbox,
	report *DestroyReport) (book.Ending, error) {
	end, err := m.endHere(ctx, l, b, row, report)
	if m.endedElsewhere(row, err) {
		report.AlreadyGone = true
		return m.untold(row, m.endingOf(row, time.Time{})), nil
	}
	return end, err
}

func (m *Manager) endHere(ctx context.Context, l *ledger.Ledger, b *place.Backend, row ledger.Sandbox,
	report *DestroyReport) (book.Ending, error) {
	h := row.Handle
	var r extensions.CleanupReport
	var end book.Ending
	for again := false; ; again = true {
		if h.Ref == "" { // a lost answer left it without
			found, err := b.FindSettled(ctx, row.ID, row.SentDeadline())
			if absent(err) {
				report.AlreadyGone = true
				return m.endingOf(row, time.Time{}), nil
			}
			if err != nil {
				return book.Ending{}, err
			}
			h = found
		}
		var err error
		if r, end, err = m.tearDown(ctx, l, b, row, h); err == nil {
			break
		}
		// What a create made on the way was found and removed. Whether it made the sandbox too, another look decides.
		if again || h.Ref != "" || !extensions.IsKind(err, extensions.KindIndeterminate) {
			return book.Ending{}, err
		}
	}
	report.AlreadyGone = r.AlreadyGone
	report.Removed, report.Residue = r.Removed, r.Residue
	return end, nil
}

// tearDown ends the sandbox of a row and returns its end, with what its place measured. l is nil if its ledger
// cannot be asked.
func (m *Manager) tearDown(ctx context.Context, l *ledger.Ledger, b *place.Backend, row ledger.Sandbox,
	h extensions.Handle) (r extensions.CleanupReport, end book.Ending, err error) {
	before, seen := m.lastMeasure(ctx, l, b, row, h), m.lastLook(ctx, l, b, row, h)
	if r, err = b.Teardown(ctx, h); err != nil {
		return r, end, err
	}
	if r.Usage == nil {
		r.Usage = m.lastMeasure(ctx, l, b, row, h)
	}
	r.Usage = filled(r.Usage, before)
	end, err = m.ended(ctx, l, b, row, r, seen)
	if err == nil && l != nil {
		end, err = end.Believed(ctx, l, row, before)
	}
	return r, end, err
}

// lastLook returns what a place says of a sandbox before its teardown removes it, where that matters: that it ended
// because it was idle, and what size one has that was never ready. It returns nothing if the place does not answer.
func (m *Manager) lastLook(ctx context.Context, l *ledger.Ledger, b *place.Backend, row ledger.Sandbox,
	h extensions.Handle) extensions.Observation {
	sized := l != nil && row.ReadyAt.IsZero() && !m.selfHosted(row.Extension)
	if !sized && specOf(row).IdleReap == 0 {
		return extensions.Observation{}
	}
	ctx, cancel := context.WithTimeout(ctx, cleanupTime/4)
	defer cancel()
	o, err := b.Look(ctx, h)
	if err != nil {
		return extensions.Observation{}
	}
	return o
}

// ended returns the end of a sandbox that was torn down, and that its place was last seen to have as seen. l is nil if
// its ledger cannot be asked.
func (m *Manager) ended(ctx context.Context, l *ledger.Ledger, b *place.Backend, row ledger.Sandbox, r extensions.CleanupReport,
	seen extensions.Observation) (end book.Ending, err error) {
	told := r.EndedAt
	if told.IsZero() && r.Usage != nil {
		told = r.Usage.EndedAt
	}
	end = m.endingOf(row, told)
	if r.AlreadyGone && told.IsZero() {
		end = m.untold(row, end)
	}
	end.Usage, end.Idle = r.Usage, endedBecause(seen) == book.Idle
	if l != nil {
		end.Began, err = m.beganAtEnd(ctx, l, row, r, m.sizesGiven(b.Binding, row, seen.Allocated))
	}
	return end, err
}

func unreachable(err error) bool {
	return extensions.IsKind(err, extensions.KindUnreachable) || extensions.IsKind(err, extensions.KindTimeout)
}

// keepRemedy adds what to do about a sandbox that could not be ended.
func (m *Manager) keepRemedy(err error, id extensions.ID) error {
	var x *extensions.Error
	if err == nil || !errors.As(err, &x) {
		return err
	}
	next := extensions.RemedyOf(err)
	if next == "" {
		next = fmt.Sprintf("the ledger still lists it: repeat the destroy, or check with `sandboxer sandbox get %s`", id)
	}
	if unreachable(err) {
		next += `; to give up a sandbox that cannot be reached, set on_unreachable_destroy = "forget"`
	}
	out := extensions.Error{Kind: x.Kind, Field: x.Field, RetryAfter: x.RetryAfter, Remedy: next, Err: err}
	return &out
}
