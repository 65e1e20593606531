package meter

import (
	"math/big"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// The oracle reads the book's text with math/big alone: floors, ceilings and
// prices as a person would compute them from the file, in whole units.

func rat(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic("not a number: " + s)
	}
	return r
}

// unitSize is how much of seconds, vCPU-seconds, GiB-seconds or bytes a unit is.
var unitSize = map[string]*big.Rat{
	"creation": rat("1"), "sandbox-second": rat("1"), "sandbox-hour": rat("3600"), "vcpu-second": rat("1"), "vcpu-hour": rat("3600"),
	"gib-second": rat("1"), "gib-hour": rat("3600"), "disk-gib-second": rat("1"), "disk-gib-hour": rat("3600"), "disk-gib-month": rat("2628000"),
	"gpu-second": rat("1"), "gpu-hour": rat("3600"), "egress-gib": rat("1073741824"), "egress-gb": rat("1000000000"),
}

func amountOf(units *big.Rat, price string) *big.Int {
	return roundRat(new(big.Rat).Mul(units, new(big.Rat).Mul(rat(price), rat("1000000000"))), halfUp)
}

// oracleLife is one sandbox of constant size.
type oracleLife struct {
	runningMS, pausedMS int64
	activeCPUMS         int64
	egress              int64
	sizes               Sizes
}

func (l oracleLife) size(component string) *big.Rat {
	switch component {
	case ComponentVCPU:
		return big.NewRat(l.sizes.VCPUMilli, 1000)
	case ComponentMemory:
		return big.NewRat(l.sizes.MemoryMiB, 1024)
	case ComponentDisk:
		return big.NewRat(l.sizes.DiskMiB, 1024)
	case ComponentGPU:
		return big.NewRat(l.sizes.GPUs, 1)
	}
	return rat("1")
}

func oracleTotal(b Book, region string, l oracleLife) *big.Int {
	total := new(big.Int)
	for _, p := range b.Components {
		if p.Region == "" || p.Region == region {
			total.Add(total, oracleComponent(b, p, l))
		}
	}
	charged := new(big.Rat).SetFrac(total, big.NewInt(1))
	for _, p := range b.Components {
		if p.Component == ComponentSurcharge && (p.Region == "" || p.Region == region) {
			total = new(big.Int).Add(total, roundRat(new(big.Rat).Mul(charged, rat(p.Price)), halfUp))
		}
	}
	return total
}

func oracleComponent(b Book, p BookPrice, l oracleLife) *big.Int {
	switch p.Component {
	case ComponentSurcharge:
		return new(big.Int)
	case ComponentCreation:
		return amountOf(rat("1"), p.Price)
	case ComponentEgress:
		return amountOf(oracleLess(new(big.Rat).Quo(big.NewRat(l.egress, 1), unitSize[p.Unit]), p.Included), p.Price)
	case ComponentGPU:
		if p.Model != l.sizes.GPUModel || l.sizes.GPUs == 0 {
			return new(big.Int)
		}
	}
	pausedPrice := p.PausedPrice
	computing := b.Billing == extensions.BillingActiveCPU && p.Component == ComponentVCPU
	if pausedPrice == "" && !computing && (b.Billing == extensions.BillingFixed || b.Idle == extensions.IdleMetered ||
		b.Idle == extensions.IdleStorageOnly && p.Component == ComponentDisk) {
		pausedPrice = p.Price
	}
	running, paused := big.NewRat(l.runningMS, 1000), big.NewRat(l.pausedMS, 1000)
	if pausedPrice == "" {
		paused = new(big.Rat)
	}
	billed := new(big.Rat).Add(running, paused)
	want := new(big.Rat).Set(billed)
	if p.Increment != "" {
		step := oracleSeconds(p.Increment)
		n := roundRat(new(big.Rat).Quo(billed, step), ceiling)
		want.Mul(step, new(big.Rat).SetInt(n))
	}
	if p.Minimum != "" && want.Cmp(oracleSeconds(p.Minimum)) < 0 {
		want = oracleSeconds(p.Minimum)
	}
	extra := new(big.Rat).Sub(want, billed)
	if l.pausedMS > 0 && pausedPrice != "" {
		paused.Add(paused, extra)
	} else {
		running.Add(running, extra)
	}
	units := func(seconds *big.Rat) *big.Rat {
		u := new(big.Rat).Mul(seconds, l.size(p.Component))
		return u.Quo(u, unitSize[p.Unit])
	}
	runningUnits, pausedUnits := units(running), units(paused)
	if computing {
		runningUnits = new(big.Rat).Quo(big.NewRat(l.activeCPUMS, 1000), unitSize[p.Unit])
	}
	free := new(big.Rat).SetInt64(p.Included)
	if runningUnits.Cmp(free) >= 0 {
		runningUnits.Sub(runningUnits, free)
		free = new(big.Rat)
	} else {
		free.Sub(free, runningUnits)
		runningUnits = new(big.Rat)
	}
	if pausedUnits.Cmp(free) >= 0 {
		pausedUnits.Sub(pausedUnits, free)
	} else {
		pausedUnits = new(big.Rat)
	}
	sum := amountOf(runningUnits, p.Price)
	if pausedPrice != "" {
		sum.Add(sum, amountOf(pausedUnits, pausedPrice))
	}
	return sum
}

