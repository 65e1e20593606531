package bank

import (
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Price turns a closed meter into charges, using the rates it was opened with and the backend's
// measurements, if any; see meter.Charge. It is pure: ledgers close meters with it, and callers without a
// ledger predict charges with it. Rates that are no meter.PriceSnapshot are KindInvalid; without rates
// there are no charges. A line without a known price is a Charge too.
func Price(m Meter, usage *extensions.Usage) ([]Charge, error) {
	if len(m.Rates) == 0 {
		return nil, nil
	}
	snapshot, err := meter.DecodePriceSnapshot(string(m.Rates))
	if err != nil {
		return nil, err
	}
	segments := m.priced()
	if usage != nil { // what is not measured is bounded from above
		for _, n := range []*int64{usage.CPUMillis, usage.MemoryMiBMillis, usage.EgressBytes} {
			if n != nil && *n < 0 {
				return nil, fault.Errorf(extensions.KindInvalid, "a quantity of %d was measured", *n)
			}
		}
		segments = measuresOf(usage).Spread(segments)
	}
	lines, err := meter.Charge(segments, snapshot)
	if err != nil {
		return nil, err
	}
	var out []Charge
	for _, line := range lines {
		c := Charge{
			Segment: line.Segment, Component: line.Component, Quantity: line.Quantity, Unit: line.Unit, UnitPrice: int64(line.UnitPrice),
			Amount: int64(line.Amount), Currency: string(line.Currency), Confidence: string(line.Confidence),
		}
		if line.Mode == meter.ModePaused {
			c.Component += ":paused"
		}
		if line.Memo {
			c.Memo = memoOf(snapshot)
		}
		out = append(out, c)
	}
	return out, nil
}

// priced returns the segments of a closed meter, without measures.
func (m Meter) priced() (segments []meter.Segment) {
	for _, s := range m.Segments {
		end := s.EndedAt
		if end.IsZero() {
			end = m.ClosedAt
		}
		segments = append(segments, meter.Segment{Mode: s.Mode, Milliseconds: end.UnixMilli() - s.StartedAt.UnixMilli(),
			Sizes: meter.SizesFromMap(s.Sizes)})
	}
	return segments
}

// memoOf returns the memo account of a cost that is not billed here.
func memoOf(s meter.PriceSnapshot) string {
	if s.Basis == meter.BasisBook {
		return AccountBYOK + ":" + s.Extension // the user's own key pays the vendor
	}
	return AccountInfra + ":" + s.Extension
}
