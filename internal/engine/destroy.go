package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Destroy ends a sandbox and settles it. It works by id alone and is never
// blocked by the ledger. What is gone already is success.
func (e *Engine) Destroy(ctx context.Context, rec Receipt, opts DestroyOptions) (DestroyReport, error) {
	if _, err := extensions.ParseID(string(rec.ID)); err != nil {
		return DestroyReport{}, err
	}
	l, row, err := e.rowToEnd(ctx, rec)
	if err != nil {
		report, derr := e.destroyByReceipt(ctx, rec, opts)
		if !absent(err) {
			report.Notices = append(report.Notices, Notice{Summary: "The ledger could not be asked", Detail: "The sandbox was ended without settling it here: " + err.Error()})
		}
		return report, derr
	}
	switch {
	case row.State == lifecycle.Destroyed:
		return DestroyReport{AlreadyGone: true}, nil
	case rec.Generation > 0 && row.Generation > rec.Generation:
		return DestroyReport{AlreadyGone: true, Notices: []Notice{takenOver(row)}}, nil
	}
	if err := e.recoverOnce(ctx, opts.Notify); err != nil {
		opts.Notify.tell("Recovery did not finish", "%s", err.Error())
	}
	if row, err = l.Get(ctx, rec.ID); err != nil {
		return DestroyReport{}, err
	}
	if row.State == lifecycle.Destroyed {
		return DestroyReport{}, nil
	}
	return e.end(ctx, l, row, ended{reason: "destroyed", forget: opts.Forget, sync: true, notify: opts.Notify, receipt: rec})
}

func takenOver(row ledger.Sandbox) Notice {
	return Notice{Summary: "Taken over by another owner",
		Detail: fmt.Sprintf("Sandbox %s (%s) was adopted elsewhere (generation %d); it is left alone.", row.ID, row.Name, row.Generation)}
}

func (e *Engine) rowToEnd(ctx context.Context, rec Receipt) (ledger.Ledger, ledger.Sandbox, error) {
	r, err := e.reader(ctx)
	if err != nil {
		return nil, ledger.Sandbox{}, err
	}
	if _, err := r.Get(ctx, rec.ID); err != nil {
		return nil, ledger.Sandbox{}, err // nothing to settle here, so nothing is created here
	}
	l, err := e.writer(ctx)
	if err != nil {
		return nil, ledger.Sandbox{}, err
	}
	row, err := l.Get(ctx, rec.ID)
	return l, row, err
}

// destroyByReceipt ends a sandbox of another machine's ledger.
func (e *Engine) destroyByReceipt(ctx context.Context, rec Receipt, opts DestroyOptions) (DestroyReport, error) {
	row := rowOf(rec)
	if row.Extension == "" {
		return DestroyReport{AlreadyGone: true}, nil // no place was ever asked
	}
	report := DestroyReport{}
	b, err := e.backend(ctx, placeOf(row))
	if err == nil {
		err = e.syncBeforeEnd(ctx, b, row, rec.Mirror, &report)
	}
	var gone ending
	if err == nil {
		gone, err = e.endThere(ctx, b, row, &report)
	}
	if err != nil && opts.Forget && unreachable(err) {
		report.Forgotten = true
		report.Notices = append(report.Notices, Notice{Summary: "Forgotten, not ended", Detail: fmt.Sprintf("%s could not be reached: %s", rec.ID, err)})
		return report, nil
	}
	if err == nil {
		report.EndedAt = gone.at
	}
	return report, e.keepRemedy(err, rec.ID)
}

// ended says why and how a sandbox is to be ended.
type ended struct {
	reason  string // destroyed | expired | lost | recovered
	forget  bool
	sync    bool // bring a mirrored workspace back first
	notify  Notify
	receipt Receipt
}

