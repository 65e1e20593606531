package meter

import (
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// rounding is that of the one division per charge line.
type rounding bool

const (
	halfUp  rounding = false // charges and quotes
	roundUp rounding = true  // reservations
)

// cost multiplies a quantity in quanta by a price per unit in 128 bits and rounds once to nano-units.
// Neither factor may be negative.
func cost(quantity int64, price UnitPrice, perUnit int64, r rounding) (Amount, error) {
	n, err := mulDiv(quantity, int64(price), perUnit*1000, r) // 1000 pico-units in a nano-unit
	return Amount(n), err
}

// mulDiv returns a*b/div, rounded. a and b are not negative, div is positive.
func mulDiv(a, b, div int64, r rounding) (int64, error) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	d := uint64(div)
	if hi >= d {
		return 0, overflow("multiplying %d and %d", a, b)
	}
	q, rem := bits.Div64(hi, lo, d)
	if r == roundUp && rem > 0 || r == halfUp && rem >= d-rem {
		q++
	}
	if q > math.MaxInt64 {
		return 0, overflow("multiplying %d and %d", a, b)
	}
	return int64(q), nil
}

// divide returns a*b/div rounded down, and the remainder.
func divide(a, b, div int64) (quotient, remainder int64, err error) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(div) {
		return 0, 0, overflow("multiplying %d and %d", a, b)
	}
	q, rem := bits.Div64(hi, lo, uint64(div))
	if q > math.MaxInt64 {
		return 0, 0, overflow("multiplying %d and %d", a, b)
	}
	return int64(q), int64(rem), nil
}

// mul multiplies two non-negative numbers.
func mul(a, b int64) (int64, error) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > math.MaxInt64 {
		return 0, overflow("multiplying %d and %d", a, b)
	}
	return int64(lo), nil
}

// add adds two non-negative numbers.
func add(a, b int64) (int64, error) {
	if a > math.MaxInt64-b {
		return 0, overflow("adding %d and %d", a, b)
	}
	return a + b, nil
}

// parseDecimal reads -?[0-9]+(\.[0-9]+)? exactly as a multiple of 10^-digits.
func parseDecimal(s string, digits int) (int64, error) {
	bad := func(why string) (int64, error) {
		return 0, extensions.Errorf(extensions.KindInvalid, "%q is not a decimal number: %s", extensions.Clean(s, 40), why).
			WithRemedy(`write digits with a point, as in "0.50"`)
	}
	rest, negative := strings.CutPrefix(s, "-")
	whole, fraction, point := strings.Cut(rest, ".")
	if whole == "" || point && fraction == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return bad("only digits and one point are allowed")
	}
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > digits {
		return bad("more than " + strconv.Itoa(digits) + " decimals cannot be kept exactly")
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", digits-len(fraction)), 10, 64)
	if err != nil {
		return bad("it is too large")
	}
	if negative {
		n = -n
	}
	return n, nil
}

// formatDecimal is the exact inverse, with at least atLeast decimals; without decimals it omits the point.
func formatDecimal(n int64, digits, atLeast int) string {
	u, sign := uint64(n), ""
	if n < 0 {
		u, sign = -u, "-"
	}
	s := strconv.FormatUint(u, 10)
	if pad := digits + 1 - len(s); pad > 0 {
		s = strings.Repeat("0", pad) + s
	}
	whole, fraction := s[:len(s)-digits], strings.TrimRight(s[len(s)-digits:], "0")
	if pad := atLeast - len(fraction); pad > 0 {
		fraction += strings.Repeat("0", pad)
	}
	if fraction == "" {
		return sign + whole
	}
	return sign + whole + "." + fraction
}
