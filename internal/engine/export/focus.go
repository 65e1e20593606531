package export

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
)

// platform is the seller and biller of what the wallet pays.
const platform = "sandboxer"

// noCurrency is ISO 4217's code for none.
const noCurrency = "XXX"

// focusColumns are the columns of FOCUS 1.2 (focus.finops.org): all mandatory ones, and the others that we
// have a value for. FOCUS columns come first, then our own, each in alphabetical order.
//
// BilledCost is what the platform bills: 0 if the owner of a key or place pays somebody else, whose cost
// is in the other cost columns. A charge belongs to the month in which its meter ended, when it was
// settled and a budget or wallet bore it. It is never split, so the rows of all months add up to the
// ledger, and a past month does not change.
//
// A charge of unknown price has no cost and no price, although FOCUS requires values in those columns: its
// null handling forbids a 0 that stands for nothing, and without its row the charge would go unreported.
// Its x_Confidence is "unknown".
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
		{"ChargeClass", exact, constant("")}, // not a correction
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
		{"ResourceId", exact, func(c ledger.ChargeRow) string { return cmp.Or(c.SnapshotID, string(c.SandboxID)) }},
		{"ResourceName", exact, func(c ledger.ChargeRow) string { return c.For.Name }},
		{"ResourceType", exact, kept("Snapshot", "Sandbox")},
		{"ServiceCategory", exact, kept("Storage", "Compute")},
		{"ServiceName", exact, constant("Sandboxes")},
		{"ServiceSubcategory", exact, kept("Other (Storage)", "Other (Compute)")},
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

// kept returns one value for what keeping a snapshot costs, and another for the rest.
func kept(snapshot, sandbox string) func(ledger.ChargeRow) string {
	return func(c ledger.ChargeRow) string {
		if c.SnapshotID != "" {
			return snapshot
		}
		return sandbox
	}
}

// second formats a time in the only form that FOCUS has.
func second(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05Z") }

func month(at time.Time) time.Time {
	y, m, _ := at.UTC().Date()
	return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
}

// chargePeriod returns the charge's period, extended to whole seconds and never empty: its start is
// inclusive, its end exclusive.
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
	if c.SnapshotID != "" {
		of += " " + c.SnapshotID
	}
	of += " of sandbox " + cmp.Or(c.For.Name, string(c.SandboxID)) + " on " + c.For.Extension
	if !c.Known() {
		of += ", at an unknown price"
	}
	return of
}

func chargeFrequency(c ledger.ChargeRow) string {
	if c.Unit == "creation" {
		return "One-Time"
	}
	return "Usage-Based"
}

// seller returns who sends the bill, if anybody does.
func seller(c ledger.ChargeRow) string {
	switch paidBy(c.Charge) {
	case PaidByOwnKey:
		return c.For.Extension
	case PaidByOwnPlace:
		return ledger.StreamOf(c.For.Account)
	}
	return platform
}

// publisher returns whose machines they are; a fee is the platform's own.
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
	meter.ComponentCreation: "Creation", meter.ComponentSandbox: "Sandbox Time", meter.ComponentVCPU: "CPU Time",
	meter.ComponentMemory: "Memory",
	meter.ComponentDisk:   "Disk Space", meter.ComponentGPU: "GPU Time", meter.ComponentEgress: "Data Transfer",
	meter.ComponentSurcharge: "Surcharge",
	meter.ComponentFee:       "Platform Fee",
}

func meterName(component string) string {
	return cmp.Or(meterNames[base(component)], base(component))
}

const pausedVariant = ":paused"

func skuID(c ledger.ChargeRow) string {
	return c.For.Extension + "/" + strings.TrimSuffix(c.Component, pausedVariant)
}

// skuPriceID identifies a price independent of its value: the thing sold, its unit, the place and the
// mode.
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

// tags returns the tags. We set all of them, so they carry our prefix.
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
