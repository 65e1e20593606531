package meter

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func activeCPU(counts string) PriceSnapshot {
	price := UnitPrice(35_555_555)
	return PriceSnapshot{Version: snapshotVersion, Basis: BasisBook, Billing: extensions.BillingActiveCPU, Counts: counts, Currency: "USD",
		Prices: []SnapshotPrice{{Component: ComponentVCPU, Unit: "vcpu-second", Price: &price, Confidence: ConfidenceExact},
			{Component: ComponentEgress, Unit: "egress-gb", Price: &price, Confidence: ConfidenceExact}}}
}

// Whatever a place says, a life is charged at most what it was allocated, and
// exactly what was measured if that can be true.
func TestNoMeasureChargesMoreThanWasAllocated(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := activeCPU("")
		var segments []Segment
		var most int64 // ms x milli-vCPU
		for range rapid.IntRange(1, 5).Draw(t, "segments") {
			seg := Segment{Mode: rapid.SampledFrom([]Mode{ModeRunning, ModeRunning, ModePaused}).Draw(t, "mode"),
				Milliseconds: rapid.Int64Range(0, 1<<36).Draw(t, "ms"), Sizes: Sizes{VCPUMilli: rapid.Int64Range(1, 96_000).Draw(t, "vcpu")}}
			if seg.Mode == ModeRunning {
				most += seg.Milliseconds * seg.Sizes.VCPUMilli
			}
			segments = append(segments, seg)
		}
		none := int64(0)
		cpu := rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, most/milli+2), rapid.Just(most/milli)).Draw(t, "cpu")
		egress := rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, 1<<30)).Draw(t, "egress")
		able, refused := Measures{CPUMillis: &cpu, EgressBytes: &egress}.Believable(segments, s, Measures{})
		if believed := cpu >= 0 && cpu <= most/milli; believed != (able.CPUMillis != nil) {
			t.Fatalf("%d ms of at most %d/1000: %v", cpu, most, refused)
		}
		missing := 0
		for _, n := range []*int64{able.CPUMillis, able.EgressBytes} {
			if n == nil {
				missing++
			}
		}
		if missing != len(refused) {
			t.Fatalf("%d are left out, and told is %q", missing, refused)
		}
		if able.EgressBytes == nil {
			able.EgressBytes = &none
		}
		priced := func(m Measures) Amount {
			lines, err := Charge(m.Spread(segments), s)
			if err != nil {
				t.Fatal(err)
			}
			sum, known, err := Total(slices.DeleteFunc(lines, func(l ChargeLine) bool { return l.Component != ComponentVCPU }))
			if err != nil || !known {
				t.Fatalf("%v %v", known, err)
			}
			return sum
		}
		got, allocated := priced(able), priced(Measures{EgressBytes: &none})
		if able.CPUMillis == nil && got != allocated || got > allocated {
			t.Fatalf("%s for %v, allocated %s", got, able.CPUMillis, allocated)
		}
	})
}

func TestWhatCannotBeTrueIsNotBelieved(t *testing.T) {
	t.Parallel()
	hour := []Segment{{Mode: ModeRunning, Milliseconds: 3_600_000, Sizes: Sizes{VCPUMilli: 2000}}}
	unsized := []Segment{{Mode: ModeRunning, Milliseconds: 3_600_000}}
	paused := []Segment{{Mode: ModePaused, Milliseconds: 3_600_000, Sizes: Sizes{VCPUMilli: 2000}}}
	n := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		m, before Measures
		segments  []Segment
		counts    string
		refused   string // "" = believed
	}{
		"all of it":                    {m: Measures{CPUMillis: n(7_200_000)}},
		"nothing":                      {m: Measures{CPUMillis: n(0)}},
		"one millisecond too many":     {m: Measures{CPUMillis: n(7_200_001)}, refused: "at most 7200000 are possible"},
		"negative":                     {m: Measures{CPUMillis: n(-1)}, refused: "it is negative"},
		"as much as there are numbers": {m: Measures{CPUMillis: n(math.MaxInt64)}, refused: "are possible"},
		"less than before":             {m: Measures{CPUMillis: n(9)}, before: Measures{CPUMillis: n(10)}, refused: "10 were measured before"},
		"as before":                    {m: Measures{CPUMillis: n(10)}, before: Measures{CPUMillis: n(10)}},
		"after an impossible one":      {m: Measures{CPUMillis: n(10)}, before: Measures{CPUMillis: n(1 << 50)}},
		"while paused":                 {m: Measures{CPUMillis: n(1)}, segments: paused, refused: "at most 0 are possible"},
		"of an unknown size":           {m: Measures{CPUMillis: n(1 << 40)}, segments: unsized, refused: "are possible"},
		"of some unknown size":         {m: Measures{CPUMillis: n(64 * 3_600_000)}, segments: unsized},
		"a burst that counts":          {m: Measures{CPUMillis: n(7_200_001)}, counts: CountsLarger},
		"negative memory":              {m: Measures{MemoryMiBMillis: n(-1)}, refused: "memory of -1"},
		"all memory":                   {m: Measures{MemoryMiBMillis: n(math.MaxInt64)}, refused: "memory of"},
		"negative traffic":             {m: Measures{EgressBytes: n(-1)}, refused: "traffic of -1 bytes"},
		"an exabyte in an hour":        {m: Measures{EgressBytes: n(1e18)}, refused: "traffic of"},
		"less traffic than before":     {m: Measures{EgressBytes: n(1)}, before: Measures{EgressBytes: n(2)}, refused: "2 were measured before"},
	} {
		if c.segments == nil {
			c.segments = hour
		}
		able, refused := c.m.Believable(c.segments, activeCPU(c.counts), c.before)
		if c.refused == "" && (able != c.m || len(refused) > 0) || c.refused != "" && (able != Measures{} || len(refused) != 1 ||
			!strings.Contains(refused[0], c.refused)) {
			t.Errorf("%s: %+v, %q", name, able, refused)
		}
	}
}

// A place that expects what we do, or tells nothing, makes no difference, for any
// time and any shape.
func TestWhatAPlaceExpectsIsPricedAsOurs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := genBook(t, rapid.SampledFrom(shapes).Draw(t, "shape"))
		sizes := genSizes(t, false)
		ttl := time.Duration(rapid.Int64Range(1, 1<<50).Draw(t, "ttl"))
		expected := time.Duration(rapid.Int64Range(1, int64(ttl)).Draw(t, "expected"))
		q, err := NewQuote(QuoteInput{Extension: "ext.x", PricingModel: extensions.PricingMetered, Book: &b, Resources: asked(sizes), TTL: ttl,
			Expected: expected})
		if err != nil {
			t.Fatal(err)
		}
		got, err := q.Foretell(Duration(expected, nil, ttl), Measures{})
		if err != nil || got == nil || q.Expected == nil || *got != *q.Expected {
			t.Fatalf("%v, not %v: %v", got, q.Expected, err)
		}
	})
}
