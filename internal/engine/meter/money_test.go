package meter

import (
	"encoding/json"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestMoneyReadsAndWritesExactDecimals(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"0.50 USD": "0.50 USD", "1 EUR": "1.00 EUR", "0.000000001 USD": "0.000000001 USD", "0.1000000000000 USD": "0.10 USD",
		"9223372036.854775807 USD": "9223372036.854775807 USD", "007.5 USD": "7.50 USD", "0 USD": "0.00 USD",
	} {
		m, err := ParseMoney(in)
		if err != nil || m.String() != want {
			t.Errorf("ParseMoney(%q) = %s, %v; want %s", in, m, err, want)
		}
	}
}

func TestMoneyRefusesWhatIsNotAnExactAmount(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"", "0.50", "0.50USD", "0.50  USD", "0.50 usd", "0.50 US", "0.50 USD ", "-0.50 USD", "-0 USD", "+1 USD",
		".5 USD",
		"5. USD", "1e3 USD", "1,5 USD", "0x1 USD", "NaN USD", "0.0000000001 USD", "9223372036.854775808 USD", "1 USD\n", "１ USD", "1.2.3 USD"} {
		if m, err := ParseMoney(in); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("ParseMoney(%q) = %s, %v; want invalid", in, m, err)
		}
	}
}

func TestUnitPriceRefusesNegativeAndTooFine(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"-0.1", "-0", "0.0000000000001", "9223372.036854775808"} {
		if p, err := ParseUnitPrice(in); err == nil {
			t.Errorf("ParseUnitPrice(%q) = %s, want an error", in, p)
		}
	}
}

func TestTextFormsAreInverse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := Amount(rapid.Int64().Draw(t, "amount"))
		back, err := ParseAmount(a.String())
		if a == math.MinInt64 { // its digits alone do not fit
			return
		}
		if err != nil || back != a {
			t.Fatalf("%d -> %s -> %d, %v", a, a, back, err)
		}
		exact, _ := new(big.Rat).SetString(a.String())
		if exact.Mul(exact, big.NewRat(1e9, 1)).Cmp(new(big.Rat).SetInt64(int64(a))) != 0 {
			t.Fatalf("%d is written %s", a, a)
		}
		p := UnitPrice(rapid.Int64Min(0).Draw(t, "price"))
		if back, err := ParseUnitPrice(p.String()); err != nil || back != p {
			t.Fatalf("%d -> %s -> %d, %v", p, p, back, err)
		}
		j, err := json.Marshal(a)
		if err != nil || string(j) != `"`+a.String()+`"` {
			t.Fatalf("JSON %s, %v", j, err)
		}
	})
}

func TestAddingAmountsTellsOverflow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		exact := new(big.Int).Add(big.NewInt(a), big.NewInt(b))
		sum, err := Amount(a).Add(Amount(b))
		if exact.IsInt64() != (err == nil) || err == nil && int64(sum) != exact.Int64() {
			t.Fatalf("%d + %d = %d, %v", a, b, sum, err)
		}
	})
}

func TestProductsRoundOnceAndTellOverflow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64Min(0).Draw(t, "a"), rapid.Int64Min(0).Draw(t, "b")
		div := rapid.Int64Min(1).Draw(t, "div")
		r := rounding(rapid.Bool().Draw(t, "ceiling"))
		exact := roundRat(new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(a), big.NewInt(b)), big.NewInt(div)), r)
		got, err := mulDiv(a, b, div, r)
		if exact.IsInt64() != (err == nil) || err == nil && got != exact.Int64() {
			t.Fatalf("%d * %d / %d = %d, %v; want %s", a, b, div, got, err, exact)
		}
	})
}

// roundRat rounds a number that is not negative.
func roundRat(x *big.Rat, r rounding) *big.Int {
	q, rem := new(big.Int).QuoRem(x.Num(), x.Denom(), new(big.Int))
	up := rem.Sign() > 0
	if r == halfUp {
		up = new(big.Int).Lsh(rem, 1).Cmp(x.Denom()) >= 0
	}
	if up {
		q.Add(q, big.NewInt(1))
	}
	return q
}

func TestShortAmountsForPeople(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in, up, half string
	}{
		{"0.00", "0.00", "0.00"},
		{"0.000000001", "0.000000001", "0.000000001"},
		{"0.138921724", "0.138922", "0.138922"},
		{"0.138921001", "0.138922", "0.138921"},
		{"1.999999999", "2.00", "2.00"},
		{"1234567.00", "1234570.00", "1234570.00"},
		{"1234561.00", "1234570.00", "1234560.00"},
		{"999999.50", "1000000.00", "1000000.00"},
		{"9223372036.854775807", "9223372036.854775807", "9223370000.00"}, // more is no Amount
	} {
		a, err := ParseAmount(c.in)
		if err != nil {
			t.Fatal(err)
		}
		if up, half := a.Short(true), a.Short(false); up != c.up || half != c.half {
			t.Errorf("%s: %s and %s, want %s and %s", c.in, up, half, c.up, c.half)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a := Amount(rapid.Int64Min(0).Draw(t, "amount"))
		up, err := ParseAmount(a.Short(true))
		if err != nil || up < a {
			t.Fatalf("%s is shown as at most %s, %v", a, up, err)
		}
	})
}
