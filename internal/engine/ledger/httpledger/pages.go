package httpledger

import (
	"context"
	"errors"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

type (
	usageQuery struct {
		Filter ledger.UsageFilter
		By     []ledger.Dimension
	}
	// chargeQuery asks for the charges after one.
	chargeQuery struct {
		Filter ledger.UsageFilter
		After  *chargeKey `json:",omitempty"`
	}
	// chargeKey names a charge, and when its meter ended.
	chargeKey struct {
		MeterEnd  time.Time
		MeterID   string
		Segment   int64
		Component string
	}
	// chargePage is some charges; the rest is after Next, nil = there is none.
	chargePage struct {
		Charges []ledger.ChargeRow
		Next    *chargeKey `json:",omitempty"`
	}
	// meterQuery asks for the running meters after one; ids are in their order.
	meterQuery struct {
		Filter ledger.UsageFilter
		After  string
	}
)

// errPageFull ends a reading; what is left is the next page's.
var errPageFull = errors.New("the page is full")

func keyOf(r ledger.ChargeRow) chargeKey {
	return chargeKey{r.MeterEnd, r.MeterID, r.Segment, r.Component}
}

// charges reads one page. Charges are never changed and never removed, so the
// last one of the page before is found again, and what follows it is new.
func charges(ctx context.Context, l ledger.Ledger, q chargeQuery) (chargePage, error) {
	skip := q.After != nil
	if skip && q.After.MeterEnd.After(q.Filter.From) {
		q.Filter.From = q.After.MeterEnd
	}
	var p chargePage
	err := l.EachCharge(ctx, q.Filter, func(r ledger.ChargeRow) error {
		k := keyOf(r)
		switch {
		case skip:
			skip = k.MeterID != q.After.MeterID || k.Segment != q.After.Segment || k.Component != q.After.Component
		case len(p.Charges) == page:
			last := keyOf(p.Charges[page-1])
			p.Next = &last
			return errPageFull
		default:
			p.Charges = append(p.Charges, r)
		}
		return nil
	})
	if errors.Is(err, errPageFull) {
		err = nil
	}
	return p, err
}

// openMeters reads one page.
func openMeters(ctx context.Context, l ledger.Ledger, q meterQuery) ([]ledger.Meter, error) {
	var out []ledger.Meter
	err := l.EachOpenMeter(ctx, q.Filter, func(m ledger.Meter) error {
		if m.ID <= q.After {
			return nil
		}
		if out = append(out, m); len(out) == page {
			return errPageFull
		}
		return nil
	})
	if errors.Is(err, errPageFull) {
		err = nil
	}
	return out, err
}
