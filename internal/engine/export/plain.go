package export

import (
	"strconv"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// plainColumns are the columns of CSV and JSON in a stable order: new ones come last. Unknown values are
// empty, or null.
func plainColumns() []column {
	return []column{
		{"account", text, func(c ledger.ChargeRow) string { return c.For.Account }},
		{"sandbox_id", text, func(c ledger.ChargeRow) string { return string(c.SandboxID) }},
		{"name", text, func(c ledger.ChargeRow) string { return c.For.Name }},
		{"profile", text, func(c ledger.ChargeRow) string { return c.For.Profile }},
		{"profile_version", text, func(c ledger.ChargeRow) string { return c.For.ProfileVersion }},
		{"extension", text, func(c ledger.ChargeRow) string { return c.For.Extension }},
		{"host", text, func(c ledger.ChargeRow) string { return c.For.Host }},
		{"actor", text, func(c ledger.ChargeRow) string { return c.For.Actor }},
		{"harness", text, func(c ledger.ChargeRow) string { return c.For.Harness }},
		{"run_id", text, func(c ledger.ChargeRow) string { return c.For.RunID }},
		{"meter_id", text, func(c ledger.ChargeRow) string { return c.MeterID }},
		{"generation", integer, func(c ledger.ChargeRow) string { return strconv.FormatInt(c.Generation, 10) }},
		{"meter_started_at", exact, func(c ledger.ChargeRow) string { return instant(c.MeterStart) }},
		{"meter_ended_at", exact, func(c ledger.ChargeRow) string { return instant(c.MeterEnd) }},
		{"end_estimated", truth, func(c ledger.ChargeRow) string { return strconv.FormatBool(c.EndEstimated) }},
		{"segment", integer, func(c ledger.ChargeRow) string { return strconv.FormatInt(c.Segment, 10) }},
		{"component", text, func(c ledger.ChargeRow) string { return c.Component }},
		{"mode", text, func(c ledger.ChargeRow) string { return string(c.Mode) }},
		{"started_at", exact, func(c ledger.ChargeRow) string { return instant(c.StartedAt) }},
		{"ended_at", exact, func(c ledger.ChargeRow) string { return instant(c.EndedAt) }},
		{"quantity", decimal, func(c ledger.ChargeRow) string { return counted(c.Charge) }},
		{"unit", text, func(c ledger.ChargeRow) string { return measureOf(c.Unit).counted }},
		{"unit_price", decimal, func(c ledger.ChargeRow) string { return unitPriceOf(c.Charge) }},
		{"price_unit", text, func(c ledger.ChargeRow) string { return measureOf(c.Unit).priced }},
		{"amount", decimal, func(c ledger.ChargeRow) string { return amountOf(c.Charge) }},
		{"billed", decimal, func(c ledger.ChargeRow) string { return billedIn(c.Charge) }},
		{"currency", text, func(c ledger.ChargeRow) string { return c.Currency }},
		{"paid_by", text, func(c ledger.ChargeRow) string { return paidBy(c.Charge) }},
		{"confidence", text, func(c ledger.ChargeRow) string { return c.Confidence }},
		{"price_book", text, func(c ledger.ChargeRow) string { return c.Prices.Book }},
		{"price_as_of", text, func(c ledger.ChargeRow) string { return c.Prices.AsOf }},
		{"price_source", text, func(c ledger.ChargeRow) string { return c.Prices.Source }},
		{"region", text, func(c ledger.ChargeRow) string { return c.Prices.Region }},
	}
}
