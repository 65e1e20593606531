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
		{resources(2000, 512), "4.00", "4096 MiB of memory come with 2 vCPU and are counted, as prices.x says"},
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
	q := quoted(t, QuoteInput{Extension: "ext.x", PricingModel: extensions.PricingMetered, Book: &b, Resources: extensions.Resources{MemoryMB: &memory}, TTL: time.Hour})
	wantAmounts(t, q, map[string]string{"hourly": "unknown", "max": "unknown"})
}
