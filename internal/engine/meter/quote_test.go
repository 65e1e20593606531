package meter

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func quoted(t *testing.T, in QuoteInput) Quote {
	t.Helper()
	q, err := NewQuote(in)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func text(a *Amount) string {
	if a == nil {
		return "unknown"
	}
	return a.String()
}

func wantAmounts(t *testing.T, q Quote, want map[string]string) {
	t.Helper()
	for name, a := range map[string]*Amount{"hourly": q.Hourly, "per creation": q.PerCreation, "low": q.Low, "expected": q.Expected,
		"p95": q.P95, "max": q.Max, "reserve": q.Reserve} {
		if w, ok := want[name]; ok && text(a) != w {
			t.Errorf("%s is %s, want %s", name, text(a), w)
		}
	}
}

func saying(t *testing.T, what string, list []string, word string) {
	t.Helper()
	if !slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, word) }) {
		t.Errorf("no %s says %q: %q", what, word, list)
	}
}

func resources(cpu extensions.Milli, memory int64) extensions.Resources {
	return extensions.Resources{CPU: &cpu, MemoryMB: &memory}
}

// E2B's billing page: 8 vCPU and 4 GiB are 0.468 USD per hour.
func TestAQuoteMatchesAPublishedExample(t *testing.T) {
	t.Parallel()
	b := Book{ID: "prices.e2b", Extension: "ext.e2b", Version: "1", AsOf: "2026-08-22", Source: "e2b.dev", Currency: "USD",
		Confidence: ConfidenceExact,
		Billing:    extensions.BillingWallClock, Components: []BookPrice{
			{Component: ComponentVCPU, Unit: "vcpu-second", Price: "0.000014"},
			{Component: ComponentMemory, Unit: "gib-second", Price: "0.0000045"}}}
	q := quoted(t, QuoteInput{Extension: "ext.e2b", PricingModel: extensions.PricingMetered, Book: &b, Resources: resources(8000, 4096),
		TTL: 2 * time.Hour})
	wantAmounts(t, q, map[string]string{"hourly": "0.468", "per creation": "0.00", "low": "0.00", "expected": "0.936", "max": "0.936",
		"reserve": "0.936", "p95": "unknown"})
	if q.Memo || q.Basis != BasisBook || q.Confidence != ConfidenceExact || len(q.Lines) != 2 || q.Lines[0].Source != "e2b.dev" ||
		q.Lines[0].AsOf != "2026-08-22" {
		t.Errorf("got %+v", q)
	}
}

func TestMinimumIncrementAndFeesShowInTheRange(t *testing.T) {
	t.Parallel()
	b := readBook(t, bookYAML)
	in := QuoteInput{Extension: "ext.e2b", PricingModel: extensions.PricingMetered, Book: &b, Region: "eu", EgressBytes: new(int64),
		TTL:      time.Hour,
		Expected: 90*time.Second + time.Millisecond, History: &History{Median: time.Hour, P95: 5 * time.Hour, Count: 3}}
	q := quoted(t, in)
	// Half a vCPU, half a GiB, 10 GiB disk of which 1 GiB-month is included.
	// low: 0.0000006 + 60 s x 0.5 x 0.000014 = 0.0004206, and a quarter on it.
	wantAmounts(t, q, map[string]string{"per creation": "0.00000075", "low": "0.00052575"})
	// 91 s of CPU (rounded up), 90.001 s of memory: 0.0000006 + 0.000637 + 0.000202502(25) = 0.000840102.
	wantAmounts(t, q, map[string]string{"expected": "0.001050128"})
	if *q.P95 != *q.Max { // cut at the ttl
		t.Errorf("p95 %s, max %s", q.P95, q.Max)
	}
	saying(t, "assumption", q.Assumptions, "0.5 vCPU")
	saying(t, "assumption", q.Assumptions, "512 MiB")
	saying(t, "assumption", q.Assumptions, "free credit")
	if elsewhere := quoted(t, QuoteInput{Extension: "ext.e2b", Book: &b, Region: "us", EgressBytes: new(int64),
		TTL: time.Hour}); text(elsewhere.Low) != "0.0004206" {
		t.Errorf("outside the region there is no surcharge: low %s", text(elsewhere.Low))
	}
}

