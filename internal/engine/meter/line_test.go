package meter

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// A line holds all that a life is charged by, whatever the book: only what
// explains the prices is gone.
func TestALineOfPricesKeepsWhatALifeIsChargedBy(t *testing.T) {
	t.Parallel()
	for _, shape := range shapes {
		t.Run(shape, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				b := genBook(t, shape)
				made, err := NewQuote(QuoteInput{Extension: rapid.SampledFrom([]string{"ext.x", "a;b,c d%3B"}).Draw(t, "extension"),
					PricingModel: extensions.PricingMetered,
					BYOK:         rapid.Bool().Draw(t, "own key"), Fee: genFee(t), Region: "eu", Book: &b, Resources: asked(genSizes(t, true)), TTL: time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				want := made.Snapshot
				want.Prices = slices.Clone(want.Prices)
				if len(want.Prices) > 0 { // one of each kind of column
					paused := UnitPrice(3)
					want.Prices[0].Paused, want.Prices[0].Included, want.Prices[0].Confidence = &paused, 7, ConfidenceEstimated
				}
				want.Book, want.BookVersion, want.AsOf, want.Source, want.Region, want.Notes = "", "", "", "", "", nil
				for i := range want.Prices {
					want.Prices[i].Source = ""
				}
				line := want.Line()
				if strings.ContainsAny(line, " \"\n\\") {
					t.Fatalf("%q has to be escaped in a state", line)
				}
				got, err := ParseLine(line)
				if err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
					t.Fatalf("%s (-want +got)\n%s", line, d)
				}
			})
		})
	}
}

func TestALineThatCannotSettleIsRefused(t *testing.T) {
	t.Parallel()
	b := readBook(t, bookYAML)
	good := quoted(t, QuoteInput{Book: &b}).Snapshot.Line()
	if _, err := ParseLine(good); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{"1;", "2;"}, {"1;", "01;"}, {"USD", "usd"}, {"price-book", "guess"}, {"vcpu-second", "gib-second"},
		{"0.000014", "-0.000014"},
		{"0.000014", "0.0000140"}, {"60000", "-1"}, {"60000", "x"}, {";vcpu,", ";vcpu%zz,"}, {";vcpu,", ";;vcpu,"},
		{"0.000014", "0.000014,,,,,,,1"}} {
		line := strings.Replace(good, c[0], c[1], 1)
		if line == good {
			t.Fatalf("%s is not in %s", c[0], good)
		}
		if s, err := ParseLine(line); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s: %+v, %v", line, s, err)
		}
	}
	for _, line := range []string{"", "1", `{"v":1}`, "1;price-book;ext.x"} {
		if _, err := ParseLine(line); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%q: %v", line, err)
		}
	}
}
