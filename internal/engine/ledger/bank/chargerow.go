package bank

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// ChargeRow is one charge with everything known about it.
type ChargeRow struct {
	Charge
	For        Attribution
	SandboxID  extensions.ID
	SnapshotID string // see Meter
	Generation int64
	// Mode is the mode of the charged segments; "" is the whole meter, such as a snapshot's.
	Mode meter.Mode
	// StartedAt and EndedAt bound what the charge is for: the segments of its mode, starting with its own,
	// or the whole meter.
	StartedAt, EndedAt     time.Time
	MeterStart, MeterEnd   time.Time
	StartSource, EndSource string
	EndEstimated           bool
	// Prices are those of the meter, without their list; zero if the meter's rates have another form.
	Prices meter.PriceSnapshot
}

// ChargeRows builds rows. It caches the last decoded prices, which neighbours often share.
type ChargeRows struct {
	text   string
	prices meter.PriceSnapshot
}

// Row returns the row of a meter's charge.
func (r *ChargeRows) Row(m Meter, c Charge) ChargeRow {
	row := ChargeRow{Charge: c, For: m.For, SandboxID: m.SandboxID, SnapshotID: m.SnapshotID, Generation: m.Generation,
		StartedAt: m.OpenedAt, EndedAt: m.ClosedAt,
		MeterStart: m.OpenedAt, MeterEnd: m.ClosedAt, StartSource: m.StartSource, EndSource: m.EndSource, EndEstimated: m.EndEstimated,
		Prices: r.pricesOf(m)}
	if m.SnapshotID != "" || c.Segment < 1 || c.Segment > int64(len(m.Segments)) {
		return row
	}
	first := m.Segments[c.Segment-1]
	row.Mode, row.StartedAt, row.EndedAt = first.Mode, first.StartedAt, first.EndedAt
	for _, s := range m.Segments[c.Segment:] {
		if s.Mode == first.Mode {
			row.EndedAt = s.EndedAt
		}
	}
	return row
}

func (r *ChargeRows) pricesOf(m Meter) meter.PriceSnapshot {
	if text := string(m.Rates); text != r.text {
		r.text = text
		r.prices, _ = meter.DecodePriceSnapshot(text) // another form stays zero
		r.prices.Prices, r.prices.Notes = nil, nil
	}
	return r.prices
}