func TestWhatIsNotKnownIsNeverZero(t *testing.T) {
	t.Parallel()
	b := readBook(t, bookYAML)
	b.Defaults = BookDefaults{}
	gpu := resources(1000, 1024)
	gpu.GPU = &extensions.GPU{Model: "H100", Count: 1}
	flat := Book{ID: "prices.f", Extension: "ext.f", Version: "1", AsOf: "2026-08-22", Source: "s", Currency: "USD",
		Confidence: ConfidenceExact,
		Billing:    extensions.BillingWallClock, Components: []BookPrice{{Component: ComponentSandbox, Unit: "sandbox-hour", Price: "1"}}}
	for name, c := range map[string]struct {
		in   QuoteInput
		says string
	}{
		"no book":              {QuoteInput{PricingModel: extensions.PricingMetered, Extension: "ext.x"}, "no price book for ext.x"},
		"own, cost not stated": {QuoteInput{PricingModel: extensions.PricingSelfHosted, Extension: "ext.x"}, "per_hour"},
		"host without cost":    {QuoteInput{PricingModel: extensions.PricingSelfHosted, Host: &extensions.Host{Name: "one"}}, "host one"},
		"host without size": {QuoteInput{PricingModel: extensions.PricingSelfHosted,
			Host: &extensions.Host{Name: "one", Cost: &extensions.HostCost{PerHour: "1 USD"}}}, "capacity.max_sandboxes"},
		"share of the host": {QuoteInput{PricingModel: extensions.PricingSelfHosted,
			Host: &extensions.Host{Name: "one", Cost: &extensions.HostCost{PerHour: "1 USD", CPU: 4, MemoryMB: 4096}}}, "the amount of vcpu"},
		"no size":                 {QuoteInput{Book: &b, EgressBytes: new(int64)}, "the amount of vcpu"},
		"price of unknown model":  {QuoteInput{Book: &b, Resources: gpu, EgressBytes: new(int64)}, "the price of gpu:H100"},
		"gpu the book leaves out": {QuoteInput{Book: &flat, Resources: gpu}, "the price of gpu:H100"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.in.TTL = time.Hour
			q := quoted(t, c.in)
			wantAmounts(t, q, map[string]string{"hourly": "unknown", "expected": "unknown", "max": "unknown", "reserve": "unknown"})
			saying(t, "unknown", q.Unknowns, c.says)
			j, err := json.Marshal(q)
			if err != nil || !strings.Contains(string(j), `"max":null`) {
				t.Errorf("JSON %s, %v", j, err)
			}
			lines, err := Charge([]Segment{{Mode: ModeRunning, Milliseconds: 1000, Sizes: q.Sizes}}, q.Snapshot)
			if _, known, _ := Total(lines); err != nil || known {
				t.Errorf("it settles to a known sum: %+v, %v", lines, err)
			}
		})
	}
}

