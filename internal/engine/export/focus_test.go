package export

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// A fee is the platform's own: no vendor sells it, and one for a creation is
// paid once.
func TestFocusOfFees(t *testing.T) {
	t.Parallel()
	l, _ := newLedger(t)
	fee := func(label, unit string) ledger.Charge {
		return ledger.Charge{Component: "fee:" + label, Quantity: 1_000_000_000, Unit: unit, Currency: "EUR", Confidence: "exact"}
	}
	lived{account: "acme/web", name: "n", from: start, to: start.Add(time.Hour), rates: bookRates,
		charges: []ledger.Charge{fee("creation", "creation"), fee("hourly", "sandbox-hour"), fee("share", "charged")}}.live(t, l)
	_, rows := readCSV(t, written(t, l, ledger.UsageFilter{}, FOCUS))
	if len(rows) != 3 {
		t.Fatal(rows)
	}
	for i, frequency := range []string{"One-Time", "Usage-Based", "Usage-Based"} {
		r := rows[i]
		if r["ChargeFrequency"] != frequency || r["PublisherName"] != "sandboxer" || r["ProviderName"] != "sandboxer" ||
			r["InvoiceIssuerName"] != "sandboxer" ||
			r["SkuMeter"] != "Platform Fee" || r["ChargeDescription"] != "Platform Fee of sandbox n on ext.x" {
			t.Errorf("%v", r)
		}
		for _, p := range focusRow(r) {
			t.Error(p)
		}
	}
}

// What everybody who reads these files relies on, to the letter.
func TestFocusOfOneLife(t *testing.T) {
	t.Parallel()
	l, _ := newLedger(t)
	v := lived{account: "acme/web", name: "n", from: time.Date(2026, 1, 31, 23, 30, 0, 500, time.UTC),
		to: time.Date(2026, 2, 1, 0, 29, 59, 1000, time.UTC), rates: bookRates, charges: someCharges()}
	id := v.live(t, l)
	header, rows := readCSV(t, written(t, l, ledger.UsageFilter{}, FOCUS))
	if !slices.IsSortedFunc(header, strings.Compare) || len(rows) != 3 {
		t.Fatal(header, rows)
	}
	want := map[string]string{
		"BilledCost": "0.00", "EffectiveCost": "0.1008", "ListCost": "0.1008", "ContractedCost": "0.1008", "ListUnitPrice": "0.0504",
		"PricingQuantity": "2", "PricingUnit": "Core-Hours",
		"ConsumedQuantity": "7200", "ConsumedUnit": "Core-Seconds", "BillingPeriodStart": "2026-02-01T00:00:00Z",
		"BillingPeriodEnd":  "2026-03-01T00:00:00Z",
		"ChargePeriodStart": "2026-01-31T23:30:00Z", "ChargePeriodEnd": "2026-02-01T00:30:00Z", "BillingAccountId": "acme",
		"SubAccountId": "acme/web", "SubAccountName": "web",
		"ProviderName": "ext.x", "PublisherName": "ext.x", "InvoiceIssuerName": "ext.x", "ResourceId": string(id), "ResourceName": "n",
		"RegionId": "eu-1", "SkuId": "ext.x/vcpu", "SkuPriceId": "ext.x/vcpu/vcpu-hour/eu-1",
		"ChargeFrequency": "Usage-Based", "x_PaidBy": "own-key", "x_Confidence": "exact", "x_PriceAsOf": "2026-01-02",
		"ChargeDescription": "CPU Time of sandbox n on ext.x",
		"Tags":              `{"sandboxer/actor":"ann","sandboxer/harness":"claude","sandboxer/profile":"profile.base","sandboxer/run_id":"r-1"}`,
	}
	for name, v := range want {
		if rows[2][name] != v {
			t.Errorf("%s is %q, not %q", name, rows[2][name], v)
		}
	}
	if r := rows[0]; r["BilledCost"] != "0.0000006" || r["ChargeFrequency"] != "One-Time" || r["ProviderName"] != "sandboxer" ||
		r["PublisherName"] != "ext.x" {
		t.Errorf("%v", r)
	}
}