// end is the one way a recorded sandbox ends: intent, teardown, settlement.
func (e *Engine) end(ctx context.Context, l ledger.Ledger, row ledger.Sandbox, how ended) (DestroyReport, error) {
	report := DestroyReport{}
	var b *opened
	var err error
	if row.Extension != "" {
		if b, err = e.backend(ctx, placeOf(row)); err == nil && how.sync && lifecycle.Usable(row.State) {
			err = e.syncBeforeEnd(ctx, b, row, mirrorOf(row), &report)
		}
		if err != nil && !(how.forget && unreachable(err)) {
			return report, e.keepRemedy(err, row.ID)
		}
	}
	change := ledger.Change{Event: note("sandbox.destroying", map[string]any{"why": how.reason})}
	if row.State != lifecycle.Destroying {
		change.To = lifecycle.Destroying
	}
	op, oerr := e.openOperation(ctx, l, row, ledger.IntentDestroy, change, how.notify)
	if oerr != nil {
		return report, oerr
	}
	if op.row.State == lifecycle.Destroyed {
		return DestroyReport{AlreadyGone: true}, nil
	}
	if stop := failpoint.Hit(ctx, pointDestroying); stop != nil && err == nil {
		err = stop
	}
	gone := e.endOf(op.row, time.Time{})
	if err == nil && b != nil {
		gone, err = e.endThere(ctx, b, op.row, &report)
	}
	if err != nil {
		return e.endFailed(ctx, op, how, err, report)
	}
	if stop := failpoint.Hit(ctx, pointTorn); stop != nil {
		return report, stop
	}
	if how.reason == "lost" {
		gone = e.lostAt(op.row, time.Time{})
	}
	if err := op.discard(ctx, ledger.Confirmed, reasonAt(how.reason, gone), nil, gone); err != nil {
		return report, err
	}
	report.EndedAt = gone.at
	if cs, err := l.Charges(context.WithoutCancel(ctx), row.ID); err == nil {
		report.Charges = chargesOf(cs)
	}
	return report, failpoint.Hit(ctx, pointDestroyed)
}

// reasonAt keeps the truth for one that expired before anybody came to end it.
func reasonAt(reason string, gone ending) string {
	if reason == "destroyed" && gone.source == "deadline" {
		return "expired"
	}
	return reason
}

func (e *Engine) endFailed(ctx context.Context, op *operation, how ended, cause error, report DestroyReport) (DestroyReport, error) {
	event := "sandbox.destroy-failed"
	if how.forget && unreachable(cause) {
		event = "sandbox.forgotten"
	}
	if err := op.fail(ctx, cause, event); err != nil {
		return report, errors.Join(cause, err)
	}
	if event == "sandbox.forgotten" {
		report.Forgotten = true
		report.Notices = append(report.Notices, Notice{Summary: "Forgotten, not ended",
			Detail: fmt.Sprintf("%s could not be reached; the ledger keeps it as an orphan for `sandboxer sweep`: %s", op.row.ID, cause)})
		return report, nil
	}
	return report, e.keepRemedy(cause, op.row.ID)
}

// endThere tears down at the backend; absence is success.
func (e *Engine) endThere(ctx context.Context, b *opened, row ledger.Sandbox, report *DestroyReport) (ending, error) {
	h := row.Handle
	if h.IsZero() {
		found, err := e.findAt(ctx, b, row.ID, row.ExpiresAt)
		if absent(err) {
			report.AlreadyGone = true
			return e.endOf(row, time.Time{}), nil
		}
		if err != nil {
			return ending{}, err
		}
		h = found
	}
	r, err := e.teardown(ctx, b, h)
	if err != nil {
		return ending{}, err
	}
	report.AlreadyGone = r.AlreadyGone
	report.Removed, report.Residue = r.Removed, r.Residue
	told := r.EndedAt
	if told.IsZero() && r.Usage != nil {
		told = r.Usage.EndedAt
	}
	end := e.endOf(row, told)
	if r.AlreadyGone {
		end = e.lostAt(row, told)
	}
	end.usage = r.Usage
	return end, nil
}

func unreachable(err error) bool {
	return extensions.IsKind(err, extensions.KindUnreachable) || extensions.IsKind(err, extensions.KindTimeout)
}

// keepRemedy adds what to do about a sandbox that could not be ended.
func (e *Engine) keepRemedy(err error, id ID) error {
	var x *extensions.Error
	if err == nil || !errors.As(err, &x) || x.Remedy != "" {
		return err
	}
	out := *x
	out.Remedy = fmt.Sprintf("it is still recorded: repeat the destroy, or look with `sandboxer sandbox get %s`", id)
	if unreachable(err) {
		out.Remedy += `; to drop what cannot be reached, set on_unreachable_destroy = "forget"`
	}
	return &out
}
