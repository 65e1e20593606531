package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/book"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Destroy ends a sandbox and settles it. It works by id alone and is never
// blocked by the ledger: where that cannot be read or written, the receipt is
// enough, and the settlement is left to the next run that can write it. What
// is gone already is success.
func (e *Engine) Destroy(ctx context.Context, rec Receipt, opts DestroyOptions) (DestroyReport, error) {
	e.heardOf(rec)
	if _, err := extensions.ParseID(string(rec.ID)); err != nil {
		return DestroyReport{}, err
	}
	l, row, err := e.rowToEnd(ctx, rec, opts.Notify)
	for err == nil {
		switch {
		case row.State == lifecycle.Destroyed:
			return e.ended(ctx, l, row), nil
		case rec.Generation > 0 && row.Generation > rec.Generation:
			return DestroyReport{AlreadyGone: true, Notices: []Notice{takenOver(row.ID, row.Name, row.Generation)}}, nil
		}
		report, endErr := e.end(ctx, l, row, ended{reason: "destroyed", forget: opts.Forget, replaced: opts.Replaced, sync: true, notify: opts.Notify})
		if endErr == nil || book.Settled(endErr) != nil || ctx.Err() != nil {
			return report, endErr
		}
		row, err = l.Get(ctx, rec.ID) // another run was faster: decide anew
	}
	if ctx.Err() != nil {
		return DestroyReport{}, extensions.Classify("destroy", "", rec.ID, err)
	}
	if absent(err) {
		err = nil // made with another ledger
		if opts.Replaced {
			_, err = e.book.Writer(ctx)
		}
	}
	if opts.Replaced && err != nil {
		return DestroyReport{}, notReplaced(rowOf(rec), err)
	}
	return e.endOutside(ctx, rowOf(rec), rec, opts.Forget, err, opts.Notify)
}

// ended reports what was ended and settled before.
func (e *Engine) ended(ctx context.Context, l ledger.Ledger, row ledger.Sandbox) DestroyReport {
	report := DestroyReport{AlreadyGone: true, EndedAt: row.EndedAt}
	if cs, err := l.Charges(context.WithoutCancel(ctx), row.ID); err == nil {
		report.Charges = chargesOf(cs)
	}
	return report
}

func takenOver(id ID, name string, generation int64) Notice {
	return Notice{Summary: "Taken over by another owner",
		Detail: fmt.Sprintf("Sandbox %s (%s) was adopted or recreated elsewhere (generation %d); it is left alone.", id, name, generation)}
}

// rowToEnd finds the row, after what a dead run may have left of it is
// settled. Nothing is made where there is nothing to settle.
func (e *Engine) rowToEnd(ctx context.Context, rec Receipt, notify Notify) (ledger.Ledger, ledger.Sandbox, error) {
	r, err := e.book.Reader(ctx)
	var row ledger.Sandbox
	if err == nil {
		row, err = r.Get(ctx, rec.ID)
	}
	if err != nil || row.State == lifecycle.Destroyed {
		return r, row, err
	}
	l, err := e.book.Writer(ctx)
	if err != nil {
		return nil, ledger.Sandbox{}, err
	}
	if err := e.recoverOnce(ctx, notify); err != nil {
		notify.Tell("Recovery did not finish", "%s", err.Error())
	}
	row, err = l.Get(ctx, rec.ID)
	return l, row, err
}

// ended says why and how a sandbox is to be ended.
type ended struct {
	reason   string // destroyed | expired | lost | recovered | unresolved
	forget   bool
	replaced bool // another is about to be made in its place
	sync     bool // run pre_release and bring a mirrored workspace back first
	notify   Notify
}

// end is the one way a recorded sandbox ends: intent, teardown, settlement.
func (e *Engine) end(ctx context.Context, l ledger.Ledger, row ledger.Sandbox, how ended) (DestroyReport, error) {
	report := DestroyReport{}
	b, err := e.openToEnd(ctx, row)
	if err == nil && b != nil && how.sync && lifecycle.Usable(row.State) {
		err = e.farewell(ctx, b, row, e.partingOf(row), &report, how.notify)
	}
	if err != nil && !(how.forget && unreachable(err)) {
		return report, e.keepRemedy(err, row.ID)
	}
	change := ledger.Change{Event: ledger.NewNote("sandbox.destroying", map[string]any{"why": how.reason})}
	if row.State != lifecycle.Destroying {
		change.To = lifecycle.Destroying
	}
	op, oerr := e.book.Begin(ctx, l, row, ledger.IntentDestroy, change, how.notify)
	switch {
	case ledgerDown(ctx, oerr):
		if how.replaced {
			return report, notReplaced(row, oerr)
		}
		return e.endUnrecorded(ctx, row, l.ID(), how.forget, report, oerr)
	case oerr != nil:
		return report, oerr
	}
	defer op.Close()
	if stop := failpoint.Hit(ctx, pointDestroying); stop != nil && err == nil {
		err = stop
	}
	if err == nil && placeOf(op.Row) != placeOf(row) { // placed while it was waited for
		b, err = e.openToEnd(ctx, op.Row)
	}
	gone := e.endOf(op.Row, time.Time{})
	if err == nil && b != nil {
		gone, err = e.endThere(ctx, b, op.Row, &report)
		switch {
		case e.neverKnown(b, op.Row, err):
			how.reason, gone, err = book.Unresolved, e.endOf(op.Row, time.Time{}), nil
			report.Notices = append(report.Notices, unresolvedNotice(op.Row))
		case e.endedElsewhere(op.Row, err):
			gone, err, report.AlreadyGone = e.untold(op.Row, e.endOf(op.Row, time.Time{})), nil, true
		}
	}
	if err != nil {
		return e.endFailed(ctx, op, how, err, report)
	}
	return e.settle(ctx, op, how, gone, report)
}

