package export

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
)

// platform is who sells and bills what the wallet pays.
const platform = "sandboxer"

// noCurrency is ISO 4217's code for none.
const noCurrency = "XXX"

// focusColumns are those of FOCUS 1.2 (focus.finops.org): all mandatory ones,
// and of the others those there is something to say in. FOCUS columns come
// first, then our own, each in the order of the alphabet.
//
// BilledCost is what the platform bills: 0 where the owner of a key or of a
// place pays somebody else, whose cost is in the other cost columns. A charge
// belongs to the month in which its meter ended, when it was settled and a
// budget or wallet bore it: it is never split, so that the rows of all months
// add up to the ledger, and a month that is over does not change.
//
// What is charged at a price that nobody told has no cost and no price, although
// FOCUS has columns for them that are not null: its null handling forbids a 0
// that stands for nothing, and a row that is left out would not be told at all.
// x_Confidence is "unknown" there.
func focusColumns() []column {
	cost := func(c ledger.ChargeRow) string { return amountOf(c.Charge) }
	price := func(c ledger.ChargeRow) string { return unitPriceOf(c.Charge) }
	return []column{
		{"BilledCost", decimal, func(c ledger.ChargeRow) string { return billed(c.Charge) }},
		{"BillingAccountId", exact, func(c ledger.ChargeRow) string { return ledger.StreamOf(c.For.Account) }},
		{"BillingAccountName", exact, func(c ledger.ChargeRow) string { return ledger.StreamOf(c.For.Account) }},
		{"BillingCurrency", exact, func(c ledger.ChargeRow) string { return cmp.Or(c.Currency, noCurrency) }},
		{"BillingPeriodEnd", exact, func(c ledger.ChargeRow) string { return second(month(c.MeterEnd).AddDate(0, 1, 0)) }},
		{"BillingPeriodStart", exact, func(c ledger.ChargeRow) string { return second(month(c.MeterEnd)) }},
		{"ChargeCategory", exact, constant("Usage")},
		{"ChargeClass", exact, constant("")}, // no correction
		{"ChargeDescription", exact, chargeDescription},
		{"ChargeFrequency", exact, chargeFrequency},
		{"ChargePeriodEnd", exact, func(c ledger.ChargeRow) string { _, to := chargePeriod(c); return second(to) }},
		{"ChargePeriodStart", exact, func(c ledger.ChargeRow) string { from, _ := chargePeriod(c); return second(from) }},
		{"ConsumedQuantity", decimal, func(c ledger.ChargeRow) string { return counted(c.Charge) }},
		{"ConsumedUnit", exact, func(c ledger.ChargeRow) string { return measureOf(c.Unit).counted }},
		{"ContractedCost", decimal, cost},
		{"ContractedUnitPrice", decimal, price},
		{"EffectiveCost", decimal, cost},
		{"InvoiceIssuerName", exact, seller},
		{"ListCost", decimal, cost},
		{"ListUnitPrice", decimal, price},
		{"PricingCategory", exact, constant("Standard")},
		{"PricingQuantity", decimal, func(c ledger.ChargeRow) string { return priced(c.Charge) }},
		{"PricingUnit", exact, func(c ledger.ChargeRow) string { return measureOf(c.Unit).priced }},
		{"ProviderName", exact, seller},
		{"PublisherName", exact, publisher},
		{"RegionId", exact, func(c ledger.ChargeRow) string { return c.Prices.Region }},
		{"RegionName", exact, func(c ledger.ChargeRow) string { return c.Prices.Region }},
		{"ResourceId", exact, func(c ledger.ChargeRow) string { return string(c.SandboxID) }},
		{"ResourceName", exact, func(c ledger.ChargeRow) string { return c.For.Name }},
		{"ResourceType", exact, constant("Sandbox")},
		{"ServiceCategory", exact, constant("Compute")},
		{"ServiceName", exact, constant("Sandboxes")},
		{"ServiceSubcategory", exact, constant("Other (Compute)")},
		{"SkuId", exact, skuID},
		{"SkuMeter", exact, func(c ledger.ChargeRow) string { return meterName(c.Component) }},
		{"SkuPriceDetails", exact, constant("")},
		{"SkuPriceId", exact, skuPriceID},
		{"SubAccountId", exact, func(c ledger.ChargeRow) string {
			if workspace(c) == "" {
				return ""
			}
			return c.For.Account
		}},
		{"SubAccountName", exact, workspace},
		{"Tags", exact, tags},
		{"x_Confidence", exact, func(c ledger.ChargeRow) string { return c.Confidence }},
		{"x_EndEstimated", truth, func(c ledger.ChargeRow) string { return strconv.FormatBool(c.EndEstimated) }},
		{"x_ExtensionId", exact, func(c ledger.ChargeRow) string { return c.For.Extension }},
		{"x_HostName", text, func(c ledger.ChargeRow) string { return c.For.Host }},
		{"x_MeterId", exact, func(c ledger.ChargeRow) string { return c.MeterID }},
		{"x_PaidBy", exact, func(c ledger.ChargeRow) string { return paidBy(c.Charge) }},
		{"x_PriceAsOf", exact, func(c ledger.ChargeRow) string { return c.Prices.AsOf }},
		{"x_PriceSource", text, func(c ledger.ChargeRow) string { return c.Prices.Source }},
		{"x_ProfileId", exact, func(c ledger.ChargeRow) string { return c.For.Profile }},
		{"x_ProfileVersion", exact, func(c ledger.ChargeRow) string { return c.For.ProfileVersion }},
	}
}