func oracleLess(units *big.Rat, included int64) *big.Rat {
	rest := new(big.Rat).Sub(units, new(big.Rat).SetInt64(included))
	if rest.Sign() < 0 {
		return new(big.Rat)
	}
	return rest
}

func oracleSeconds(d string) *big.Rat {
	v, err := time.ParseDuration(d)
	if err != nil {
		panic(err)
	}
	return big.NewRat(int64(v), int64(time.Second))
}

func genPrice(t *rapid.T, label string) string {
	return UnitPrice(rapid.Int64Range(0, 50_000_000_000).Draw(t, label)).String()
}

func genMillis(t *rapid.T, label string) string {
	if n := rapid.Int64Range(0, 120_000).Draw(t, label); n > 0 {
		return strconv.FormatInt(n, 10) + "ms"
	}
	return ""
}

// genBook draws a valid book of the shape.
func genBook(t *rapid.T, billing string) Book {
	b := Book{ID: "prices.x", Extension: "ext.x", Version: "1", AsOf: "2026-01-02", Source: "a test", Currency: "USD", Confidence: ConfidenceExact, Billing: billing}
	if billing != extensions.BillingFixed {
		b.Idle = rapid.SampledFrom([]string{"", extensions.IdleZero, extensions.IdleStorageOnly, extensions.IdleMetered}).Draw(t, "idle")
	}
	for _, u := range units {
		if u.component == ComponentSurcharge || !timed(u.component) && billing == extensions.BillingFixed && u.component != ComponentCreation {
			continue
		}
		if billing == extensions.BillingInvocation && timed(u.component) {
			continue
		}
		must := u.name == "creation" && billing == extensions.BillingInvocation || u.name == "vcpu-second" && billing == extensions.BillingActiveCPU ||
			u.name == "sandbox-second" && (billing == extensions.BillingWallClock || billing == extensions.BillingFixed)
		taken := len(b.Components) > 0 && b.Components[len(b.Components)-1].Component == u.component
		if taken || !must && !rapid.Bool().Draw(t, u.name) {
			continue
		}
		p := BookPrice{Component: u.component, Unit: u.name, Price: genPrice(t, "price"), Included: rapid.SampledFrom([]int64{0, 0, 1, 40}).Draw(t, "included")}
		if u.component == ComponentCreation {
			p.Included = 0
		}
		if timed(u.component) && !(billing == extensions.BillingActiveCPU && u.component == ComponentVCPU) {
			p.Minimum, p.Increment = genMillis(t, "minimum"), genMillis(t, "increment")
		}
		if timed(u.component) && billing != extensions.BillingFixed && rapid.Bool().Draw(t, "own paused price") && !(billing == extensions.BillingActiveCPU && u.component == ComponentVCPU) {
			p.PausedPrice = genPrice(t, "paused")
		}
		if u.component == ComponentGPU {
			p.Model = "H100"
		}
		b.Components = append(b.Components, p)
	}
	for _, label := range []string{"region", "fee"} {
		if rapid.Bool().Draw(t, label) {
			b.Components = append(b.Components, BookPrice{Component: ComponentSurcharge, Unit: "charged", Price: genPrice(t, "share"), Label: label,
				Region: map[string]string{"region": "eu"}[label]})
		}
	}
	return b
}