func TestUnforeseenTrafficIsToldBesideTheNumbers(t *testing.T) {
	t.Parallel()
	b := readBook(t, bookYAML)
	q := quoted(t, QuoteInput{Book: &b, Resources: resources(1000, 1024), TTL: time.Hour})
	if q.Max == nil {
		t.Error("the rest of the price is known")
	}
	saying(t, "unknown", q.Unknowns, "0.15 USD per egress-gb")
	two := int64(2_000_000_000)
	lines, err := Charge([]Segment{{Mode: ModeRunning, Milliseconds: 3_600_000, Sizes: q.Sizes, EgressBytes: &two}}, q.Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if total, known, _ := Total(lines); !known || total-*q.Max != 300_000_000 {
		t.Errorf("settled %s after a maximum of %s without traffic", total, q.Max)
	}
}

func TestActiveCPUIsBoundedByWhatIsAllocated(t *testing.T) {
	t.Parallel()
	b := Book{ID: "prices.v", Extension: "ext.v", Version: "1", AsOf: "2025-11-26", Source: "s", Currency: "USD", Confidence: ConfidenceExact,
		Billing: extensions.BillingActiveCPU, Components: []BookPrice{{Component: ComponentVCPU, Unit: "vcpu-hour", Price: "0.128"}}}
	in := QuoteInput{Book: &b, Resources: resources(4000, 8192), TTL: time.Hour}
	wantAmounts(t, quoted(t, in), map[string]string{"low": "0.00", "expected": "0.512", "max": "0.512"})
	in.ActivePermille = 250
	wantAmounts(t, quoted(t, in), map[string]string{"hourly": "0.128", "expected": "0.128", "max": "0.512"})
	lines, err := Charge([]Segment{{Mode: ModeRunning, Milliseconds: 3_600_000, Sizes: SizesOf(in.Resources)}}, quoted(t, in).Snapshot)
	if err != nil || !lines[0].Estimated || lines[0].Amount != 512_000_000 {
		t.Errorf("what was not measured is charged at the bound and marked: %+v, %v", lines, err)
	}
}

func TestWithoutATTLThereIsARateAndNoMaximum(t *testing.T) {
	t.Parallel()
	q := quoted(t, QuoteInput{Extension: "ext.x", PricingModel: extensions.PricingSelfHosted, PerHour: "0.10 USD"})
	wantAmounts(t, q, map[string]string{"hourly": "0.10", "expected": "unknown", "max": "unknown", "low": "0.00"})
	if !q.Memo || q.Basis != BasisPerHour || len(q.Lines) != 1 {
		t.Errorf("got %+v", q)
	}
	saying(t, "assumption", q.Assumptions, "no maximum")
}

func TestOwnKeysAndOwnPlacesAreMemoOnly(t *testing.T) {
	t.Parallel()
	b := readBook(t, bookYAML)
	for want, in := range map[bool]QuoteInput{
		true:  {Book: &b, BYOK: true, PricingModel: extensions.PricingMetered},
		false: {Book: &b, PricingModel: extensions.PricingMetered},
	} {
		q := quoted(t, in)
		lines, err := Charge([]Segment{{Mode: ModeRunning, Milliseconds: 1}}, q.Snapshot)
		if err != nil || q.Memo != want || slices.ContainsFunc(lines, func(l ChargeLine) bool { return l.Memo != want }) {
			t.Errorf("memo %v: %+v, %v", want, lines, err)
		}
	}
}

func TestOnAHostTheLargerOfReservedAndUsedCounts(t *testing.T) {
	t.Parallel()
	h := extensions.Host{Name: "one", Capacity: &extensions.HostCapacity{MaxSandboxes: 4},
		Cost: &extensions.HostCost{PerHour: "0.40 USD", CPU: 16, MemoryMB: 65536}}
	q := quoted(t, QuoteInput{PricingModel: extensions.PricingSelfHosted, Host: &h, TTL: time.Hour})
	wantAmounts(t, q, map[string]string{"max": "0.10"}) // a quarter, as nothing was asked for
	used := int64(8 * 3_600_000)
	seg := Segment{Mode: ModeRunning, Milliseconds: 3_600_000, CPUMillis: &used}
	lines, err := Charge([]Segment{seg}, q.Snapshot)
	if err != nil || lines[0].Component != ComponentVCPU || lines[0].Quantity != used*1000 {
		t.Errorf("8 vCPU used, 4 reserved: %+v, %v", lines, err)
	}
	*seg.CPUMillis = 5
	lines, err = Charge([]Segment{seg}, q.Snapshot)
	if err != nil || lines[0].Quantity != 4000*3_600_000 {
		t.Errorf("nearly idle: %+v, %v", lines, err)
	}
	perSlot := h
	perSlot.Cost = &extensions.HostCost{PerHour: "0.40 USD"}
	wantAmounts(t, quoted(t, QuoteInput{PricingModel: extensions.PricingSelfHosted, Host: &perSlot, TTL: time.Hour}),
		map[string]string{"max": "0.10"})
}

func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	bad := readBook(t, strings.Replace(bookYAML, "0.000014", "-1", 1))
	minus := int64(-1)
	dear := readBook(t, strings.Replace(bookYAML, `"0.000014"`, `"9000000"`, 1))
	for name, in := range map[string]QuoteInput{
		"bad book":      {Book: &bad},
		"negative ttl":  {TTL: -1},
		"negative size": {Resources: resources(-1, 1)},
		"egress":        {EgressBytes: &minus},
		"active share":  {ActivePermille: 1001},
		"per hour":      {PerHour: "-1 USD"},
		"host cost":     {Host: &extensions.Host{Cost: &extensions.HostCost{PerHour: "1"}}},
		"host size":     {Host: &extensions.Host{Cost: &extensions.HostCost{PerHour: "1 USD", CPU: -1}}},
		"overflow":      {Book: &dear, Resources: resources(math.MaxInt32, 1), TTL: 1000 * time.Hour},
		"overflow host": {Host: &extensions.Host{Cost: &extensions.HostCost{PerHour: "9000000000 USD", CPU: 1}}},
	} {
		if q, err := NewQuote(in); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s: %+v, %v", name, q, err)
		}
	}
}

