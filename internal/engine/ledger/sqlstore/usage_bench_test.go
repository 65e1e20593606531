package sqlstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/pgtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const benchMeters = 1_000_000

// BenchmarkUsage adds up a million ended meters with two million charges, a
// fifth of them paused once, over 90 days: all of it, what a month's report
// asks for, and each charge. peak-MB is what the process grows by meanwhile.
func BenchmarkUsage(b *testing.B) {
	b.Run("SQLite", func(b *testing.B) { benchUsage(b, DefaultURL(filepath.Join(b.TempDir(), "state"))) })
	b.Run("Postgres", func(b *testing.B) { benchUsage(b, pgtest.New(b)) })
}

func benchUsage(b *testing.B, address string) {
	l, err := Open(context.Background(), address, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	s := l.Identity.(*store)
	began := time.Now()
	fillUsage(b, s)
	b.Logf("%d meters written in %s", benchMeters, time.Since(began).Round(time.Second))
	month := ledger.UsageFilter{From: benchStart, To: benchStart.AddDate(0, 1, 0)}
	for _, c := range []struct {
		name string
		f    ledger.UsageFilter
		by   []bank.Dimension
	}{
		{"total", ledger.UsageFilter{}, nil},
		{"account", ledger.UsageFilter{}, []bank.Dimension{bank.ByAccount}},
		{"component", ledger.UsageFilter{}, []bank.Dimension{bank.ByComponent}},
		{"run", ledger.UsageFilter{}, []bank.Dimension{bank.ByRunID}},
		{"month-by-account-and-day", month, []bank.Dimension{bank.ByAccount, bank.ByDay}},
		{"day-of-one-account", ledger.UsageFilter{Account: "org1/web", From: benchStart, To: benchStart.AddDate(0, 0, 1)},
			[]bank.Dimension{bank.ByProfile}},
	} {
		b.Run("by="+c.name, func(b *testing.B) {
			measured(b, func() {
				rows, err := s.Usage(context.Background(), c.f, c.by...)
				if err != nil || len(rows) == 0 {
					b.Fatalf("%d rows, %v", len(rows), err)
				}
				b.ReportMetric(float64(len(rows)), "rows")
			})
		})
	}
	b.Run("each-charge", func(b *testing.B) {
		measured(b, func() {
			n := 0
			err := s.EachCharge(context.Background(), ledger.UsageFilter{}, func(bank.ChargeRow) error { n++; return nil })
			if err != nil || n != 2*benchMeters {
				b.Fatalf("%d charges, %v", n, err)
			}
		})
	})
}

// measured runs f b.N times and reports seconds and memory of the process, of
// which the heap is only a part.
func measured(b *testing.B, f func()) {
	before := resident(b, true)
	b.ResetTimer()
	for b.Loop() {
		f()
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/report")
	if before > 0 {
		b.ReportMetric(float64(resident(b, false)-before)/1024, "peak-MB")
	}
}

// resident is the process's memory in KiB, or the most of it since the last
// reset; 0 where the system does not tell.
func resident(b *testing.B, reset bool) int64 {
	name := "VmHWM:"
	if reset {
		name = "VmRSS:"
		if os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) != nil {
			return 0
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(status), "\n") {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return n
		}
	}
	return 0
}

var benchStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// bulk collects rows of one table and writes them many at a time.
type bulk struct {
	table string
	names string
	marks string
	rows  []string
	args  []any
}

func (k *bulk) add(fs []field) error {
	vs, err := values(fs)
	if err != nil {
		return err
	}
	if k.names == "" {
		k.names, k.marks = names(fs), "("+strings.TrimSuffix(strings.Repeat("?, ", len(fs)), ", ")+")"
	}
	k.rows, k.args = append(k.rows, k.marks), append(k.args, vs...)
	return nil
}

func (k *bulk) flush(t *tx) error {
	_, err := t.sql.ExecContext(t.ctx, t.dialect.rebind("INSERT INTO "+k.table+" ("+k.names+") VALUES "+strings.Join(k.rows, ", ")), k.args...)
	k.rows, k.args = nil, nil
	return err
}

// fillUsage writes lives as the ledger would, without their events.
func fillUsage(b *testing.B, s *store) {
	b.Helper()
	price := meter.UnitPrice(14_000_000)
	rates := meter.PriceSnapshot{Version: 1, Basis: meter.BasisBook, Book: "prices.vendor", BookVersion: "2026-01-15", Extension: "ext.vendor",
		AsOf:   "2026-01-15",
		Source: "https://vendor.example/pricing", Currency: "USD", Confidence: meter.ConfidenceExact, Billing: "wall-clock",
		Region: "eu-central-1",
		Sizes:  meter.Sizes{VCPUMilli: 2000, MemoryMiB: 4096}, Prices: []meter.SnapshotPrice{
			{Component: meter.ComponentVCPU, Unit: "vcpu-second", Price: &price, Confidence: meter.ConfidenceExact},
			{Component: meter.ComponentMemory, Unit: "gib-second", Price: &price, Confidence: meter.ConfidenceExact}}}
	random := rand.New(rand.NewPCG(1, 2)) // the same each time
	w := benchWriter{sandboxes: bulk{table: "sandboxes"}, meters: bulk{table: "meters"}, segments: bulk{table: "meter_segments"},
		charges: bulk{table: "charges"}, random: random, rates: []byte(rates.Encode())}
	for from := 0; from < benchMeters; from += 20_000 {
		err := s.write(context.Background(), func(t *tx) error {
			for i := from; i < from+20_000; i += 400 {
				for n := range 400 {
					if err := w.life(i + n); err != nil {
						return err
					}
				}
				for _, k := range []*bulk{&w.sandboxes, &w.meters, &w.segments, &w.charges} {
					if err := k.flush(t); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

type benchWriter struct {
	sandboxes, meters, segments, charges bulk

	random *rand.Rand
	rates  []byte
}

func (w *benchWriter) life(i int) error {
	id := fmt.Sprintf("sbx-%010x%010x", w.random.Uint64N(1<<40), w.random.Uint64N(1<<40))
	row := ledger.Sandbox{ID: extensions.ID(id), Account: fmt.Sprintf("org%d/%s", i%10, []string{"web", "ml", "ci", "docs"}[i/10%4]),
		Name: fmt.Sprint("run-", i), State: "destroyed",
		Mode: ledger.Running, Generation: 1, Fence: 2, Profile: fmt.Sprint("profile.p", i%7), ProfileVersion: "1.0.0", SpecHash: "aa",
		Extension: fmt.Sprint("ext.e", i%5),
		Host:      fmt.Sprint("host", i%20), Request: []byte(fmt.Sprintf(`{"consumer":{"actor":"agt","harness":"h%d","run_id":"%d"},"profile":"profile.p","ttl":"2h"}`, i%11, i/50))}
	started := benchStart.Add(time.Duration(i) * (90 * 24 * time.Hour / benchMeters))
	m := bank.Meter{ID: id + "/1", SandboxID: row.ID, Generation: 1, Currency: "USD", Rates: w.rates, OpenedAt: started,
		ClosedAt: started.Add(time.Duration(w.random.IntN(7200)) * time.Second), StartSource: "backend", EndSource: "backend",
		For: row.Attribution()}
	ends := []time.Time{m.ClosedAt}
	if i%5 == 0 {
		third := m.ClosedAt.Sub(started) / 3
		ends = []time.Time{started.Add(third), started.Add(2 * third), m.ClosedAt}
	}
	if err := w.sandboxes.add(sandboxRow(&row)); err != nil {
		return err
	}
	var segments []bank.Segment
	for n, end := range ends {
		seg := bank.Segment{Seq: int64(n + 1), Mode: []ledger.Mode{ledger.Running, ledger.Paused}[n%2],
			Sizes: map[string]int64{"milli_vcpu": 2000, "memory_mib": 4096}, StartedAt: started, EndedAt: end}
		if err := w.segments.add(segmentRow(&seg, &m.ID)); err != nil {
			return err
		}
		segments = append(segments, seg)
		started = end
	}
	var charges []bank.Charge
	for _, component := range []string{meter.ComponentVCPU, meter.ComponentMemory} {
		c := bank.Charge{MeterID: m.ID, Segment: 1, Component: component, Quantity: w.random.Int64N(1e10), Unit: component + "-second",
			UnitPrice: 14_000_000,
			Amount:    w.random.Int64N(1e9), Currency: "USD", Memo: []string{"", "", "byok_memo:ext.vendor", "infra_memo:ext.host"}[i%4],
			Confidence: "exact"}
		if err := w.charges.add(chargeRow(&c)); err != nil {
			return err
		}
		charges = append(charges, c)
	}
	m.Segments = segments
	var err error
	if m.Used, err = bank.SumsOf(m, charges); err != nil {
		return err
	}
	return w.meters.add(meterRow(&m))
}