// settle closes the operation on what was ended.
func (e *Engine) settle(ctx context.Context, op *book.Operation, how ended, gone book.Ending, report DestroyReport) (DestroyReport, error) {
	if stop := failpoint.Hit(ctx, pointTorn); stop != nil {
		return report, stop
	}
	if how.reason == "lost" && gone.Source == "ours" {
		gone = e.untold(op.Row, gone)
	}
	report.EndedAt = gone.At
	var err error
	if !report.AlreadyGone {
		err = goesOn(ctx, op)
	}
	if err == nil {
		err = op.Discard(ctx, ledger.Confirmed, gone.Reason(how.reason, op.Row), "", gone)
	}
	if err != nil {
		e.settleLater(ctx, op.Row, op.Ledger.ID(), gone, err, &report)
		return report, nil
	}
	if cs, err := op.Ledger.Charges(context.WithoutCancel(ctx), op.Row.ID); err == nil {
		report.Charges = chargesOf(cs)
	}
	if gone.Estimated && len(report.Charges) > 0 {
		report.Notices = append(report.Notices, estimatedNotice(op.Row, gone))
	}
	return report, failpoint.Hit(ctx, pointDestroyed)
}

// openToEnd opens the place of a row; nil where none was ever asked.
func (e *Engine) openToEnd(ctx context.Context, row ledger.Sandbox) (*place.Backend, error) {
	if row.Extension == "" {
		return nil, nil
	}
	return e.places.Open(ctx, placeOf(row))
}

func (e *Engine) endFailed(ctx context.Context, op *book.Operation, how ended, cause error, report DestroyReport) (DestroyReport, error) {
	if how.reason == "recovered" {
		return report, e.keepRemedy(cause, op.Row.ID) // left open: the next run tries again
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
		report.Notices = append(report.Notices, Notice{Summary: "Forgotten, not ended",
			Detail: fmt.Sprintf("%s could not be reached; the ledger keeps it as an orphan for `sandboxer sweep`: %s", op.Row.ID, cause)})
		return report, nil
	}
	return report, e.keepRemedy(cause, op.Row.ID)
}

// endThere tears down at the backend; absence is success.
func (e *Engine) endThere(ctx context.Context, b *place.Backend, row ledger.Sandbox, report *DestroyReport) (book.Ending, error) {
	h := row.Handle
	if h.IsZero() {
		found, err := b.FindSettled(ctx, row.ID, row.ExpiresAt)
		if absent(err) {
			report.AlreadyGone = true
			return e.endOf(row, time.Time{}), nil
		}
		if err != nil {
			return book.Ending{}, err
		}
		h = found
	}
	r, err := b.Teardown(ctx, h)
	if err != nil {
		return book.Ending{}, err
	}
	report.AlreadyGone = r.AlreadyGone
	report.Removed, report.Residue = r.Removed, r.Residue
	told := r.EndedAt
	if told.IsZero() && r.Usage != nil {
		told = r.Usage.EndedAt
	}
	end := e.endOf(row, told)
	if r.AlreadyGone && told.IsZero() {
		end = e.untold(row, end)
	}
	end.Usage = r.Usage
	return end, nil
}

func unreachable(err error) bool {
	return extensions.IsKind(err, extensions.KindUnreachable) || extensions.IsKind(err, extensions.KindTimeout)
}

// keepRemedy adds what to do about a sandbox that could not be ended.
func (e *Engine) keepRemedy(err error, id ID) error {
	var x *extensions.Error
	if err == nil || !errors.As(err, &x) {
		return err
	}
	next := extensions.RemedyOf(err)
	if next == "" {
		next = fmt.Sprintf("it is still recorded: repeat the destroy, or look with `sandboxer sandbox get %s`", id)
	}
	if unreachable(err) {
		next += `; to drop what cannot be reached, set on_unreachable_destroy = "forget"`
	}
	out := extensions.Error{Kind: x.Kind, Field: x.Field, RetryAfter: x.RetryAfter, Remedy: next, Err: err}
	return &out
}
