package meter

import (
	"math/big"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func genPrice(t *rapid.T, label string) string {
	return UnitPrice(rapid.Int64Range(0, 50_000_000_000).Draw(t, label)).String()
}

func genMillis(t *rapid.T, label string) string {
	if n := rapid.Int64Range(0, 120_000).Draw(t, label); n > 0 {
		return strconv.FormatInt(n, 10) + "ms"
	}
	return ""
}

// genBook draws a valid book of the shape, with prices of regions and models.
func genBook(t *rapid.T, billing string) Book {
	b := Book{ID: "prices.x", Extension: "ext.x", Version: "1", AsOf: "2026-01-02", Source: "a test", Currency: "USD",
		Confidence: ConfidenceExact, Billing: billing}
	if billing != extensions.BillingFixed {
		b.Idle = rapid.SampledFrom([]string{"", extensions.IdleZero, extensions.IdleStorageOnly, extensions.IdleMetered}).Draw(t, "idle")
	}
	b.Counts = rapid.SampledFrom([]string{"", CountsReserved, CountsLarger}).Draw(t, "counts")
	for _, u := range units {
		if u.component == ComponentSurcharge || billing == extensions.BillingInvocation && timed(u.component) {
			continue
		}
		must := u.name == "creation" && billing == extensions.BillingInvocation || u.name == "vcpu-second" &&
			billing == extensions.BillingActiveCPU ||
			u.name == "sandbox-second" && (billing == extensions.BillingWallClock || billing == extensions.BillingFixed)
		taken := len(b.Components) > 0 && b.Components[len(b.Components)-1].Component == u.component
		if taken || !must && !rapid.Bool().Draw(t, u.name) {
			continue
		}
		for _, region := range genRegions(t, u.name) {
			models := []string{""}
			if u.component == ComponentGPU {
				models = []string{"", "H100"}
			}
			for _, model := range models {
				p := genBookPrice(t, billing, u)
				p.Region, p.Model = region, model
				b.Components = append(b.Components, p)
			}
		}
	}
	for _, label := range []string{"", "region", "night"} {
		if rapid.Bool().Draw(t, "surcharge "+label) {
			for _, region := range genRegions(t, "surcharge") {
				b.Components = append(b.Components, BookPrice{Component: ComponentSurcharge, Unit: "charged", Price: genPrice(t, "share"), Label: label,
					Region: region})
			}
		}
	}
	return b
}

// genRegions always prices what is in no region, so that nothing is unknown.
func genRegions(t *rapid.T, what string) []string {
	return rapid.SampledFrom([][]string{{""}, {""}, {"eu", ""}, {"", "*"}, {"*", "eu", ""}}).Draw(t, "regions of "+what)
}

func genBookPrice(t *rapid.T, billing string, u unit) BookPrice {
	p := BookPrice{Component: u.component, Unit: u.name, Price: genPrice(t, "price"),
		Included: rapid.SampledFrom([]int64{0, 0, 1, 40}).Draw(t, "included")}
	switch {
	case u.component == ComponentCreation:
		p.Included = 0
	case !timed(u.component), billing == extensions.BillingActiveCPU && u.component == ComponentVCPU:
	default:
		p.Minimum, p.Increment = genMillis(t, "minimum"), genMillis(t, "increment")
		if billing != extensions.BillingFixed && rapid.Bool().Draw(t, "own paused price") {
			p.PausedPrice = genPrice(t, "paused")
		}
	}
	return p
}

func genFee(t *rapid.T) *Fee {
	f := Fee{BYOK: true, Platform: true, Source: "a test"}
	money := func(label string) string { return Amount(rapid.Int64Range(0, 1e9).Draw(t, label)).String() + " USD" }
	for _, part := range rapid.SampledFrom([]string{"", "s", "h", "c", "sh", "shc"}).Draw(t, "fee") {
		switch part {
		case 's':
			f.Share = genPrice(t, "fee share")
		case 'h':
			f.PerHour = money("fee per hour")
		case 'c':
			f.PerCreation = money("fee per creation")
		}
	}
	if f.Share+f.PerHour+f.PerCreation == "" {
		return nil
	}
	return &f
}

func genSizes(t *rapid.T, gpu bool) Sizes {
	s := Sizes{VCPUMilli: rapid.Int64Range(1, 96_000).Draw(t, "cpu"), MemoryMiB: rapid.Int64Range(1, 1<<20).Draw(t, "memory"),
		DiskMiB: rapid.Int64Range(1, 1<<21).Draw(t, "disk")}
	if gpu && rapid.Bool().Draw(t, "gpu") {
		s.GPUs, s.GPUModel = rapid.Int64Range(1, 8).Draw(t, "gpus"), rapid.SampledFrom([]string{"", "H100", "T4"}).Draw(t, "model")
	}
	return s
}

func asked(s Sizes) extensions.Resources {
	cpu := extensions.Milli(s.VCPUMilli)
	r := extensions.Resources{CPU: &cpu, MemoryMB: &s.MemoryMiB, DiskMB: &s.DiskMiB}
	if s.GPUs > 0 {
		r.GPU = &extensions.GPU{Model: s.GPUModel, Count: s.GPUs}
	}
	return r
}

var shapes = []string{extensions.BillingWallClock, extensions.BillingActiveCPU, extensions.BillingInvocation, extensions.BillingFixed}

func TestQuoteSettlementAndOracleAgreeToTheNanoUnit(t *testing.T) {
	t.Parallel()
	for _, shape := range shapes {
		t.Run(shape, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { agree(t, shape) })
		})
	}
}