func TestEqualInputsGiveEqualDigests(t *testing.T) {
	t.Parallel()
	b := readBook(t, bookYAML)
	in := QuoteInput{Book: &b, TTL: time.Hour}
	first := quoted(t, in).Digest
	if again := quoted(t, in).Digest; again != first || len(first) != 64 {
		t.Errorf("%s and %s", first, again)
	}
	c := readBook(t, strings.Replace(bookYAML, "0.0000001", "0.0000002", 1)) // shows in no amount, but settles otherwise
	if other := quoted(t, QuoteInput{Book: &c, TTL: time.Hour}).Digest; other == first {
		t.Error("another paused price has the same digest")
	}
}

func TestWhatIsContinuedOwesNothingTwice(t *testing.T) {
	t.Parallel()
	creation, vcpu := UnitPrice(1_000_000_000_000), UnitPrice(14_000_000)
	s := PriceSnapshot{Version: snapshotVersion, Basis: BasisBook, Currency: "USD", Confidence: ConfidenceExact, Prices: []SnapshotPrice{
		{Component: ComponentCreation, Unit: unitCreation, Price: &creation, Confidence: ConfidenceExact},
		{Component: ComponentVCPU, Unit: "vcpu-second", Price: &vcpu, Minimum: 60_000, Increment: 1000, Confidence: ConfidenceExact},
		{Component: "fee:creation", Unit: unitCreation, Price: &creation, Confidence: ConfidenceExact}}}
	before := s.Encode()
	got := s.Continued()
	if len(got.Prices) != 1 || got.Prices[0].Component != ComponentVCPU || got.Prices[0].Minimum != 0 || got.Prices[0].Increment != 1000 {
		t.Errorf("%+v", got.Prices)
	}
	if s.Encode() != before {
		t.Error("the first one's prices were changed")
	}
}

func TestSnapshotsThatCannotSettleAreRefused(t *testing.T) {
	t.Parallel()
	b := readBook(t, bookYAML)
	good := quoted(t, QuoteInput{Book: &b}).Snapshot.Encode()
	if _, err := DecodePriceSnapshot(good); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{`"v":1`, `"v":2`}, {`"v":1`, `"v":1,"x":1`}, {`"USD"`, `"usd"`}, {`"price-book"`, `"guess"`},
		{`"vcpu-second"`, `"gib-second"`},
		{`0.000014`, `-0.000014`}, {`"minimum_ms":60000`, `"minimum_ms":-1`}, {`"included":1`, `"included":9000000000000000000`},
		{`"component":"memory","unit":"gib-second"`, `"component":"vcpu","unit":"vcpu-hour"`}} {
		text := strings.Replace(good, c[0], c[1], 1)
		if text == good {
			t.Fatalf("%s is not in %s", c[0], good)
		}
		if _, err := DecodePriceSnapshot(text); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s: %v", c[1], err)
		}
	}
}

func TestChargeRefusesBadSegments(t *testing.T) {
	t.Parallel()
	b := readBook(t, bookYAML)
	s := quoted(t, QuoteInput{Book: &b}).Snapshot
	minus := int64(-1)
	for name, seg := range map[string]Segment{
		"mode":     {Milliseconds: 1},
		"time":     {Mode: ModeRunning, Milliseconds: -1},
		"size":     {Mode: ModeRunning, Sizes: Sizes{GPUs: -1}},
		"measure":  {Mode: ModeRunning, CPUMillis: &minus},
		"overflow": {Mode: ModeRunning, Milliseconds: math.MaxInt64, Sizes: Sizes{VCPUMilli: 2}},
	} {
		if lines, err := Charge([]Segment{seg}, s); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s: %+v, %v", name, lines, err)
		}
	}
	long := Segment{Mode: ModePaused, Milliseconds: math.MaxInt64}
	if _, err := Charge([]Segment{long, long}, s); err == nil {
		t.Error("a life longer than 64 bits of milliseconds was charged")
	}
}

func TestSizesTravelThroughALedger(t *testing.T) {
	t.Parallel()
	for _, s := range []Sizes{{}, {VCPUMilli: 1, MemoryMiB: 2, DiskMiB: 3, GPUs: 4, GPUModel: "H100"}, {GPUs: 1}} {
		if back := SizesFromMap(s.Map()); back != s {
			t.Errorf("%+v became %+v", s, back)
		}
	}
}
