package route

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Ten thousand places: vendors' accounts, of which a share is refused, and a
// hundred extensions on a hundred hosts, by price.
func BenchmarkSelect10000(b *testing.B) {
	base := Query{}
	base.Spec.Network.Default = "deny"
	base.Spec.Isolation = extensions.IsolationContainer
	base.Spec.TTL = extensions.Duration(2 * time.Hour)
	for _, share := range []int{0, 50, 100} {
		q := base
		for i := range 10_000 {
			c := able()
			c.Binding, c.Index, c.Priority = fmt.Sprintf("ext.%d", i*7919%10_000), i, int64(i%13)
			if i%100 < share {
				c.Capabilities.MaxTTL = time.Hour
			}
			q.Candidates = append(q.Candidates, c)
		}
		b.Run(fmt.Sprintf("refused=%d%%", share), func(b *testing.B) { benchmarkSelect(b, q) })
	}
	q := base
	q.Policy.Strategy, q.Policy.Region, q.Prefer = StrategyLowestCost, "eu", []string{"host-7"}
	for i := range 10_000 {
		c := able()
		c.Binding, c.Place, c.Index = fmt.Sprintf("ext.%d", i%100), extensions.PlaceHost, i%100
		c.Host = &extensions.Host{Name: fmt.Sprintf("host-%d", i/100*37%100), Region: "eu-west", Priority: int64(i % 7)}
		c.Price.Hourly = &meter.Money{Amount: meter.Amount(i * 7919 % 997 * 1_000_003), Currency: "USD"}
		q.Candidates = append(q.Candidates, c)
	}
	b.Run("hosts by price", func(b *testing.B) { benchmarkSelect(b, q) })
}

func benchmarkSelect(b *testing.B, q Query) {
	var took []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		d := Select(q)
		took = append(took, time.Since(start))
		if len(d.Order)+len(d.judge.refused) != 10_000 {
			b.Fatal(len(d.Order), len(d.judge.refused))
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
	b.ReportMetric(float64(took[0].Microseconds())/1000, "fastest-ms")
}
