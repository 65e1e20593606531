package life

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/book"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Sweep ends overdue and failed sandboxes, settles those that ended by themselves, and snapshots likewise, and reports orphans. A
// failing place does not stop the others. A dry run writes nothing.
func (m *Manager) Sweep(ctx context.Context, dryRun bool, notify notice.Notify) (SweepReport, error) {
	report := SweepReport{DryRun: dryRun}
	open := m.book.Writer
	if dryRun {
		open = m.book.Reader
	}
	l, err := open(ctx)
	if err != nil {
		return report, err
	}
	left, err := m.unfinished(ctx, l)
	if err != nil {
		return report, err
	}
	due, err := m.overdue(ctx, l)
	if err != nil {
		return report, err
	}
	lapsed, err := m.overdueSnapshots(ctx, l)
	if err != nil {
		return report, err
	}
	noted := m.book.EndsNoted(ctx, l)
	if !dryRun {
		if err := m.recoverOnce(ctx, notify); err != nil {
			return report, err
		}
	}
	for _, id := range left {
		if row, err := l.Get(ctx, id); dryRun || err == nil && row.State == lifecycle.Destroyed {
			report.Ended = append(report.Ended, id)
		}
	}
	for _, row := range due { // a dry run lists them below
		if now, err := l.Get(ctx, row.ID); !dryRun && err == nil && now.State == lifecycle.Destroyed {
			report.Ended = append(report.Ended, row.ID)
		}
	}
	for _, id := range noted {
		if row, err := l.Get(ctx, id); dryRun || err == nil && row.State == lifecycle.Destroyed {
			report.Settled = append(report.Settled, id)
		}
	}
	for _, s := range lapsed {
		m.sweepSnapshot(ctx, l, s, dryRun, &report)
	}
	if err := m.settleGone(ctx, l, dryRun, &report); err != nil {
		return report, err
	}
	rows, err := l.List(ctx, ledger.Filter{Account: m.account, Live: true})
	if err != nil {
		return report, err
	}
	for _, row := range rows {
		if dryRun && slices.Contains(noted, row.ID) {
			continue
		}
		if ctx.Err() != nil {
			return report, extensions.Classify("sweep", "", "", ctx.Err())
		}
		m.sweepRow(ctx, l, row, dryRun, notify, &report)
	}
	m.findOrphans(ctx, l, rows, &report)
	return report, nil
}

// sweepSnapshot reports on a snapshot past its time, and deletes it unless recovery has.
func (m *Manager) sweepSnapshot(ctx context.Context, l *ledger.Ledger, s ledger.Snapshot, dryRun bool, report *SweepReport) {
	now, err := l.GetSnapshot(ctx, s.ID)
	if err == nil && !dryRun && now.State != ledger.SnapshotDeleted {
		if err = m.endOverdueSnapshot(ctx, l, now); err == nil {
			now, err = l.GetSnapshot(ctx, s.ID)
		}
	}
	switch {
	case err != nil:
		report.Failures = append(report.Failures, fmt.Sprintf("%s (%s): %s", s.ID, s.Name, err))
	case dryRun || now.State == ledger.SnapshotDeleted:
		report.Snapshots = append(report.Snapshots, s.ID)
	}
}

// settleGone settles snapshots that are gone without the ledger: deleted at their place, or by a run that did not hear of it or
// could not record it.
// One that cannot be looked up is not gone.
func (m *Manager) settleGone(ctx context.Context, l *ledger.Ledger, dryRun bool, report *SweepReport) error {
	all, err := l.ListSnapshots(ctx, ledger.SnapshotFilter{Account: m.account, Live: true})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, overdueTime)
	defer cancel()
	silent := map[place.Address]bool{}
	for _, s := range all {
		at := keptAt(s)
		was := s.State == ledger.SnapshotReady || s.State == ledger.SnapshotFailed && !unsure(s)
		if !was || slices.Contains(report.Snapshots, s.ID) || silent[at] {
			continue
		}
		b, err := m.places.Open(ctx, at)
		if err != nil {
			continue // a place that cannot be opened from here is not this run's to judge
		}
		_, gone := b.StatSnapshot(ctx, s.Handle)
		elsewhere := errors.Is(gone, extensions.ErrElsewhere)
		silent[at] = unreachable(gone) && !elsewhere
		switch {
		case elsewhere && m.rented(s.Extension): // it costs, and no machine looks after it
			err = gone
		case !absent(gone):
			continue
		case !dryRun:
			_, err = m.endSnapshot(ctx, l, b, s, nil, nil)
		}
		if err != nil {
			report.Failures = append(report.Failures, fmt.Sprintf("%s (%s): %s", s.ID, s.Name, err))
			continue
		}
		report.Snapshots = append(report.Snapshots, s.ID)
	}
	return nil
}

