package meter

import (
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func flatBook() *Book {
	return &Book{ID: "prices.f", Extension: "ext.f", Version: "1", AsOf: "2026-08-22", Source: "s", Currency: "USD",
		Confidence: ConfidenceExact,
		Billing:    extensions.BillingWallClock, Components: []BookPrice{
			{Component: ComponentCreation, Unit: "creation", Price: "0.10"}, {Component: ComponentSandbox, Unit: "sandbox-hour", Price: "1"}}}
}

func TestAFeeIsALineOfItsOwnThatTheWalletPays(t *testing.T) {
	t.Parallel()
	fee := &Fee{Share: "0.05", PerHour: "0.01 USD", PerCreation: "0.20 USD", BYOK: true, Source: "our contract"}
	in := QuoteInput{Extension: "ext.f", PricingModel: extensions.PricingMetered, BYOK: true, Book: flatBook(), Fee: fee, TTL: 2 * time.Hour}
	q := quoted(t, in)
	// 0.10 + 2 to the vendor; 5 % of it, two hours and a creation are the fee.
	wantAmounts(t, q, map[string]string{"max": "2.425", "hourly": "1.06", "per creation": "0.305"})
	if text(q.Wallet) != "0.325" || !q.Memo {
		t.Errorf("the wallet pays %s, memo %v", text(q.Wallet), q.Memo)
	}
	saying(t, "assumption", q.Assumptions, "your own key")
	shown := map[string]string{}
	for _, l := range q.Lines {
		if strings.HasPrefix(l.Component, "fee") {
			shown[l.Component] = l.Amount.String() + " " + l.Source
			if l.Memo {
				t.Errorf("%s is only a memo", l.Component)
			}
		}
	}
	for component, want := range map[string]string{"fee:share": "0.105 our contract", "fee:hourly": "0.02 our contract",
		"fee:creation": "0.20 our contract"} {
		if shown[component] != want {
			t.Errorf("%s is %q, want %q", component, shown[component], want)
		}
	}
	in.BYOK = false // the fee is for own keys
	if q := quoted(t, in); text(q.Max) != "2.10" || text(q.Wallet) != "2.10" {
		t.Errorf("on platform credit: max %s, wallet %s", text(q.Max), text(q.Wallet))
	}
	in.PricingModel, in.BYOK = extensions.PricingSelfHosted, true
	if q := quoted(t, in); text(q.Max) != "2.10" || text(q.Wallet) != "0.00" {
		t.Errorf("on an own place: max %s, wallet %s", text(q.Max), text(q.Wallet))
	}
}

func TestAFeeIsOwedWhereTheVendorsPriceIsNotKnown(t *testing.T) {
	t.Parallel()
	in := QuoteInput{Extension: "ext.f", PricingModel: extensions.PricingMetered, BYOK: true, TTL: 2 * time.Hour,
		Fee: &Fee{PerHour: "0.01 USD", BYOK: true}}
	q := quoted(t, in)
	if q.Max != nil || text(q.Wallet) != "0.02" || q.Currency != "USD" {
		t.Errorf("max %s, wallet %s %s", text(q.Max), text(q.Wallet), q.Currency)
	}
	lines, err := Charge([]Segment{{Mode: ModeRunning, Milliseconds: 7_200_000}}, q.Snapshot)
	if err != nil || len(lines) != 2 || lines[0].Confidence != ConfidenceUnknown || lines[1].Amount != 20_000_000 || lines[1].Memo {
		t.Errorf("settled %+v, %v", lines, err)
	}
	in.Fee = &Fee{Share: "0.05", BYOK: true}
	if q := quoted(t, in); q.Wallet != nil || q.Max != nil {
		t.Errorf("a share of what is not known: max %s, wallet %s", text(q.Max), text(q.Wallet))
	}
	in.Fee = nil
	if q := quoted(t, in); text(q.Wallet) != "0.00" {
		t.Errorf("without a fee the wallet pays %s for an own key", text(q.Wallet))
	}
}

func TestFeesThatMeanNothingAreRefused(t *testing.T) {
	t.Parallel()
	for field, f := range map[string]Fee{
		"share": {Share: "-1"}, "per_hour": {PerHour: "1"}, "per_creation": {PerHour: "1 USD", PerCreation: "1 EUR"}, "": {},
	} {
		if got, err := f.Check(); got != field || !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%+v: %q, %v", f, got, err)
		}
	}
	f := &Fee{PerHour: "1 EUR", Platform: true}
	if _, err := NewQuote(QuoteInput{Extension: "ext.f", PricingModel: extensions.PricingMetered, Book: flatBook(),
		Fee: f}); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("a fee in another currency: %v", err)
	}
}
