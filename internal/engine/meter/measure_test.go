package meter

import (
	"testing"

	"pgregory.net/rapid"
)

// What is measured over a life is neither lost nor counted twice, however the
// life is cut into segments, and falls on what ran.
func TestMeasuresAreSpreadExactly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var segments []Segment
		ran := false
		for range rapid.IntRange(1, 6).Draw(t, "segments") {
			s := Segment{Mode: rapid.SampledFrom([]Mode{ModeRunning, ModePaused}).Draw(t, "mode"),
				Milliseconds: rapid.Int64Range(0, 1<<40).Draw(t, "ms"),
				Sizes:        Sizes{VCPUMilli: rapid.Int64Range(0, 1<<40).Draw(t, "cpu"), MemoryMiB: rapid.Int64Range(1, 1<<20).Draw(t, "memory")}}
			ran = ran || s.Mode == ModeRunning && s.Milliseconds > 0
			segments = append(segments, s)
		}
		cpu, memory, egress := rapid.Int64Min(0).Draw(t, "cpu used"), rapid.Int64Min(0).Draw(t, "memory used"), rapid.Int64Min(0).Draw(t,
			"egress")
		var gotCPU, gotMemory, gotEgress int64
		for i, s := range (Measures{&cpu, &memory, &egress}).Spread(segments) {
			if s.CPUMillis == nil || *s.CPUMillis < 0 || s.MemoryMiBMillis == nil || *s.MemoryMiBMillis < 0 {
				t.Fatalf("segment %d: %+v", i, s)
			}
			if ran && (s.Mode == ModePaused || s.Milliseconds == 0) && (*s.CPUMillis != 0 || *s.MemoryMiBMillis != 0) {
				t.Fatalf("segment %d did not run, and %d ms of CPU are its: %+v", i, *s.CPUMillis, segments)
			}
			gotCPU, gotMemory, gotEgress = gotCPU+*s.CPUMillis, gotMemory+*s.MemoryMiBMillis, gotEgress+orZero(s.EgressBytes)
		}
		if gotCPU != cpu || gotMemory != memory || gotEgress != egress {
			t.Fatalf("%d %d %d of %d %d %d", gotCPU, gotMemory, gotEgress, cpu, memory, egress)
		}
	})
}

// On an owner's host the larger of reserved and used counts over all of a life:
// cutting it into pieces changes nothing.
func TestCuttingALifeChangesNoMeasuredCharge(t *testing.T) {
	t.Parallel()
	price := UnitPrice(1_000_000)
	for name, snapshot := range map[string]PriceSnapshot{
		"host": {Version: snapshotVersion, Basis: BasisHost, Billing: "fixed", Currency: "USD",
			Prices: []SnapshotPrice{{Component: ComponentVCPU, Unit: "vcpu-second", Price: &price, Confidence: ConfidenceExact}}},
		"active-cpu": {Version: snapshotVersion, Basis: BasisBook, Billing: "active-cpu", Currency: "USD",
			Prices: []SnapshotPrice{{Component: ComponentVCPU, Unit: "vcpu-second", Price: &price, Confidence: ConfidenceExact}}},
	} {
		for _, used := range []int64{0, 1, 7_777, 20_000, 90_001} {
			sizes := Sizes{VCPUMilli: 2000}
			whole := []Segment{{Mode: ModeRunning, Milliseconds: 10_000, Sizes: sizes}}
			cut := []Segment{{Mode: ModeRunning, Milliseconds: 3_333, Sizes: sizes}, {Mode: ModePaused, Milliseconds: 50_000, Sizes: sizes},
				{Mode: ModeRunning, Milliseconds: 6_667, Sizes: sizes}}
			var totals [2]Amount
			for i, segments := range [][]Segment{whole, cut} {
				lines, err := Charge(Measures{CPUMillis: &used}.Spread(segments), snapshot)
				if err != nil {
					t.Fatal(err)
				}
				totals[i], _, _ = Total(lines)
			}
			if totals[0] != totals[1] {
				t.Errorf("%s, %d ms used: %s in one piece, %s in two", name, used, totals[0], totals[1])
			}
		}
	}
}
