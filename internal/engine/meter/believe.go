package meter

import (
	"fmt"
	"math"
	"math/bits"
)

// What no machine exceeds. It bounds the measures that no size bounds, so that none overflows a charge.
const (
	mostVCPUMilli = 4096 * milli
	mostMemoryMiB = 64 << 20   // 64 TiB
	mostEgress    = 50_000_000 // bytes in a millisecond: 400 Gbit/s
	shortest      = 1000       // ms: less is not told apart from the rounding of clocks
)

// Lacks reports whether s charges for something that m does not tell.
func (s PriceSnapshot) Lacks(m Measures) bool {
	return m.CPUMillis == nil && (s.activeCPU() || s.larger()) || m.MemoryMiBMillis == nil && s.larger() ||
		m.EgressBytes == nil && s.sells(ComponentEgress)
}

func (s PriceSnapshot) sells(component string) bool {
	for _, p := range s.Prices {
		if base(p.Component) == component {
			return true
		}
	}
	return false
}

// Believable returns the measures that can be true of a life, and why each of the others cannot. Those are
// left out, so that Charge bounds them from above. A measure is never negative nor less than before, what was
// measured earlier in the same life. Where it replaces the allocation, it is at most that: active CPU is at most
// the vCPUs x the running time. Every other one is at most what any machine can do.
func (m Measures) Believable(segments []Segment, s PriceSnapshot, before Measures) (Measures, []string) {
	if before != (Measures{}) {
		before, _ = before.Believable(segments, s, Measures{})
	}
	var refused []string
	check := func(what, unit string, n, earlier *int64, most int64) *int64 {
		var why string
		switch {
		case n == nil:
			return nil
		case *n < 0:
			why = "it is negative"
		case earlier != nil && *n < *earlier:
			why = fmt.Sprintf("%d were measured before", *earlier)
		case *n > most:
			why = fmt.Sprintf("at most %d are possible", most)
		default:
			return n
		}
		refused = append(refused, fmt.Sprintf("%s of %d %s: %s", what, *n, unit, why))
		return nil
	}
	var lifetime int64
	for _, seg := range segments {
		lifetime = saturated(lifetime, seg.Milliseconds)
	}
	most := Sizes{VCPUMilli: mostVCPUMilli, MemoryMiB: mostMemoryMiB}
	cpu := fullUse(segments, shortest, func(Sizes) int64 { return most.VCPUMilli })
	if s.activeCPU() && !s.larger() {
		cpu = fullUse(segments, 0, func(given Sizes) int64 { return given.or(s.Sizes).or(most).VCPUMilli })
	}
	memory := fullUse(segments, shortest, func(Sizes) int64 { return most.MemoryMiB })
	return Measures{
		CPUMillis:       check("CPU", "ms", m.CPUMillis, before.CPUMillis, cpu/milli),
		MemoryMiBMillis: check("memory", "MiB x ms", m.MemoryMiBMillis, before.MemoryMiBMillis, memory),
		EgressBytes:     check("traffic", "bytes", m.EgressBytes, before.EgressBytes, product(max(lifetime, shortest), mostEgress)),
	}, refused
}

// fullUse returns size x running time, at least that of the first segment for so many milliseconds.
func fullUse(segments []Segment, atLeast int64, size func(Sizes) int64) (sum int64) {
	for _, seg := range segments {
		if seg.Mode == ModeRunning {
			sum = saturated(sum, product(size(seg.Sizes), seg.Milliseconds))
		}
	}
	if len(segments) > 0 {
		sum = max(sum, product(size(segments[0].Sizes), atLeast))
	}
	return sum
}

// saturated adds two non-negative numbers, at most the largest.
func saturated(a, b int64) int64 {
	if n, err := add(a, max(b, 0)); err == nil {
		return n
	}
	return math.MaxInt64
}

// product multiplies two numbers, negative ones as zero, at most the largest.
func product(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(max(a, 0)), uint64(max(b, 0)))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}
