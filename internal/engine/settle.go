package engine

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// priceWith turns a closed meter into charges, by the prices it was opened
// with and what the backend measured, if anything. The result is pure: the
// ledger may call it again.
func priceWith(usage *extensions.Usage) func(ledger.Meter) ([]ledger.Charge, error) {
	return func(m ledger.Meter) ([]ledger.Charge, error) { return priceMeter(m, usage) }
}

func priceMeter(m ledger.Meter, usage *extensions.Usage) ([]ledger.Charge, error) {
	snapshot, err := meter.DecodePriceSnapshot(string(m.Rates))
	if err != nil {
		return nil, err
	}
	var segments []meter.Segment
	for _, s := range m.Segments {
		end := s.EndedAt
		if end.IsZero() {
			end = m.ClosedAt
		}
		segments = append(segments, meter.Segment{Mode: meter.Mode(s.Mode), Milliseconds: end.UnixMilli() - s.StartedAt.UnixMilli(), Sizes: meter.SizesFromMap(s.Sizes)})
	}
	// A measure of the whole life cannot be split: it counts where there is
	// one segment, and what is not measured is bounded from above.
	if usage != nil && len(segments) == 1 {
		segments[0].CPUMillis, segments[0].MemoryMiBMillis, segments[0].EgressBytes = usage.CPUMillis, usage.MemoryMiBMillis, usage.EgressBytes
	}
	lines, err := meter.Charge(segments, snapshot)
	if err != nil {
		return nil, err
	}
	var out []ledger.Charge
	for _, line := range lines {
		if line.Confidence == meter.ConfidenceUnknown {
			continue // what nobody knows is not booked as 0
		}
		c := ledger.Charge{
			Segment: line.Segment, Component: line.Component, Quantity: line.Quantity, Unit: line.Unit, UnitPrice: int64(line.UnitPrice),
			Amount: int64(line.Amount), Currency: string(line.Currency), Confidence: string(line.Confidence),
		}
		if line.Mode == meter.ModePaused {
			c.Component += ":paused"
		}
		if line.Memo {
			c.Memo = "infra_memo:" + snapshot.Extension
			if snapshot.Basis == meter.BasisBook {
				c.Memo = "byok_memo:" + snapshot.Extension // the user's own key pays the vendor
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// openMeter starts the running price at the provider's start where it tells
// one, else at our ready.
func (e *Engine) openMeter(q meter.Quote, started time.Time) *ledger.MeterOpen {
	open := &ledger.MeterOpen{At: started, Source: "backend", Currency: string(q.Snapshot.Currency),
		Rates: []byte(q.Snapshot.Encode()), Mode: ledger.Running, Sizes: q.Sizes.Map()}
	if started.IsZero() {
		open.At, open.Source = e.now(), "ours"
	}
	return open
}

// endOf decides when a sandbox ended: the provider's word; else its deadline
// where that has passed; else now, when its death was observed.
func (e *Engine) endOf(row ledger.Sandbox, told time.Time) ending {
	now := e.now()
	switch {
	case !told.IsZero() && !told.After(now):
		return ending{at: told, source: "backend"}
	case !row.ExpiresAt.IsZero() && !row.ExpiresAt.After(now):
		return ending{at: row.ExpiresAt, source: "deadline"}
	}
	return ending{at: now, source: "ours"}
}

// lostAt corrects the end of a sandbox that vanished at a time nobody told: it
// was last seen alive then, which is an estimate.
func (e *Engine) lostAt(row ledger.Sandbox, end ending) ending {
	seen := row.SeenAliveAt
	if seen.IsZero() {
		seen = row.ReadyAt
	}
	if !seen.IsZero() {
		end.at, end.source, end.estimated = seen, "seen-alive", true
	}
	return end
}

func chargesOf(cs []ledger.Charge) []Charge {
	out := make([]Charge, 0, len(cs))
	for _, c := range cs {
		counted, quantum := quantity(c)
		out = append(out, Charge{Component: c.Component, Quantity: counted, Unit: quantum, Amount: meter.Amount(c.Amount).String(),
			Currency: c.Currency, Memo: c.Memo != ""})
	}
	return out
}

// absent reports an error that proves there is nothing.
func absent(err error) bool { return extensions.IsKind(err, extensions.KindNotFound) }
