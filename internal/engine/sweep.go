package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Sweep ends what is overdue or failed, settles what ended by itself and
// reports orphans. What one place cannot do does not stop the others. A dry
// run writes nothing.
func (e *Engine) Sweep(ctx context.Context, dryRun bool, notify Notify) (SweepReport, error) {
	report := SweepReport{DryRun: dryRun}
	open := e.writer
	if dryRun {
		open = e.reader
	}
	l, err := open(ctx)
	if err != nil {
		return report, err
	}
	left, err := e.unfinished(ctx, l)
	if err != nil {
		return report, err
	}
	noted := e.endsNoted(ctx, l)
	if !dryRun {
		if err := e.recoverOnce(ctx, notify); err != nil {
			return report, err
		}
	}
	for _, id := range left {
		if row, err := l.Get(ctx, id); dryRun || err == nil && row.State == lifecycle.Destroyed {
			report.Ended = append(report.Ended, id)
		}
	}
	for _, id := range noted {
		if row, err := l.Get(ctx, id); dryRun || err == nil && row.State == lifecycle.Destroyed {
			report.Settled = append(report.Settled, id)
		}
	}
	rows, err := l.List(ctx, ledger.Filter{Account: e.account, Live: true})
	if err != nil {
		return report, err
	}
	for _, row := range rows {
		if dryRun && slices.Contains(noted, row.ID) {
			continue
		}
		if ctx.Err() != nil {
			return report, place.Classify("sweep", "", ctx.Err())
		}
		e.sweepRow(ctx, l, row, dryRun, notify, &report)
	}
	e.findOrphans(ctx, l, rows, &report)
	return report, nil
}

// unfinished lists the sandboxes that a run which died left in between.
func (e *Engine) unfinished(ctx context.Context, l ledger.Ledger) ([]ID, error) {
	intents, err := l.OpenIntents(ctx, ledger.IntentFilter{Account: e.account})
	if err != nil {
		return nil, err
	}
	var out []ID
	for _, in := range intents {
		row, err := l.Get(ctx, ID(in.Subject))
		if err != nil || !lifecycle.Unsettled(row.State) {
			continue // a snapshot's, or a change of a sandbox that goes on
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

func (e *Engine) sweepRow(ctx context.Context, l ledger.Ledger, row ledger.Sandbox, dryRun bool, notify Notify, report *SweepReport) {
	intents, err := l.OpenIntents(ctx, ledger.IntentFilter{Subject: string(row.ID)})
	if err != nil {
		report.Failures = append(report.Failures, fmt.Sprintf("%s: %s", row.ID, err))
		return
	}
	if len(intents) > 0 {
		return // under way, or told by recovery
	}
	due := row.State == lifecycle.Failed || row.State == lifecycle.Expired || lifecycle.Overdue(e.now(), row.ExpiresAt)
	reason, settled := "expired", false
	if !due {
		o, err := e.lookAgain(ctx, row)
		if e.elsewhere(row, err) {
			return // it lives on a machine that looks after it
		}
		if err != nil {
			report.Failures = append(report.Failures, fmt.Sprintf("%s (%s): %s", row.ID, row.Name, err))
			return
		}
		if o.Phase != extensions.PhaseAbsent && o.Phase != extensions.PhaseExpired && o.Phase != extensions.PhaseFailed {
			return
		}
		settled = true
		if o.Phase != extensions.PhaseExpired { // else by the place's own clock
			reason = "lost"
		}
	} else {
		if !lifecycle.Overdue(e.now(), row.ExpiresAt) {
			reason = "destroyed" // what was left of a failure
		}
		if e.leftElsewhere(ctx, row) {
			return
		}
	}
	if !dryRun {
		r, err := e.end(ctx, l, row, ended{reason: reason, sync: true, notify: notify})
		for _, n := range r.Notices {
			notify.tell(n.Summary, "%s", n.Detail)
		}
		if err == nil {
			err = r.unsettled // it is over, and not yet on the books
		}
		if err != nil {
			report.Failures = append(report.Failures, fmt.Sprintf("%s (%s): %s", row.ID, row.Name, err))
			return
		}
		settled = settled || r.AlreadyGone
	}
	if settled {
		report.Settled = append(report.Settled, row.ID)
	} else {
		report.Ended = append(report.Ended, row.ID)
	}
}

// leftElsewhere reports that only another machine can end what is left of row,
// and is trusted to. Other places are not asked.
func (e *Engine) leftElsewhere(ctx context.Context, row ledger.Sandbox) bool {
	b, err := e.catalog.Named(row.Extension)
	if err != nil || b.Descriptor.Place != extensions.PlaceMachine || row.Handle.IsZero() {
		return false
	}
	_, err = e.lookAgain(ctx, row)
	return e.elsewhere(row, err)
}

// findOrphans lists every place that can be opened from here: bindings that
// need no host, and wherever a row says.
func (e *Engine) findOrphans(ctx context.Context, l ledger.Ledger, rows []ledger.Sandbox, report *SweepReport) {
	places := map[place.Address]bool{}
	for _, b := range e.catalog.Bindings {
		if b.Descriptor.Place != extensions.PlaceHost {
			places[place.Address{Binding: b.ID, Account: e.account}] = true
		}
	}
	for _, row := range rows {
		if row.Extension != "" {
			places[placeOf(row)] = true
		}
	}
	seen := map[string]bool{}
	for p := range places {
		b, err := e.places.Open(ctx, p)
		if err != nil {
			continue // a place that cannot be opened from here is not this run's to judge
		}
		all, err := b.List(ctx)
		if err != nil {
			report.Failures = append(report.Failures, fmt.Sprintf("%s: %s", p.Binding, err))
			continue
		}
		for id, o := range all {
			row, err := l.Get(ctx, id)
			known := err == nil && row.State != lifecycle.Destroyed
			if known || o.Phase == extensions.PhaseAbsent || o.Phase == extensions.PhaseExpired || seen[string(id)] {
				continue
			}
			seen[string(id)] = true
			report.Orphans = append(report.Orphans, fmt.Sprintf("%s at %s: %s", id, p.Binding, o.Phase))
		}
	}
	slices.Sort(report.Orphans)
}
