package meter

import (
	"fmt"
	"strconv"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// ChargeLine is one component of a settlement or a quote.
type ChargeLine struct {
	// Segment is the first segment that the line covers, from 1; 0 is the whole life (a creation fee, a
	// surcharge). Segment and Component together are unique in a settlement.
	Segment   int64  `json:"segment"`
	Component string `json:"component"`      // "vcpu", "gpu:H100", "surcharge:region"
	Mode      Mode   `json:"mode,omitempty"` // empty for the whole life
	// Quantity counts quanta of the unit (see QuantaPerUnit), after increment, minimum and the included
	// amount.
	Quantity  int64     `json:"quantity"`
	Unit      string    `json:"unit"`
	UnitPrice UnitPrice `json:"unit_price"` // for one whole unit
	Amount    Amount    `json:"amount"`
	Currency  Currency  `json:"currency,omitempty"`
	Memo      bool      `json:"memo"`
	// Confidence is that of the price. ConfidenceUnknown means that something is charged, but not how much:
	// UnitPrice and Amount then have no meaning and must not be shown as 0.
	Confidence Confidence `json:"confidence"`
	// Estimated says that the quantity was not measured but bounded from above.
	Estimated bool `json:"estimated,omitempty"`
}

// Charge prices a life. KindInvalid: negative quantities, an unknown mode, or overflow. What was not
// measured is bounded from above and marked Estimated. What lacks a known price or size is a line of
// ConfidenceUnknown. Without segments there is still a creation fee.
//
// The billed time of a component is max(minimum, time rounded up to the increment), where time is running
// time, plus paused time if that is priced. What rounding adds counts at the sizes of the last billed
// segment.
func Charge(segments []Segment, snapshot PriceSnapshot) ([]ChargeLine, error) {
	return charge(segments, snapshot, halfUp)
}

// WorstCase is Charge with every line rounded up, as a quote's Reserve is.
func WorstCase(segments []Segment, snapshot PriceSnapshot) ([]ChargeLine, error) {
	return charge(segments, snapshot, roundUp)
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
	switch {
	case snapshot.Basis != BasisUnknown:
	case snapshot.Kept:
		if err := b.timed(SnapshotPrice{Component: ComponentSnapshot, Unit: unitKept}, ComponentSnapshot); err != nil {
			return nil, err
		}
	default:
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

// Units returns the quantity in whole units, as a decimal rounded to six places.
func (l ChargeLine) Units() string {
	u, ok := unitNamed(l.Unit)
	if !ok {
		return strconv.FormatInt(l.Quantity, 10)
	}
	const places = 6
	scaled, err := mulDiv(l.Quantity, 1_000_000, u.perUnit, halfUp)
	if err != nil { // more than 9 * 10^12 units: the fraction does not matter
		return strconv.FormatInt(l.Quantity/u.perUnit, 10)
	}
	return formatDecimal(scaled, places, 0)
}

// Arithmetic writes the line as a calculation: "28800 vcpu-second x 0.000014 USD = 0.4032 USD".
func (l ChargeLine) Arithmetic() string {
	if l.Confidence == ConfidenceUnknown {
		return l.Units() + " " + l.Unit + " at an unknown price"
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

// Total sums lines of one currency. If a line is unknown, known is false and the sum is that of the
// others.
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
