package meter

import (
	"errors"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestWhatCannotBePricedIsToldFromWhatIsMalformed(t *testing.T) {
	t.Parallel()
	metered := func(book *Book, perHour string, fee *Fee, ttl time.Duration) QuoteInput {
		return QuoteInput{Extension: "ext.f", PricingModel: extensions.PricingMetered, Book: book, PerHour: perHour, Fee: fee, TTL: ttl}
	}
	dear, broken := flatBook(), flatBook()
	dear.Components[1].Price, broken.Components[1].Price = "9000000", "-1"
	for name, c := range map[string]struct {
		in     QuoteInput
		beyond bool
	}{
		"a product that does not fit": {metered(dear, "", nil, 2000*time.Hour), true},
		"a price that does not fit":   {metered(nil, "9300000 USD", nil, time.Hour), true},
		"a fee in another currency":   {metered(flatBook(), "", &Fee{PerHour: "1 EUR", Platform: true}, time.Hour), true},
		"a negative price":            {metered(broken, "", nil, time.Hour), false},
		"no amount":                   {metered(nil, "much", nil, time.Hour), false},
		"a fee of nothing":            {metered(flatBook(), "", &Fee{Platform: true}, time.Hour), false},
	} {
		_, err := NewQuote(c.in)
		var beyond *NotPriced
		if errors.As(err, &beyond) != c.beyond || !extensions.IsKind(err, extensions.KindInvalid) || c.beyond && extensions.RemedyOf(err) == "" {
			t.Errorf("%s: %v (%s)", name, err, extensions.RemedyOf(err))
		}
	}
}
