package life

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// ledgerDown reports a ledger that cannot be written, as opposed to one that refuses.
func ledgerDown(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && !extensions.IsKind(err, extensions.KindConflict) && !absent(err)
}

// endOutside ends a sandbox by its receipt. down is why the ledger could not be asked; nil if the ledger
// does not know the sandbox.
func (m *Manager) endOutside(ctx context.Context, row ledger.Sandbox, rec plan.Receipt, forget bool, down error,
	notify notice.Notify) (DestroyReport, error) {
	report := DestroyReport{}
	if row.Extension == "" {
		found, unasked := m.whereabouts(ctx, row)
		if found.Extension == "" {
			report.AlreadyGone = true
			if len(unasked) > 0 && down != nil {
				report.Notices = append(report.Notices, notice.Notice{Summary: "Some places did not answer",
					Detail: fmt.Sprintf("Sandbox %s was not found. Its receipt names no place, the ledger could not be read, and these places were "+
						"not asked or did not answer: %s",
						row.ID, strings.Join(unasked, "; "))})
			}
			return report, extensions.Classify("destroy", "", row.ID, ctx.Err())
		}
		row = found
	}
	b, err := m.places.Open(ctx, placeOf(row))
	if err == nil {
		// The ledger would name the current owner. Without it, the object does.
		if o, lookErr := b.Look(ctx, row.Handle); lookErr == nil && rec.Generation > 0 && o.Generation > rec.Generation {
			report.AlreadyGone = true
			report.Notices = append(report.Notices, takenOver(row.ID, row.Name, o.Generation))
			return report, nil
		}
		err = m.farewell(ctx, b, row, partingBy(rec), &report, notify)
	}
	if err != nil {
		return m.outsideFailed(row, forget, report, err)
	}
	report, err = m.endUnrecorded(ctx, row, rec.Ledger, forget, report, down)
	if err == nil && len(report.Charges) == 0 {
		report.Charges = chargesBy(rec, report.EndedAt)
	}
	return report, err
}

// endUnrecorded ends a sandbox and leaves the settlement in the ledger with this id to a later run. down
// is why; nil if the ledger here does not know the sandbox.
func (m *Manager) endUnrecorded(ctx context.Context, row ledger.Sandbox, id string, forget bool, report DestroyReport,
	down error) (DestroyReport, error) {
	b, err := m.openToEnd(ctx, row)
	gone := m.endingOf(row, time.Time{})
	if err == nil && b != nil {
		gone, err = m.endThere(ctx, nil, b, row, &report)
	}
	if err != nil {
		return m.outsideFailed(row, forget, report, err)
	}
	if stop := failpoint.Hit(ctx, pointTorn); stop != nil {
		return report, stop
	}
	report.EndedAt = gone.At
	m.settleLater(ctx, row, id, gone, down, &report)
	return report, nil
}

func (m *Manager) outsideFailed(row ledger.Sandbox, forget bool, report DestroyReport, err error) (DestroyReport, error) {
	if forget && unreachable(err) {
		report.Forgotten = true
		report.Notices = append(report.Notices, notice.Notice{Summary: "Forgotten, not ended",
			Detail: fmt.Sprintf("%s could not be reached: %s", row.ID, err)})
		return report, nil
	}
	return report, m.keepRemedy(err, row.ID)
}

// whereaboutsTime limits the search for a sandbox, unlikelyTime that at a place which probably does not exist, and
// whereaboutsAtOnce how many places are asked at a time.
const (
	whereaboutsTime   = 30 * time.Second
	unlikelyTime      = 3 * time.Second
	whereaboutsAtOnce = 8
)

// whereabouts asks every place that can be opened from here, side by side, for an id whose receipt predates the
// choice of a place. The first that has it stops the search. unasked names the places that could not answer, and
// why, in the catalog's order: without those that take no part in routing and that no row names, as they need not
// exist.
func (m *Manager) whereabouts(ctx context.Context, row ledger.Sandbox) (_ ledger.Sandbox, unasked []string) {
	var found sync.Once
	all, unasked := m.everywhere(ctx, row.Account)
	ctx, stop := context.WithTimeout(ctx, whereaboutsTime)
	defer stop()
	silent, id, expires := make([]string, len(all)), row.ID, row.ExpiresAt
	var asked errgroup.Group
	asked.SetLimit(whereaboutsAtOnce)
	for i, p := range all {
		asked.Go(func() error {
			ctx, done := ctx, context.CancelFunc(func() {})
			if !p.likely {
				ctx, done = context.WithTimeout(ctx, unlikelyTime)
			}
			defer done()
			b, err := m.places.Open(ctx, p.at)
			var h extensions.Handle
			if err == nil {
				h, err = b.FindSettled(ctx, id, expires)
			}
			switch {
			case err == nil:
				found.Do(func() {
					row.Extension, row.Handle, row.Host, row.HostRef = p.at.Binding, h, nameOf(hostAt(p.at)), p.at.Host
				})
				stop()
			case p.likely && !absent(err):
				silent[i] = p.at.String() + ": " + extensions.Clean(err.Error(), 200)
			}
			return nil
		})
	}
	_ = asked.Wait() // each error is told by its place
	if row.Extension != "" {
		return row, nil
	}
	return row, append(slices.DeleteFunc(silent, func(s string) bool { return s == "" }), unasked...)
}

// somewhere is a place where a sandbox may be; likely says that the place exists, as far as anybody knows.
type somewhere struct {
	at     place.Address
	likely bool
}

// everywhere lists the places that can be opened from here: those without a host, and registered hosts. hidden names
// the bindings whose hosts are not known, because the ledger cannot be read.
func (m *Manager) everywhere(ctx context.Context, account string) (all []somewhere, hidden []string) {
	rows := m.known(ctx)
	hosts, unknown := m.Hosts(ctx)
	for _, b := range m.catalog.Bindings {
		at, configured := place.Address{Binding: b.ID, Account: account}, m.places.Configured(b)
		if _, without := b.Descriptor.PlaceOf(nil); without {
			all = append(all, somewhere{at, configured || names(rows, b)})
		}
		if !configured || !b.Descriptor.RunsAt(extensions.PlaceHost) {
			continue
		}
		if unknown != nil {
			hidden = append(hidden, b.ID+": only the ledger knows its hosts")
		}
		for _, h := range hosts {
			if !h.Host.Local {
				at.Host = h.Ref
				all = append(all, somewhere{at, true})
			}
		}
	}
	return all, hidden
}

// known returns the rows of the account; none if its ledger cannot be read.
func (m *Manager) known(ctx context.Context) []ledger.Sandbox {
	l, err := m.book.Reader(ctx)
	if err != nil {
		return nil
	}
	rows, err := l.List(ctx, ledger.Filter{Account: m.account})
	if err != nil {
		return nil
	}
	return rows
}

// chargesBy prices a life from its receipt alone.
func chargesBy(rec plan.Receipt, end time.Time) []Charge {
	prices, err := meter.ParseLine(rec.Prices)
	if err != nil || rec.StartedAt.IsZero() || end.Before(rec.StartedAt) {
		return nil
	}
	cs, err := bank.Price(ledger.Meter{Rates: []byte(prices.Encode()), OpenedAt: rec.StartedAt, ClosedAt: end,
		Segments: []ledger.Segment{{Seq: 1, Mode: ledger.Running, StartedAt: rec.StartedAt, EndedAt: end, Sizes: prices.Sizes.Map()}}}, nil)
	if err != nil {
		return nil
	}
	return chargesOf(cs)
}
