package meter

import (
	"math"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Amount is money in nano-units (10^-9) of a currency kept beside it. Its text form is an exact decimal
// with at least two decimals: "0.50".
type Amount int64

// UnitPrice is a price per unit in pico-units (10^-12) of a currency. Its text form is an exact decimal:
// "0.000014".
type UnitPrice int64

// Currency is an ISO 4217 code: three upper-case letters.
type Currency string

// Money is an amount with its currency. Its text form is "0.50 USD".
type Money struct {
	Amount   Amount
	Currency Currency
}

const (
	amountDigits = 9
	priceDigits  = 12
)

// Check returns KindInvalid unless c is three upper-case letters.
func (c Currency) Check() error {
	if len(c) != 3 || strings.Trim(string(c), "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return extensions.Errorf(extensions.KindInvalid, "%q is not a currency: want three upper-case letters such as USD", string(c))
	}
	return nil
}

// ParseAmount reads a decimal of at most nine decimals. A minus sign is accepted, since corrections are
// negative. Anything else, and an overflow, is KindInvalid.
func ParseAmount(s string) (Amount, error) {
	n, err := parseDecimal(s, amountDigits)
	return Amount(n), err
}

// String formats exactly, with at least two decimals.
func (a Amount) String() string { return formatDecimal(int64(a), amountDigits, 2) }

// Short returns the amount with at most six significant digits, for people. It rounds up if up, as for a
// maximum; otherwise half up.
func (a Amount) Short(up bool) string {
	const digits = 1_000_000
	n, unit := int64(a), int64(1)
	for n/unit >= digits || n/unit <= -digits {
		unit *= 10
	}
	rest := n % unit
	n -= rest
	switch {
	case up && rest > 0, !up && rest >= unit-rest && rest > 0:
		if n > math.MaxInt64-unit {
			return a.String()
		}
		n += unit
	}
	return Amount(n).String()
}

// MarshalText implements encoding.TextMarshaler.
func (a Amount) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Amount) UnmarshalText(b []byte) (err error) {
	*a, err = ParseAmount(string(b))
	return err
}

// Add returns a+b, or KindInvalid if the sum overflows.
func (a Amount) Add(b Amount) (Amount, error) {
	sum := a + b
	if (a > 0 && b > 0 && sum <= 0) || (a < 0 && b < 0 && sum >= 0) {
		return 0, overflow("adding %s and %s", a, b)
	}
	return sum, nil
}

// ParseUnitPrice reads a decimal of at most twelve decimals. A negative price
// and an overflow are KindInvalid.
func ParseUnitPrice(s string) (UnitPrice, error) {
	n, err := parseDecimal(s, priceDigits)
	if err == nil && strings.HasPrefix(s, "-") {
		err = extensions.Errorf(extensions.KindInvalid, "the price %s is negative", s)
	}
	return UnitPrice(n), err
}

// String formats exactly, with at least two decimals.
func (p UnitPrice) String() string { return formatDecimal(int64(p), priceDigits, 2) }

// MarshalText implements encoding.TextMarshaler.
func (p UnitPrice) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *UnitPrice) UnmarshalText(b []byte) (err error) {
	*p, err = ParseUnitPrice(string(b))
	return err
}

// ParseMoney reads "0.50 USD": a non-negative decimal, one space, a currency. Anything else is
// KindInvalid.
func ParseMoney(s string) (Money, error) {
	number, code, ok := strings.Cut(s, " ")
	if !ok {
		return Money{}, extensions.Errorf(extensions.KindInvalid, "%q is not an amount of money: want a decimal and a currency", s).
			WithRemedy(`write it as in "0.50 USD"`)
	}
	if err := Currency(code).Check(); err != nil {
		return Money{}, err
	}
	a, err := ParseAmount(number)
	if err != nil {
		return Money{}, err
	}
	if a < 0 || strings.HasPrefix(number, "-") {
		return Money{}, extensions.Errorf(extensions.KindInvalid, "%q is negative", s).
			WithRemedy("give an amount of at least zero")
	}
	return Money{Amount: a, Currency: Currency(code)}, nil
}

// String formats as ParseMoney reads.
func (m Money) String() string { return m.Amount.String() + " " + string(m.Currency) }

// MarshalText implements encoding.TextMarshaler.
func (m Money) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *Money) UnmarshalText(b []byte) (err error) {
	*m, err = ParseMoney(string(b))
	return err
}
