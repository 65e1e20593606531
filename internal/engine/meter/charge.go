package meter

import (
	"fmt"
	"strconv"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// ChargeLine is one component of a settlement or a quote.
type ChargeLine struct {
	// Segment is the first segment the line covers, counted from 1; 0 is the
	// whole life (a creation fee, a surcharge). Segment and Component together
	// are unique in a settlement.
	Segment   int64  `json:"segment"`
	Component string `json:"component"`      // "vcpu", "gpu:H100", "surcharge:region"
	Mode      Mode   `json:"mode,omitempty"` // empty for the whole life
	// Quantity counts quanta of the unit (see QuantaPerUnit): with the
	// increment and the minimum where the price has them, less what is
	// included.
	Quantity  int64     `json:"quantity"`
	Unit      string    `json:"unit"`
	UnitPrice UnitPrice `json:"unit_price"` // for one whole unit
	Amount    Amount    `json:"amount"`
	Currency  Currency  `json:"currency,omitempty"`
	Memo      bool      `json:"memo"`
	// Confidence is that of the price. Under ConfidenceUnknown something is
	// charged but not known how much: UnitPrice and Amount are meaningless
	// and must not be shown as 0.
	Confidence Confidence `json:"confidence"`
	// Estimated: the quantity was not measured but bounded from above.
	Estimated bool `json:"estimated,omitempty"`
}

// Charge prices a life. It fails with KindInvalid on negative quantities, an
// unknown mode and overflow. What was not measured is bounded from above and
// marked Estimated; what has no known price or size is a line of
// ConfidenceUnknown. Without any segment there is still a creation fee.
//
// Billed time of a component is max(minimum, ceil to increment(running, and
// paused where that is priced)); what rounding adds counts at the sizes of the
// last billed segment.
func Charge(segments []Segment, snapshot PriceSnapshot) ([]ChargeLine, error) {
	return charge(segments, snapshot, halfUp)
}

// WorstCase is Charge with every line rounded up, as a quote's Reserve is.
func WorstCase(segments []Segment, snapshot PriceSnapshot) ([]ChargeLine, error) {
	return charge(segments, snapshot, ceiling)
}

func charge(segments []Segment, snapshot PriceSnapshot, r rounding) ([]ChargeLine, error) {
	if err := snapshot.check(); err != nil {
		return nil, err
	}
	var total int64
	for _, s := range segments {
		if err := s.check(); err != nil {
			return nil, err
		}
		var err error
		if total, err = add(total, s.Milliseconds); err != nil {
			return nil, err
		}
	}
	b := bill{snapshot: snapshot, segments: segments, rounding: r}
	if snapshot.Basis == BasisUnknown {
		b.lines = []ChargeLine{{Component: ComponentSandbox, Quantity: total, Unit: "sandbox-second",
			Currency: snapshot.Currency, Memo: snapshot.Memo, Confidence: ConfidenceUnknown}}
	}
	for _, p := range snapshot.Prices {
		if err := b.price(p); err != nil {
			return nil, err
		}
	}
	if err := b.unpricedGPU(); err != nil {
		return nil, err
	}
	if err := b.surcharges(); err != nil {
		return nil, err
	}
	return b.lines, nil
}

// Units is the quantity in whole units, as a decimal rounded to six places.
func (l ChargeLine) Units() string {
	u, ok := unitNamed(l.Unit)
	if !ok {
		return strconv.FormatInt(l.Quantity, 10)
	}
	const places = 6
	scaled, err := mulDiv(l.Quantity, 1_000_000, u.perUnit, halfUp)
	if err != nil { // more than 9 * 10^12 units: nobody needs the fraction
		return strconv.FormatInt(l.Quantity/u.perUnit, 10)
	}
	return formatDecimal(scaled, places, 0)
}

// Arithmetic writes the line as a person would work it out: "28800 vcpu-second
// x 0.000014 USD = 0.4032 USD".
func (l ChargeLine) Arithmetic() string {
	if l.Confidence == ConfidenceUnknown {
		return l.Units() + " " + l.Unit + " at a price that is not known"
	}
	amount := Money{Amount: l.Amount, Currency: l.Currency}
	switch l.Unit {
	case unitCreation:
		return "once " + amount.String()
	case unitCharged:
		return fmt.Sprintf("%s %s x %s = %s", Amount(l.Quantity), l.Currency, l.UnitPrice, amount)
	}
	return fmt.Sprintf("%s %s x %s %s = %s", l.Units(), l.Unit, l.UnitPrice, l.Currency, amount)
}

// Total adds up lines of one currency; known is false where one of them is
// not known, and the sum then is of the others.
func Total(lines []ChargeLine) (sum Amount, known bool, err error) {
	known = true
	var currency Currency
	for _, l := range lines {
		if l.Confidence == ConfidenceUnknown {
			known = false
			continue
		}
		if currency == "" {
			currency = l.Currency
		}
		if l.Currency != currency {
			return 0, false, extensions.Errorf(extensions.KindInvalid, "cannot add %s and %s", currency, l.Currency)
		}
		if sum, err = sum.Add(l.Amount); err != nil {
			return 0, false, err
		}
	}
	return sum, known, nil
}
