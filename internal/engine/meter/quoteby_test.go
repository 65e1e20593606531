package meter

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// What a life is settled with tells of any ttl what the book told of it then.
func TestASnapshotQuotesWhatItsBookQuoted(t *testing.T) {
	t.Parallel()
	for _, shape := range shapes {
		t.Run(shape, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				b := genBook(t, shape)
				in := QuoteInput{Extension: "ext.x", PricingModel: extensions.PricingMetered, BYOK: rapid.Bool().Draw(t, "own key"), Fee: genFee(t),
					Region: rapid.SampledFrom([]string{"", "eu", "us"}).Draw(t, "region"), Book: &b, Resources: asked(genSizes(t, true)), TTL: time.Hour}
				made, err := NewQuote(in)
				if err != nil {
					t.Fatal(err)
				}
				in.TTL = time.Duration(rapid.Int64Range(0, 40*24*3600*1000).Draw(t, "ttl")) * time.Millisecond
				want, err := NewQuote(in)
				if err != nil {
					t.Fatal(err)
				}
				kept, err := DecodePriceSnapshot(made.Snapshot.Encode())
				if err != nil {
					t.Fatal(err)
				}
				got, err := QuoteBy(kept, in.TTL, 0)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, got, cmpopts.IgnoreFields(Quote{}, "Assumptions", "Digest"), cmpopts.EquateEmpty()); d != "" {
					t.Fatalf("ttl %s (-book +snapshot)\n%s", in.TTL, d)
				}
			})
		})
	}
}

func TestASnapshotOfNothingKnownQuotesNothing(t *testing.T) {
	t.Parallel()
	made, err := NewQuote(QuoteInput{Extension: "ext.x", PricingModel: extensions.PricingSelfHosted, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	q, err := QuoteBy(made.Snapshot, 2*time.Hour, 0)
	if err != nil || q.Max != nil || q.Hourly != nil || len(q.Unknowns) != 1 || !q.Memo {
		t.Errorf("%+v, %v", q, err)
	}
	if _, err := QuoteBy(made.Snapshot, -time.Second, 0); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("a negative ttl: %v", err)
	}
}