func agree(t *rapid.T, shape string) {
	b := genBook(t, shape)
	if err := b.Validate(); err != nil {
		t.Fatalf("the generator made a bad book: %v", err)
	}
	gpu := slices.ContainsFunc(b.Components, func(p BookPrice) bool { return p.Component == ComponentGPU })
	sizes := genSizes(t, gpu)
	const longest = 40 * 24 * 3600 * 1000
	duration := func(label string) time.Duration {
		return time.Duration(rapid.Int64Range(1, longest).Draw(t, label)) * time.Millisecond
	}
	ttl, median, p95 := duration("ttl"), duration("median"), duration("p95")
	egress := rapid.Int64Range(0, 1<<44).Draw(t, "egress")
	in := QuoteInput{Extension: "ext.x", PricingModel: extensions.PricingMetered, BYOK: rapid.Bool().Draw(t, "own key"), Fee: genFee(t),
		Region: rapid.SampledFrom([]string{"", "eu", "us"}).Draw(t, "region"), Book: &b, Resources: asked(sizes),
		TTL: ttl, History: &History{Median: median, P95: p95, Count: 7}, EgressBytes: &egress}
	q, err := NewQuote(in)
	if err != nil {
		t.Fatal(err)
	}
	// The receipt travels as text, to another machine.
	snapshot, err := DecodePriceSnapshot(q.Snapshot.Encode())
	if err != nil || snapshot.Encode() != q.Snapshot.Encode() {
		t.Fatalf("snapshot: %v", err)
	}
	o := oracle{book: b, region: in.Region, fee: in.Fee, sizes: sizes}
	for name, c := range map[string]struct {
		quoted *Amount
		at     time.Duration
		prices []BookPrice
	}{"expected": {q.Expected, min(median, ttl), b.Components}, "p95": {q.P95, min(p95, ttl), b.Components}, "max": {q.Max, ttl,
		dearest(b.Components)}} {
		o.book.Components = c.prices
		o.segments = []Segment{{Mode: ModeRunning, Milliseconds: c.at.Milliseconds(), Sizes: sizes, EgressBytes: &egress}}
		want, _ := o.total()
		if c.quoted == nil || big.NewInt(int64(*c.quoted)).Cmp(want) != 0 {
			t.Fatalf("%s: quoted %v, the oracle says %s nano-units", name, c.quoted, want)
		}
		got := settle(t, o.segments, snapshot)
		switch {
		case name == "max":
			checkReserve(t, q, o, in.BYOK)
			if got > *c.quoted {
				t.Fatalf("settled %s, above the maximum of %s", got, *c.quoted)
			}
		case got != *c.quoted:
			t.Fatalf("%s: quoted %s, settled %s", name, *c.quoted, got)
		}
	}
	o.book.Components = b.Components
	checkBound(t, q, genPauses(t, sizes, ttl, egress))
	o.segments = genLife(t, gpu)
	want, _ := o.total()
	if got := settle(t, o.segments, snapshot); big.NewInt(int64(got)).Cmp(want) != 0 {
		t.Fatalf("a life of %d segments: settled %d, the oracle says %s\n%+v", len(o.segments), got, want, o.segments)
	}
}

