package book

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Believed returns the end without the place's measures that are impossible for the row's open meter. The
// ledger refuses impossible measures, and that must not leave the end unsettled. before is an earlier measure
// of the same life, nil if none.
func (end Ending) Believed(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, before *extensions.Usage) (Ending, error) {
	if end.Usage == nil {
		return end, nil
	}
	meters, err := l.Meters(context.WithoutCancel(ctx), row.ID)
	if err != nil {
		return end, err
	}
	var m ledger.Meter
	switch n := len(meters); {
	case n > 0 && meters[n-1].Open():
		m = meters[n-1]
		if bank.GoesOn(meters) {
			end.Usage, end.Refused = nil, []string{bank.CoversSettled}
			return end, nil
		}
		if end.Began != nil {
			m = m.Began(*end.Began)
		}
	case end.Began != nil:
		m = end.Began.Opened(row.ID, row.Generation, 0, row.Attribution(), end.At)
	default:
		end.Usage = nil // no meter runs that it could settle
		return end, nil
	}
	end.Usage, end.Refused = m.Closed(ledger.MeterClose{At: end.At}, end.At).Believable(end.Usage, before)
	return end, nil
}
