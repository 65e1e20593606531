package meter

import "github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"

// Fee is what the platform charges for itself at a metered binding: a share of what the vendor charges, an
// amount per running hour, one per creation, or several of these. The wallet pays it, even if the user's
// own key pays the vendor. It has lines of its own: "fee:share", "fee:hourly", "fee:creation".
type Fee struct {
	Share       string // decimal: "0.05" is 5 %; "" = none
	PerHour     string // "0.01 USD"; paused time is free
	PerCreation string // "0.02 USD"
	// BYOK and Platform say for whose key it is charged.
	BYOK, Platform bool
	Source         string
}

// Check returns KindInvalid for a malformed amount, amounts in two currencies and an empty fee. field is
// "share", "per_hour" or "per_creation".
func (f Fee) Check() (field string, err error) {
	var currency Currency
	for _, a := range []struct{ field, text string }{{"per_hour", f.PerHour}, {"per_creation", f.PerCreation}} {
		if a.text == "" {
			continue
		}
		_, c, err := hourlyPrice(a.text)
		if err != nil {
			return a.field, err
		}
		if currency != "" && c != currency {
			return a.field, extensions.Errorf(extensions.KindInvalid, "%s and %s are in different currencies", f.PerHour, f.PerCreation)
		}
		currency = c
	}
	if f.Share != "" {
		if _, err := ParseUnitPrice(f.Share); err != nil {
			return "share", err
		}
	}
	if f.Share+f.PerHour+f.PerCreation == "" {
		return "", extensions.Errorf(extensions.KindInvalid, `a fee needs share, per_hour or per_creation, as in share: "0.05"`)
	}
	return "", nil
}

// paysFee reports whether a fee applies: never at an own place.
func (in QuoteInput) paysFee() bool {
	f := in.Fee
	return f != nil && in.PricingModel != extensions.PricingSelfHosted && (in.BYOK && f.BYOK || !in.BYOK && f.Platform)
}

// addFee adds the platform's fee after all else, if one applies to this key.
func (p *pricing) addFee(in QuoteInput) error {
	if !in.paysFee() {
		return nil
	}
	f := in.Fee
	if _, err := f.Check(); err != nil {
		return extensions.Errorf(extensions.KindInvalid, "fee of %s: %w", in.Extension, err)
	}
	add := func(label, unit string, price UnitPrice) {
		p.Prices = append(p.Prices, SnapshotPrice{Component: ComponentFee + ":" + label, Unit: unit, Price: &price,
			Confidence: ConfidenceExact, Source: f.source()})
	}
	for _, a := range []struct{ label, unit, text string }{{"hourly", unitSandboxHour, f.PerHour}, {"creation", unitCreation, f.PerCreation}} {
		if a.text == "" {
			continue
		}
		price, currency, err := hourlyPrice(a.text)
		if err != nil {
			return err
		}
		if p.Currency == "" {
			p.Currency = currency
		}
		if p.Currency != currency {
			return notPriced("state the fee in the currency of the price book, or as a share",
				"the fee of %s is in %s and its price in %s", in.Extension, currency, p.Currency)
		}
		add(a.label, a.unit, price)
	}
	if f.Share != "" && p.Currency != "" {
		share, err := ParseUnitPrice(f.Share)
		if err != nil {
			return err
		}
		add("share", unitCharged, share)
	}
	if p.Memo {
		p.assume("your own key pays the vendor; the wallet pays the fee")
	}
	return nil
}

func (f *Fee) source() string {
	if f.Source == "" {
		return "the catalog's fee"
	}
	return f.Source
}