// checkReserve: what is set aside covers the worst case, by less than a
// nano-unit for each line and what a share adds to that; with the user's own
// key it is the fee that the wallet pays.
func checkReserve(t *rapid.T, q Quote, o oracle, byok bool) {
	t.Helper()
	all, fees := o.total()
	if *q.Reserve < *q.Max {
		t.Fatalf("reserve %s is below max %s", q.Reserve, q.Max)
	}
	if slack := int64(*q.Reserve - *q.Max); !slices.ContainsFunc(q.Worst, func(l QuoteLine) bool { return l.Unit == unitCharged }) &&
		slack > int64(len(q.Worst)) {
		t.Fatalf("reserve %s is %d nano-units above max", q.Reserve, slack)
	}
	fromWallet := all
	if byok {
		fromWallet = fees
	}
	if big.NewInt(int64(*q.Wallet)).Cmp(fromWallet) < 0 || !byok && *q.Wallet != *q.Reserve {
		t.Fatalf("%s of the reserve of %s is the wallet's, which pays %s nano-units", q.Wallet, q.Reserve, fromWallet)
	}
}

// dearest counts each price as paused all the time where that costs more.
func dearest(prices []BookPrice) []BookPrice {
	prices = slices.Clone(prices)
	for i, p := range prices {
		if p.PausedPrice != "" && rat(p.PausedPrice).Cmp(rat(p.Price)) > 0 {
			prices[i].Price = p.PausedPrice
		}
	}
	return prices
}

// genPauses divides at most the ttl into what runs and what is paused.
func genPauses(t *rapid.T, sizes Sizes, ttl time.Duration, egress int64) []Segment {
	segments := make([]Segment, rapid.IntRange(1, 5).Draw(t, "parts"))
	left := ttl.Milliseconds()
	for i := range segments {
		ms := rapid.OneOf(rapid.Just(left), rapid.Int64Range(0, left)).Draw(t, "part")
		segments[i] = Segment{Mode: rapid.SampledFrom([]Mode{ModeRunning, ModePaused}).Draw(t, "part's mode"), Milliseconds: ms, Sizes: sizes}
		left -= ms
	}
	segments[0].EgressBytes = &egress
	return segments
}

// checkBound: no life within the ttl costs more than its quote's maximum, and
// none more than what is set aside for it, whenever it is paused. What a pause
// divides is rounded twice.
func checkBound(t *rapid.T, q Quote, life []Segment) {
	t.Helper()
	lines, err := Charge(life, q.Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	all, known, err := Total(lines)
	wallet, werr := ofWallet(lines)
	if err != nil || werr != nil || !known || wallet == nil {
		t.Fatalf("a life of %+v is not known: %v, %v", life, err, werr)
	}
	slack := 2 * Amount(len(q.Worst))
	if all > *q.Max+slack || all > *q.Reserve+slack || *wallet > *q.Wallet+slack {
		t.Fatalf("costs %s, of it %s the wallet; the maximum is %s, the reserve %s, of it %s the wallet's: %+v", all, *wallet, *q.Max, *q.Reserve,
			*q.Wallet, life)
	}
}

// genLife is paused, resumed and resized, and measured now and then.
func genLife(t *rapid.T, gpu bool) []Segment {
	segments := make([]Segment, rapid.IntRange(1, 6).Draw(t, "segments"))
	for i := range segments {
		s := Segment{Mode: rapid.SampledFrom([]Mode{ModeRunning, ModeRunning, ModePaused}).Draw(t, "mode"),
			Milliseconds: rapid.Int64Range(0, 1<<31).Draw(t, "ms"), Sizes: genSizes(t, gpu)}
		measure := func(label string, most int64) *int64 {
			if !rapid.Bool().Draw(t, label) {
				return nil
			}
			n := rapid.Int64Range(0, most).Draw(t, label)
			return &n
		}
		s.CPUMillis, s.MemoryMiBMillis = measure("cpu used", 1<<36), measure("memory used", 1<<50)
		s.EgressBytes = measure("egress", 1<<40)
		segments[i] = s
	}
	none := int64(0)
	segments[0].EgressBytes = &none // so that traffic is never unknown
	return segments
}

func settle(t *rapid.T, segments []Segment, s PriceSnapshot) Amount {
	lines, err := Charge(segments, s)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, l := range lines {
		key := strconv.FormatInt(l.Segment, 10) + l.Component
		if seen[key] {
			t.Fatalf("two lines of segment and component %s", key)
		}
		seen[key] = true
		if l.Memo != (s.Memo && base(l.Component) != ComponentFee) {
			t.Fatalf("%s moves a wallet: %v", l.Component, !l.Memo)
		}
	}
	total, known, err := Total(lines)
	if err != nil || !known {
		t.Fatalf("total: known %v, %v in %+v", known, err, lines)
	}
	return total
}
