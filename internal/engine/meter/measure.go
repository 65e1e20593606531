package meter

import "math/bits"

// Measures are what a backend measured over a whole life; nil = not measured.
type Measures struct {
	CPUMillis       *int64 // ms of one vCPU, active
	MemoryMiBMillis *int64 // MiB x ms used
	EgressBytes     *int64 // bytes out
}

// Spread gives every segment its part of what was measured over all of them. CPU and memory go to running
// segments, in proportion to size x time, or to time alone if a size is unknown; traffic goes to the last
// segment. The parts add up to the measure exactly. Without segments, the measures are lost.
func (m Measures) Spread(segments []Segment) []Segment {
	out := make([]Segment, len(segments))
	copy(out, segments)
	if len(out) == 0 {
		return out
	}
	out[len(out)-1].EgressBytes = m.EgressBytes
	spread(out, m.CPUMillis, func(s Sizes) int64 { return s.VCPUMilli }, func(s *Segment, n *int64) { s.CPUMillis = n })
	spread(out, m.MemoryMiBMillis, func(s Sizes) int64 { return s.MemoryMiB }, func(s *Segment, n *int64) { s.MemoryMiBMillis = n })
	return out
}

// spread cuts total at the running sum of the weights, so rounding loses nothing.
func spread(segments []Segment, total *int64, size func(Sizes) int64, set func(*Segment, *int64)) {
	if total == nil {
		return
	}
	if *total < 0 { // Charge refuses it
		set(&segments[0], total)
		return
	}
	weights, sum := weigh(segments, size)
	if sum == 0 { // nothing ran for any time: the first one gets all
		weights[0], sum = 1, 1
	}
	var before, given uint64
	for i := range segments {
		before += weights[i]
		hi, lo := bits.Mul64(uint64(*total), before)
		until, _ := bits.Div64(hi, lo, sum)
		part := int64(until - given)
		given = until
		set(&segments[i], &part)
	}
}

// weigh returns weights and their sum, which fit in 63 bits: milliseconds alone do, as Charge requires,
// and are used if size x time does not.
func weigh(segments []Segment, size func(Sizes) int64) ([]uint64, uint64) {
	weights, sum := make([]uint64, len(segments)), uint64(0)
	for _, sized := range []bool{true, false} {
		sum = 0
		fits := true
		for i, s := range segments {
			weights[i] = 0
			if s.Mode != ModeRunning || s.Milliseconds <= 0 {
				continue
			}
			n := int64(1)
			if sized {
				n = size(s.Sizes)
			}
			product, err := mul(n, s.Milliseconds)
			if err != nil || n == 0 || sum > 1<<63-1-uint64(product) {
				fits = false
				break
			}
			weights[i] = uint64(product)
			sum += uint64(product)
		}
		if fits {
			break
		}
	}
	return weights, sum
}
