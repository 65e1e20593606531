package bank

import (
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Believable returns what can be true of a place's measure of a closed meter, and why the rest cannot; see
// meter.Measures.Believable. before is an earlier measure of the same life, nil if none. A place that tells
// impossible durations is believed nothing.
func (m Meter) Believable(usage, before *extensions.Usage) (*extensions.Usage, []string) {
	if usage == nil {
		return nil, nil
	}
	if usage.Running < 0 || usage.Paused < 0 {
		return nil, []string{fmt.Sprintf("a life that ran %s and was paused %s", usage.Running, usage.Paused)}
	}
	snapshot, err := meter.DecodePriceSnapshot(string(m.Rates))
	if err != nil {
		return nil, nil // without prices, nothing is charged
	}
	able, refused := measuresOf(usage).Believable(m.priced(), snapshot, measuresOf(before))
	out := *usage
	out.CPUMillis, out.MemoryMiBMillis, out.EgressBytes = able.CPUMillis, able.MemoryMiBMillis, able.EgressBytes
	if _, err := Price(m, &out); err != nil { // at these prices, more than an amount can be
		return nil, append(refused, err.Error())
	}
	return &out, refused
}

// CoversSettled is why no measure is believed where GoesOn.
const CoversSettled = "it also covers a time that was settled before"

// GoesOn reports whether the last meter continues the one before, for the same object of the place, whose measure
// covers both.
func GoesOn(meters []Meter) bool {
	n := len(meters)
	return n > 1 && meters[n-1].OpenedAt.Equal(meters[n-2].ClosedAt)
}

func measuresOf(u *extensions.Usage) meter.Measures {
	if u == nil {
		return meter.Measures{}
	}
	return meter.Measures{CPUMillis: u.CPUMillis, MemoryMiBMillis: u.MemoryMiBMillis, EgressBytes: u.EgressBytes}
}

// Lacks reports whether the meter charges for something that a measure does not tell; nil tells nothing.
func (m Meter) Lacks(u *extensions.Usage) bool {
	snapshot, err := meter.DecodePriceSnapshot(string(m.Rates))
	return err == nil && snapshot.Lacks(measuresOf(u))
}

// Lasted returns the time that a closed meter ran and was paused.
func (m Meter) Lasted() (running, paused time.Duration) {
	for _, s := range m.priced() {
		d := time.Duration(s.Milliseconds) * time.Millisecond
		if s.Mode == meter.ModePaused {
			paused += d
		} else {
			running += d
		}
	}
	return running, paused
}

// Measured is what a place measured of a life that runs.
type Measured struct {
	Usage *extensions.Usage // nil = nothing: what it used is estimated by time
	Why   string            // why something is estimated by time all the same; "" = nothing is
}
