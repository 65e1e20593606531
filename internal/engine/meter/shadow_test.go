package meter

import (
	"math"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestAShadowPriceGrowsWithTheSize(t *testing.T) {
	t.Parallel()
	s, err := ParseShadowPrice("0.03 USD", "0.004 USD")
	if err != nil {
		t.Fatal(err)
	}
	for want, sizes := range map[string]Sizes{
		"0.034 USD": {}, "0.064 USD": {VCPUMilli: 2000}, "0.017 USD": {VCPUMilli: 500, MemoryMiB: 512}, "0.046 USD": {MemoryMiB: 4096},
	} {
		if got, err := s.Hourly(sizes); err != nil || got.String() != want {
			t.Errorf("%+v: %s, %v; want %s", sizes, got, err, want)
		}
	}
	if _, err := (ShadowPrice{VCPUHour: math.MaxInt64, Currency: "USD"}).Hourly(Sizes{VCPUMilli: math.MaxInt64}); !extensions.IsKind(err,
		extensions.KindInvalid) {
		t.Errorf("overflow: %v", err)
	}
}

func TestAShadowPriceIsTwoAmountsOfOneCurrency(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{{"0.03", "0.004 USD"}, {"0.03 USD", ""}, {"0.03 USD", "0.004 EUR"}, {"-0.03 USD", "0.004 USD"},
		{"99999999999 USD", "0 USD"}} {
		if s, err := ParseShadowPrice(c[0], c[1]); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%q: %+v, %v", c, s, err)
		}
	}
}
