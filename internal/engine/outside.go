package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// ledgerDown tells a ledger that cannot be written from one that refuses.
func ledgerDown(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && !extensions.IsKind(err, extensions.KindConflict) && !absent(err)
}

// endOutside ends a sandbox by its receipt. down is why the ledger could not
// be asked, nil where it does not know the sandbox.
func (e *Engine) endOutside(ctx context.Context, row ledger.Sandbox, rec Receipt, forget bool, down error, notify Notify) (DestroyReport, error) {
	report := DestroyReport{}
	if row.Extension == "" {
		found, unasked := e.whereabouts(ctx, row)
		if found.Extension == "" {
			report.AlreadyGone = true
			if len(unasked) > 0 && down != nil {
				report.Notices = append(report.Notices, Notice{Summary: "Not every place could be asked",
					Detail: fmt.Sprintf("The receipt of %s names no place and the ledger could not be read. It is nowhere else, but it was not looked for at: %s", row.ID, strings.Join(unasked, "; "))})
			}
			return report, place.Classify("destroy", row.ID, ctx.Err())
		}
		row = found
	}
	b, err := e.places.Open(ctx, placeOf(row))
	if err == nil {
		// The ledger would tell who owns it now. Without it, the object does.
		if o, lookErr := b.Look(ctx, row.Handle); lookErr == nil && rec.Generation > 0 && o.Generation > rec.Generation {
			report.AlreadyGone = true
			report.Notices = append(report.Notices, takenOver(row.ID, row.Name, o.Generation))
			return report, nil
		}
		err = e.farewell(ctx, b, row, rec.parting(), &report, notify)
	}
	if err != nil {
		return e.outsideFailed(row, forget, report, err)
	}
	report, err = e.endUnrecorded(ctx, row, rec.Ledger, forget, report, down)
	if err == nil && len(report.Charges) == 0 {
		report.Charges = chargesBy(rec, report.EndedAt)
	}
	return report, err
}

// endUnrecorded ends a sandbox and leaves the settlement in its ledger, of which
// id is the id, to a later run; down is why, nil where the ledger here does not
// know it.
func (e *Engine) endUnrecorded(ctx context.Context, row ledger.Sandbox, id string, forget bool, report DestroyReport, down error) (DestroyReport, error) {
	b, err := e.openToEnd(ctx, row)
	gone := e.endOf(row, time.Time{})
	if err == nil && b != nil {
		gone, err = e.endThere(ctx, b, row, &report)
	}
	if err != nil {
		return e.outsideFailed(row, forget, report, err)
	}
	if stop := failpoint.Hit(ctx, pointTorn); stop != nil {
		return report, stop
	}
	report.EndedAt = gone.at
	e.settleLater(row, id, gone, down, &report)
	return report, nil
}

func (e *Engine) outsideFailed(row ledger.Sandbox, forget bool, report DestroyReport, err error) (DestroyReport, error) {
	if forget && unreachable(err) {
		report.Forgotten = true
		report.Notices = append(report.Notices, Notice{Summary: "Forgotten, not ended", Detail: fmt.Sprintf("%s could not be reached: %s", row.ID, err)})
		return report, nil
	}
	return report, e.keepRemedy(err, row.ID)
}

// whereabouts asks every place that can be opened from here for an id, for a
// receipt that was written before a place was chosen. unasked names the places
// that could not tell, and why.
func (e *Engine) whereabouts(ctx context.Context, row ledger.Sandbox) (_ ledger.Sandbox, unasked []string) {
	for _, binding := range e.catalog.Bindings {
		if binding.Descriptor.Place == extensions.PlaceHost {
			continue
		}
		b, err := e.places.Open(ctx, place.Address{Binding: binding.ID, Account: row.Account})
		if err == nil {
			if row.Handle, err = b.FindSettled(ctx, row.ID, row.ExpiresAt); err == nil {
				row.Extension = binding.ID
				return row, nil
			}
		}
		if !absent(err) {
			unasked = append(unasked, binding.ID+": "+extensions.Clean(err.Error(), 200))
		}
	}
	return row, unasked
}

// chargesBy prices a life by its receipt alone.
func chargesBy(rec Receipt, end time.Time) []Charge {
	prices, err := meter.DecodePriceSnapshot(rec.Prices)
	if err != nil || rec.StartedAt.IsZero() || end.Before(rec.StartedAt) {
		return nil
	}
	cs, err := ledger.Price(ledger.Meter{Rates: []byte(rec.Prices), OpenedAt: rec.StartedAt, ClosedAt: end,
		Segments: []ledger.Segment{{Seq: 1, Mode: ledger.Running, StartedAt: rec.StartedAt, EndedAt: end, Sizes: prices.Sizes.Map()}}}, nil)
	if err != nil {
		return nil
	}
	return chargesOf(cs)
}