func (m *Manager) sweepRow(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, dryRun bool, notify notice.Notify,
	report *SweepReport) {
	intents, err := l.OpenIntents(ctx, ledger.IntentFilter{Subject: string(row.ID)})
	if err != nil {
		report.Failures = append(report.Failures, fmt.Sprintf("%s: %s", row.ID, err))
		return
	}
	if len(intents) > 0 {
		return // under way, or reported by recovery
	}
	unleased := m.unleased(ctx, l, row)
	due := unleased || row.State == lifecycle.Failed || row.State == lifecycle.Expired || lifecycle.Overdue(m.book.Now(), row.ExpiresAt)
	reason, settled := "expired", false
	if !due {
		o, err := m.lookAgain(ctx, row)
		if m.elsewhere(row, err) && !m.rented(row.Extension) {
			return // its machine looks after it
		}
		if err != nil {
			report.Failures = append(report.Failures, fmt.Sprintf("%s (%s): %s", row.ID, row.Name, err))
			return
		}
		switch {
		case m.endedBySnapshot(ctx, l, row) && (o.Phase == extensions.PhaseFailed || o.Phase == extensions.PhaseAbsent):
			reason = bySnapshot
		case o.Phase == extensions.PhaseAbsent || o.Phase == extensions.PhaseFailed:
			reason = "lost"
		case endedBecause(o) != "":
			reason = endedBecause(o)
		default:
			return
		}
		settled = true
	} else {
		switch {
		case m.leftBySnapshot(ctx, l, row):
			reason = bySnapshot
		case !lifecycle.Overdue(m.book.Now(), row.ExpiresAt):
			reason = "destroyed" // what a failure left
		}
		if m.leftElsewhere(ctx, row) {
			return
		}
	}
	if !dryRun {
		how := cause{reason: reason, sync: true, notify: notify}
		if unleased {
			how.drop = []string{""} // unless somebody holds it by then
		}
		r, err := m.end(ctx, l, row, how)
		for _, n := range r.Notices {
			notify.Tell(n.Summary, "%s", n.Detail)
		}
		if err == nil {
			err = r.unsettled // it has ended, but is not on the books yet
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

// unleased reports that all leases on a sandbox were released, and a run died, or had no ledger, before it ended.
func (m *Manager) unleased(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox) bool {
	if !shared(row) || !lifecycle.Usable(row.State) {
		return false
	}
	all, err := l.Leases(ctx, row.ID)
	return err == nil && len(all) == 0
}

// overdueTime limits how long a run that wants something else ends what is overdue.
const overdueTime = time.Minute

// The times of what outlived its deadline: how long its place may take to end it, and how long a run may look.
const (
	outlivedAfter = 5 * time.Minute
	outlivedLook  = 5 * time.Second
)

// overdue lists what is past its deadline at places whose expiry is a sweep, and what outlived it on this machine.
func (m *Manager) overdue(ctx context.Context, l *ledger.Ledger) ([]ledger.Sandbox, error) {
	rows, err := l.List(ctx, ledger.Filter{Account: m.account, States: append(slices.Clone(usable), lifecycle.Failed),
		ExpiredBy: m.book.Now()})
	looks, cancel := context.WithTimeout(ctx, outlivedLook)
	defer cancel()
	return slices.DeleteFunc(rows, func(row ledger.Sandbox) bool { return !m.swept(ctx, row) && !m.outlived(looks, row) }), err
}

// outlived reports that a sandbox of this machine lives although its place should have ended it: what runs inside may
// have broken its end. No other place is asked, since that may cost each run a dial.
func (m *Manager) outlived(ctx context.Context, row ledger.Sandbox) bool {
	now := m.book.Now()
	if now.Sub(row.ExpiresAt) < outlivedAfter || !m.ofMachine(row) {
		return false
	}
	b, err := m.places.Open(ctx, placeOf(row))
	if err != nil {
		return false
	}
	all, err := b.List(ctx)
	return err == nil && modeOf(all[row.ID]) != "" && !all[row.ID].Deadline.After(now)
}

// endOverdue ends what is overdue. What fails, or has no time left, is told and waits for the next run.
func (m *Manager) endOverdue(ctx context.Context, l *ledger.Ledger, notify notice.Notify) error {
	rows, err := m.overdue(ctx, l)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, overdueTime)
	defer cancel()
	for _, row := range rows {
		if ctx.Err() != nil {
			return extensions.Classify("sweep", "", "", ctx.Err())
		}
		why := "did not end it"
		if m.swept(ctx, row) {
			why = "leaves that to sandboxer's next run"
		}
		notify.Tell("Ending overdue sandboxes", "%s (%s) should have ended at %s; %s %s", row.ID, row.Name,
			row.ExpiresAt.UTC().Format(time.RFC3339), candidateName(row), why)
		if report := m.sweepOne(limited, l, row, notify); len(report.Failures) > 0 {
			notify.Tell("Not settled yet", "%s", report.Failures[0])
		}
	}
	return nil
}

func (m *Manager) sweepOne(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, notify notice.Notify) (report SweepReport) {
	m.sweepRow(ctx, l, row, false, notify, &report)
	return report
}

// swept reports that nobody ends a sandbox at its deadline but a run: so its binding says, or what the binding's
// last probe found at this place, where nothing ends a paused one either.
func (m *Manager) swept(ctx context.Context, row ledger.Sandbox) bool {
	if m.expiry(row.Extension, row.Mode) == string(extensions.ExpirySweep) {
		return true
	}
	facts, _ := m.recordedFacts(ctx, placeOf(row))
	return facts != nil && m.capabilities(row.Extension).Within(facts.Narrowing).Expiry == extensions.ExpirySweep
}

// leftElsewhere reports that only another machine can end what is left of row, and is trusted to. It asks
// no other place.
func (m *Manager) leftElsewhere(ctx context.Context, row ledger.Sandbox) bool {
	if !m.ofMachine(row) {
		return false
	}
	_, err := m.lookAgain(ctx, row)
	return m.elsewhere(row, err)
}

// ofMachine reports that a sandbox was made on the machine that made it, this one or another.
func (m *Manager) ofMachine(row ledger.Sandbox) bool {
	b, err := m.catalog.Named(row.Extension)
	if err != nil || row.Handle.IsZero() {
		return false
	}
	at, _ := b.Descriptor.PlaceOf(hostOf(row))
	return at == extensions.PlaceMachine
}

// endedBecause returns the reason of an end that was due and that the place itself made; "" for any other.
func endedBecause(o extensions.Observation) string {
	switch {
	case o.Phase == extensions.PhaseTerminated:
		return "terminated"
	case o.Phase == extensions.PhaseExpired && o.Idle:
		return book.Idle
	case o.Phase == extensions.PhaseExpired:
		return "expired"
	}
	return ""
}

// ended are the phases of what costs nothing any more and is no orphan.
var ended = []extensions.Phase{extensions.PhaseAbsent, extensions.PhaseExpired, extensions.PhaseTerminated}

// used reports that a binding may have sandboxes: an account, a place that takes part in routing, or one that a row
// names. Another place of the user's own need not exist on this machine.
func (m *Manager) used(b catalog.Binding, rows []ledger.Sandbox) bool {
	return b.Descriptor.RunsAt(extensions.PlaceAccount) || m.places.Configured(b) || names(rows, b)
}

func names(rows []ledger.Sandbox, b catalog.Binding) bool {
	return slices.ContainsFunc(rows, func(row ledger.Sandbox) bool { return row.Extension == b.ID })
}

// findOrphans lists every place that can be opened from here: bindings in use that need no host, and every place
// named by a row.
func (m *Manager) findOrphans(ctx context.Context, l *ledger.Ledger, rows []ledger.Sandbox, report *SweepReport) {
	places := map[place.Address]bool{}
	for _, b := range m.catalog.Bindings {
		if _, without := b.Descriptor.PlaceOf(nil); without && m.used(b, rows) {
			places[place.Address{Binding: b.ID, Account: m.account}] = true
		}
	}
	for _, row := range rows {
		if row.Extension != "" {
			at := placeOf(row)
			at.Identity = ""
			places[at] = true
		}
	}
	seen := map[string]bool{}
	for p := range places {
		b, err := m.places.Open(ctx, p)
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
			if known || slices.Contains(ended, o.Phase) || seen[string(id)] || !b.There(ctx, o) {
				continue
			}
			seen[string(id)] = true
			report.Orphans = append(report.Orphans, fmt.Sprintf("%s at %s: %s", id, p.Binding, o.Phase))
		}
	}
	slices.Sort(report.Orphans)
}
