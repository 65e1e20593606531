package ledgertest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
)

// unpricedLives: a charge at an unknown price is booked as such, moves no money, and is in usage and in the event, never
// as 0.
func unpricedLives(t *testing.T, l *ledger.Ledger) {
	ctx := context.Background()
	one := meter.UnitPrice(1_000_000_000)
	partly := meter.PriceSnapshot{Version: 1, Basis: meter.BasisBook, Extension: "ext.x", Currency: "USD", Confidence: meter.ConfidenceUnknown,
		Prices: []meter.SnapshotPrice{
			{Component: meter.ComponentSandbox, Unit: "sandbox-second", Price: &one, Confidence: meter.ConfidenceExact},
			{Component: meter.ComponentCreation, Unit: "creation", Confidence: meter.ConfidenceUnknown}}}
	wholly := meter.PriceSnapshot{Version: 1, Basis: meter.BasisUnknown, Extension: "ext.x", Confidence: meter.ConfidenceUnknown}
	for name, c := range map[string]struct {
		rates meter.PriceSnapshot
		want  ledger.UsageRow
		lines int
	}{
		"partly": {partly, ledger.UsageRow{Currency: "USD", Meters: 1,
			Sums: bank.Sums{Running: 60_000, OwnKey: 60_000_000, Unpriced: 1, OwnKeyUnknown: 1}}, 2},
		"wholly": {wholly, ledger.UsageRow{Meters: 1, Sums: bank.Sums{Running: 60_000, Unpriced: 1, OwnKeyUnknown: 1}}, 1},
	} {
		s := must(l.Begin(ctx, want(newID(t), holderOf(t, l), name)))(t)
		s = must(l.Apply(ctx, provisioning(s)))(t)
		up := ready(s)
		up.Meter.Open.At, up.Meter.Open.Currency, up.Meter.Open.Rates = Start, string(c.rates.Currency), []byte(c.rates.Encode())
		s = must(l.Apply(ctx, up))(t)
		s = must(l.Apply(ctx, destroying(s, holderOf(t, l))))(t)
		end := destroyed(s)
		end.Meter.Close = meterClose(Start.Add(time.Minute))
		s = must(l.Apply(ctx, end))(t)
		for _, by := range [][]ledger.Dimension{nil, {ledger.BySandbox}} {
			rows := must(l.Usage(ctx, ledger.UsageFilter{SandboxID: s.ID}, by...))(t)
			if len(rows) != 1 {
				t.Fatalf("%s: %+v", name, rows)
			}
			if rows[0].SandboxID, rows[0].Name = "", ""; rows[0] != c.want {
				t.Errorf("%s by %v: %+v", name, by, rows[0])
			}
		}
		charges := must(l.Charges(ctx, s.ID))(t)
		unknown := 0
		for _, line := range charges {
			if !line.Known() {
				unknown++
			}
		}
		if len(charges) != c.lines || unknown != 1 {
			t.Errorf("%s: %+v", name, charges)
		}
		events := must(l.Events(ctx, ledger.StreamOf(s.Account), 1, 0))(t)
		if last := string(events[len(events)-1].CloudEvent); strings.Count(last, `"amount_nano":null`) != 1 ||
			strings.Contains(last, `"amount_nano":0`) {
			t.Errorf("%s: %s", name, last)
		}
	}
	verified(t, l)
}