func constant(v string) func(ledger.ChargeRow) string {
	return func(ledger.ChargeRow) string { return v }
}

// second is the only form FOCUS has for a moment.
func second(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05Z") }

func month(at time.Time) time.Time {
	y, m, _ := at.UTC().Date()
	return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
}

// chargePeriod is the charge's, outwards to whole seconds, and never empty:
// its start is inclusive and its end is not.
func chargePeriod(c ledger.ChargeRow) (from, to time.Time) {
	from, to = c.StartedAt.Truncate(time.Second), c.EndedAt.Truncate(time.Second)
	if to.Before(c.EndedAt) || !to.After(from) {
		to = to.Add(time.Second)
	}
	return from, to
}

func chargeDescription(c ledger.ChargeRow) string {
	of := meterName(c.Component)
	if c.Mode == ledger.Paused {
		of += " while paused"
	}
	of += " of sandbox " + cmp.Or(c.For.Name, string(c.SandboxID)) + " on " + c.For.Extension
	if !c.Known() {
		of += ", at a price that is not known"
	}
	return of
}

func chargeFrequency(c ledger.ChargeRow) string {
	if c.Unit == "creation" {
		return "One-Time"
	}
	return "Usage-Based"
}

// seller is who sends the bill, if anybody does.
func seller(c ledger.ChargeRow) string {
	switch paidBy(c.Charge) {
	case PaidByOwnKey:
		return c.For.Extension
	case PaidByOwnPlace:
		return ledger.StreamOf(c.For.Account)
	}
	return platform
}

// publisher is whose machines they are; a fee is the platform's own.
func publisher(c ledger.ChargeRow) string {
	if base(c.Component) == meter.ComponentFee {
		return platform
	}
	if paidBy(c.Charge) == PaidByOwnPlace {
		return ledger.StreamOf(c.For.Account)
	}
	return c.For.Extension
}

func workspace(c ledger.ChargeRow) string {
	_, w, _ := strings.Cut(c.For.Account, "/")
	return w
}

func base(component string) string {
	b, _, _ := strings.Cut(component, ":")
	return b
}

var meterNames = map[string]string{
	meter.ComponentCreation: "Creation", meter.ComponentSandbox: "Sandbox Time", meter.ComponentVCPU: "CPU Time", meter.ComponentMemory: "Memory",
	meter.ComponentDisk: "Disk Space", meter.ComponentGPU: "GPU Time", meter.ComponentEgress: "Data Transfer", meter.ComponentSurcharge: "Surcharge",
	meter.ComponentFee: "Platform Fee",
}

func meterName(component string) string {
	return cmp.Or(meterNames[base(component)], base(component))
}

const pausedVariant = ":paused"

func skuID(c ledger.ChargeRow) string {
	return c.For.Extension + "/" + strings.TrimSuffix(c.Component, pausedVariant)
}

// skuPriceID names a price whatever it is at the time: the thing sold, by
// which unit, where, and in which mode.
func skuPriceID(c ledger.ChargeRow) string {
	id := skuID(c) + "/" + c.Unit
	if c.Prices.Region != "" {
		id += "/" + c.Prices.Region
	}
	if strings.HasSuffix(c.Component, pausedVariant) {
		id += "/paused"
	}
	return id
}

// tags are all set by us, so they carry our prefix.
func tags(c ledger.ChargeRow) string {
	set := map[string]string{}
	for name, v := range map[string]string{"profile": c.For.Profile, "actor": c.For.Actor, "harness": c.For.Harness, "run_id": c.For.RunID} {
		if v != "" {
			set[platform+"/"+name] = v
		}
	}
	raw, err := encode(set)
	if err != nil || len(set) == 0 { // strings can always be encoded
		return ""
	}
	return string(raw)
}
