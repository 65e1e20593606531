package meter

import (
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// What comes with the vCPUs is charged, more if more is asked for.
func TestMemoryThatComesWithTheCPUIsCounted(t *testing.T) {
	t.Parallel()
	b := Book{ID: "prices.x", Extension: "ext.x", Version: "1", AsOf: "2026-08-22", Source: "s", Currency: "USD", Confidence: ConfidenceExact,
		Billing: extensions.BillingWallClock, MemoryMBPerCPU: 2048, Defaults: BookDefaults{CPU: "3"},
		Components: []BookPrice{{Component: ComponentMemory, Unit: "gib-hour", Price: "1"}}}
	for _, c := range []struct {
		asked  extensions.Resources
		hourly string
		says   string
	}{
		{resources(2000, 512), "4.00", "4096 MiB of memory come with 2 vCPU and are charged, according to prices.x"},
		{resources(2000, 8192), "8.00", ""},
		{resources(2500, 1), "5.00", "5120 MiB of memory come with 2.5 vCPU"},
		{extensions.Resources{}, "6.00", "6144 MiB of memory come with 3 vCPU"},
	} {
		q := quoted(t, QuoteInput{Extension: "ext.x", PricingModel: extensions.PricingMetered, Book: &b, Resources: c.asked, TTL: time.Hour})
		wantAmounts(t, q, map[string]string{"hourly": c.hourly, "max": c.hourly})
		if c.says != "" {
			saying(t, "assumption", q.Assumptions, c.says)
		} else if len(q.Assumptions) > 1 { // that it runs for its whole ttl
			t.Errorf("assumes %q", q.Assumptions)
		}
		settled, err := Charge([]Segment{{Mode: ModeRunning, Milliseconds: 3_600_000, Sizes: q.Sizes}}, q.Snapshot)
		if err != nil || settled[0].Amount != *q.Max {
			t.Errorf("settled %v, %v", settled, err)
		}
	}
	memory := int64(4096)
	b.Defaults = BookDefaults{}
	q := quoted(t, QuoteInput{Extension: "ext.x", PricingModel: extensions.PricingMetered, Book: &b,
		Resources: extensions.Resources{MemoryMB: &memory}, TTL: time.Hour})
	wantAmounts(t, q, map[string]string{"hourly": "unknown", "max": "unknown"})
}

// Each line of what is set aside is rounded up, and none of what is charged.
func TestTheReserveIsRoundedUp(t *testing.T) {
	t.Parallel()
	b := Book{ID: "prices.x", Extension: "ext.x", Version: "1", AsOf: "2026-08-22", Source: "s", Currency: "USD", Confidence: ConfidenceExact,
		Billing: extensions.BillingWallClock, Components: []BookPrice{
			{Component: ComponentVCPU, Unit: "vcpu-second", Price: "0.0000000012"},
			{Component: ComponentMemory, Unit: "gib-second", Price: "0.0000000012"}}}
	q := quoted(t, QuoteInput{Extension: "ext.x", PricingModel: extensions.PricingMetered, Book: &b, Resources: resources(1000, 1024),
		TTL: time.Second})
	wantAmounts(t, q, map[string]string{"max": "0.000000002", "reserve": "0.000000004"})
}

// The rate of an hour is what an hour costs once the free part is used up.
func TestAnHourIsToldWithoutItsFreePart(t *testing.T) {
	t.Parallel()
	b := Book{ID: "prices.x", Extension: "ext.x", Version: "1", AsOf: "2026-08-22", Source: "s", Currency: "USD", Confidence: ConfidenceExact,
		Billing: extensions.BillingWallClock, Components: []BookPrice{{Component: ComponentSandbox, Unit: "sandbox-hour", Price: "1",
			Minimum: "90m", Increment: "2h", Included: 3}}}
	q := quoted(t, QuoteInput{Extension: "ext.x", PricingModel: extensions.PricingMetered, Book: &b, TTL: 5 * time.Hour})
	wantAmounts(t, q, map[string]string{"hourly": "1.00", "low": "0.00", "max": "3.00"})
}

// What was only ever paused, free of charge, owes its minimum all the same.
func TestAMinimumIsOwedByWhatNeverRan(t *testing.T) {
	t.Parallel()
	b := Book{ID: "prices.x", Extension: "ext.x", Version: "1", AsOf: "2026-08-22", Source: "s", Currency: "USD", Confidence: ConfidenceExact,
		Billing: extensions.BillingWallClock, Components: []BookPrice{{Component: ComponentVCPU, Unit: "vcpu-second", Price: "0.01",
			Minimum: "1m"}}}
	q := quoted(t, QuoteInput{Extension: "ext.x", PricingModel: extensions.PricingMetered, Book: &b, Resources: resources(2000, 0),
		TTL: time.Hour})
	for name, segments := range map[string][]Segment{"paused": {{Mode: ModePaused, Milliseconds: 60_000, Sizes: q.Sizes}}, "nothing": nil} {
		lines, err := Charge(segments, q.Snapshot)
		if err != nil || len(lines) != 1 || lines[0].Amount.String() != "1.20" {
			t.Errorf("%s: %+v, %v", name, lines, err)
		}
	}
}

// A pause that costs more than running is in the maximum and in what is set
// aside, and in nothing that is told of a sandbox that runs.
func TestADearerPauseIsInTheWorstCase(t *testing.T) {
	t.Parallel()
	b := Book{ID: "prices.x", Extension: "ext.x", Version: "1", AsOf: "2026-08-22", Source: "s", Currency: "USD", Confidence: ConfidenceExact,
		Billing: extensions.BillingWallClock, Components: []BookPrice{
			{Component: ComponentVCPU, Unit: "vcpu-hour", Price: "1", PausedPrice: "0.25"},
			{Component: ComponentMemory, Unit: "gib-hour", Price: "0.1", PausedPrice: "3"}}}
	in := QuoteInput{Extension: "ext.x", PricingModel: extensions.PricingMetered, Book: &b, Resources: resources(1000, 1024),
		TTL: 2 * time.Hour, Expected: time.Hour}
	q := quoted(t, in)
	wantAmounts(t, q, map[string]string{"hourly": "1.10", "expected": "1.10", "max": "8.00", "reserve": "8.00"})
	saying(t, "assumption", q.Assumptions,
		"memory costs more while paused: the maximum assumes that it is always paused, at 3.00 USD per gib-hour")
	if *q.Wallet != *q.Reserve || *q.Snapshot.Prices[1].Price >= *q.Snapshot.Prices[1].Paused {
		t.Errorf("of %s the wallet pays %s, by %+v", *q.Reserve, *q.Wallet, q.Snapshot.Prices)
	}
	for _, running := range []int64{0, 1, 3_600_000, 7_200_000} {
		lines, err := Charge([]Segment{{Mode: ModeRunning, Milliseconds: running, Sizes: q.Sizes},
			{Mode: ModePaused, Milliseconds: 7_200_000 - running, Sizes: q.Sizes}}, q.Snapshot)
		if total, _, terr := Total(lines); err != nil || terr != nil || total > *q.Reserve {
			t.Errorf("%d ms of running: %s, %v %v", running, total, err, terr)
		}
	}
	in.TTL = 0
	if q := quoted(t, in); len(q.Assumptions) != 1 {
		t.Errorf("without a ttl there is no worst case: %q", q.Assumptions)
	}
}