func genResources(t *rapid.T) extensions.Resources {
	cpu := extensions.Milli(rapid.Int64Range(1, 96_000).Draw(t, "cpu"))
	memory, disk := rapid.Int64Range(1, 1<<20).Draw(t, "memory"), rapid.Int64Range(1, 1<<21).Draw(t, "disk")
	r := extensions.Resources{CPU: &cpu, MemoryMB: &memory, DiskMB: &disk}
	if rapid.Bool().Draw(t, "gpu") {
		r.GPU = &extensions.GPU{Model: "H100", Count: rapid.Int64Range(1, 8).Draw(t, "gpus")}
	}
	return r
}

func gpuPriced(b Book) bool {
	for _, p := range b.Components {
		if p.Component == ComponentGPU {
			return true
		}
	}
	return false
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
	res := genResources(t)
	if !gpuPriced(b) {
		res.GPU = nil
	}
	ms := rapid.Int64Range(1, 40*24*3600*1000).Draw(t, "ms")
	egress := rapid.Int64Range(0, 1<<44).Draw(t, "egress")
	region := rapid.SampledFrom([]string{"", "eu", "us"}).Draw(t, "region")
	q, err := NewQuote(QuoteInput{Extension: "ext.x", PricingModel: extensions.PricingMetered, Region: region, Book: &b, Resources: res,
		TTL: time.Duration(ms) * time.Millisecond, EgressBytes: &egress})
	if err != nil {
		t.Fatal(err)
	}
	// The receipt travels as text, to another machine.
	snapshot, err := DecodePriceSnapshot(q.Snapshot.Encode())
	if err != nil || snapshot.Encode() != q.Snapshot.Encode() {
		t.Fatalf("snapshot: %v", err)
	}
	sizes := SizesOf(res)
	bound := new(big.Int).Mul(big.NewInt(sizes.VCPUMilli), big.NewInt(ms))
	active := new(big.Int).Div(bound, big.NewInt(1000)).Int64()
	seg := Segment{Mode: ModeRunning, Milliseconds: ms, Sizes: sizes, EgressBytes: &egress}
	if got := settle(t, []Segment{seg}, snapshot); q.Max == nil || q.Expected == nil || got != *q.Max || got != *q.Expected {
		t.Fatalf("settled %s, quoted %v and at most %v", got, q.Expected, q.Max)
	}
	if *q.Reserve < *q.Max {
		t.Fatalf("reserve %s is below max %s", q.Reserve, q.Max)
	}
	seg.CPUMillis = &active
	life := oracleLife{runningMS: ms, activeCPUMS: active, egress: egress, sizes: sizes}
	if got, want := settle(t, []Segment{seg}, snapshot), oracleTotal(b, region, life); big.NewInt(int64(got)).Cmp(want) != 0 {
		t.Fatalf("settled %d, the oracle says %s", got, want)
	}
	// Any way to cut the running time gives the same sum, and pausing counts as the oracle says.
	cut := rapid.Int64Range(0, ms).Draw(t, "cut")
	life.pausedMS = rapid.Int64Range(1, 1<<31).Draw(t, "paused")
	half := active / 2
	rest := active - half
	parts := []Segment{
		{Mode: ModeRunning, Milliseconds: cut, Sizes: sizes, CPUMillis: &half},
		{Mode: ModeRunning, Milliseconds: ms - cut, Sizes: sizes, CPUMillis: &rest, EgressBytes: &egress},
		{Mode: ModePaused, Milliseconds: life.pausedMS, Sizes: sizes, CPUMillis: new(int64)},
	}
	want := oracleTotal(b, region, life)
	if got := settle(t, parts, snapshot); big.NewInt(int64(got)).Cmp(want) != 0 {
		t.Fatalf("paused: settled %d, the oracle says %s", got, want)
	}
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
	}
	total, known, err := Total(lines)
	if err != nil || !known {
		t.Fatalf("total: known %v, %v in %+v", known, err, lines)
	}
	return total
}
