package meter

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func keptBook(price string) *Book {
	return &Book{ID: "prices.x", Extension: "ext.x", Version: "1", AsOf: "2026-11-20", Source: "https://x.test", Currency: "USD",
		Confidence: ConfidenceExact, Billing: extensions.BillingWallClock,
		Components: []BookPrice{{Component: ComponentVCPU, Unit: "vcpu-second", Price: "0.00001"},
			{Component: ComponentSnapshot, Unit: unitKept, Price: price}}}
}

// What keeping a snapshot costs is its size in whole MiB x its time x the price, rounded half up once.
func TestKeepingASnapshotCostsSizeTimesTimeTimesPrice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.Int64Range(1, mostKept).Draw(t, "bytes")
		ms := rapid.Int64Range(0, 10*365*24*hourMS).Draw(t, "ms")
		pico := rapid.Int64Range(0, 5_000_000_000_000).Draw(t, "price")
		book := keptBook(UnitPrice(pico).String())
		p, err := KeptPrices(QuoteInput{Extension: "ext.x", PricingModel: extensions.PricingMetered, Book: book}, bytes)
		if err != nil || p == nil {
			t.Fatal(p, err)
		}
		mib := (bytes + 1<<20 - 1) >> 20
		var cut []Segment // however it is cut into segments
		for left := ms; left > 0 || len(cut) == 0; {
			n := rapid.Int64Range(min(left, 1), left).Draw(t, "segment")
			cut, left = append(cut, Segment{Mode: ModeRunning, Milliseconds: n, Sizes: p.Sizes}), left-n
		}
		lines, err := Charge(cut, *p)
		if err != nil {
			t.Fatal(err)
		}
		// pico per unit x quanta / quanta per unit, in nano, half up
		want := new(big.Int).Mul(new(big.Int).Mul(big.NewInt(mib), big.NewInt(ms)), big.NewInt(pico))
		per := new(big.Int).Mul(big.NewInt(1024*730*3600*1000), big.NewInt(1000))
		want.Add(want, new(big.Int).Rsh(per, 1)).Quo(want, per)
		if len(lines) != 1 || lines[0].Component != ComponentSnapshot || lines[0].Confidence != ConfidenceExact ||
			lines[0].Quantity != mib*ms || lines[0].Amount != Amount(want.Int64()) {
			t.Fatalf("%d MiB for %d ms at %d: %+v, want %s", mib, ms, pico, lines, want)
		}
	})
}

func TestWhatKeepingASnapshotCostsIsNeverGuessed(t *testing.T) {
	t.Parallel()
	noPrice := keptBook("1")
	noPrice.Components = noPrice.Components[:1]
	for name, c := range map[string]struct {
		in    QuoteInput
		bytes int64
		known bool
		none  bool
	}{
		"a place of one's own": {QuoteInput{Extension: "ext.x", PricingModel: extensions.PricingSelfHosted}, 1, true, true},
		"a book with a price":  {QuoteInput{Extension: "ext.x", PricingModel: extensions.PricingMetered, Book: keptBook("1")}, 1, true, false},
		"a free one":           {QuoteInput{Extension: "ext.x", PricingModel: extensions.PricingMetered, Book: keptBook("0")}, 0, true, false},
		"a book without one":   {QuoteInput{Extension: "ext.x", PricingModel: extensions.PricingMetered, Book: noPrice}, 1, false, false},
		"no book":              {QuoteInput{Extension: "ext.x", PricingModel: extensions.PricingMetered}, 1, false, false},
		"an unknown size":      {QuoteInput{Extension: "ext.x", PricingModel: extensions.PricingMetered, Book: keptBook("1")}, 0, false, false},
		"an unbelievable size": {QuoteInput{Extension: "ext.x", PricingModel: extensions.PricingMetered, Book: keptBook("1")}, 1 << 62, false, false},
		"a negative size":      {QuoteInput{Extension: "ext.x", PricingModel: extensions.PricingMetered, Book: keptBook("1")}, -1, false, false},
	} {
		p, err := KeptPrices(c.in, c.bytes)
		if err != nil || (p == nil) != c.none {
			t.Errorf("%s: %+v, %v", name, p, err)
			continue
		}
		if p == nil {
			continue
		}
		segments := []Segment{{Mode: ModeRunning, Milliseconds: hourMS, Sizes: p.Sizes}}
		lines, err := Charge(segments, *p)
		if err != nil || len(lines) != 1 || lines[0].Component != ComponentSnapshot || (lines[0].Confidence != ConfidenceUnknown) != c.known {
			t.Errorf("%s: %+v, %v", name, lines, err)
		}
	}
	shared := QuoteInput{Extension: "ext.x", PricingModel: extensions.PricingMetered, Book: keptBook("10"), BYOK: true,
		Fee: &Fee{Share: "0.05", PerHour: "1 USD", PerCreation: "1 USD", BYOK: true}}
	p, err := KeptPrices(shared, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := Charge([]Segment{{Mode: ModeRunning, Milliseconds: monthMS, Sizes: p.Sizes}}, *p)
	if err != nil || len(lines) != 2 || !lines[0].Memo || lines[0].Amount != 10_000_000_000 ||
		lines[1].Memo || lines[1].Amount != 500_000_000 {
		t.Errorf("with the platform's share: %+v, %v", lines, err)
	}
}

// A sandbox never pays for what is kept of it.
func TestASandboxIsNotChargedForSnapshots(t *testing.T) {
	t.Parallel()
	q, err := NewQuote(QuoteInput{Extension: "ext.x", PricingModel: extensions.PricingMetered, Book: keptBook("10"), TTL: 3600e9})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range q.Snapshot.Prices {
		if p.Component == ComponentSnapshot {
			t.Errorf("its prices have %+v", p)
		}
	}
}
