package meter

import (
	"math/big"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// The oracle reads the book's text with math/big alone: floors, ceilings and
// prices as a person would compute them from the file, in whole units. It
// shares no code with what it judges.
type oracle struct {
	book     Book
	region   string
	fee      *Fee
	segments []Segment
	sizes    Sizes // at the start
}

// unitSize is how much of seconds, vCPU-seconds, GiB-seconds or bytes a unit is.
var unitSize = map[string]*big.Rat{
	"creation": rat("1"), "sandbox-second": rat("1"), "sandbox-hour": rat("3600"), "vcpu-second": rat("1"), "vcpu-hour": rat("3600"),
	"gib-second": rat("1"), "gib-hour": rat("3600"), "disk-gib-second": rat("1"), "disk-gib-hour": rat("3600"),
	"disk-gib-month": rat("2628000"),
	"gpu-second":     rat("1"), "gpu-hour": rat("3600"), "egress-gib": rat("1073741824"), "egress-gb": rat("1000000000"),
}

func rat(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic("not a number: " + s)
	}
	return r
}

func times(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }
func per(a, b *big.Rat) *big.Rat   { return new(big.Rat).Quo(a, b) }
func plus(a, b *big.Rat) *big.Rat  { return new(big.Rat).Add(a, b) }
func minus(a, b *big.Rat) *big.Rat { return new(big.Rat).Sub(a, b) }

// nearest rounds half up, to whole numbers; it is for what is not negative.
func nearest(r *big.Rat) *big.Int {
	half := plus(r, rat("1/2"))
	return new(big.Int).Quo(half.Num(), half.Denom())
}

// nanos is an amount in nano-units.
func nanos(units *big.Rat, price string) *big.Int {
	return nearest(times(times(units, rat(price)), rat("1000000000")))
}

func whole(n *big.Int) *big.Rat { return new(big.Rat).SetInt(n) }

// total is all that is charged, and what of it is the platform's fee.
func (o oracle) total() (all, fees *big.Int) {
	vendor := new(big.Int)
	for _, p := range o.book.Components {
		if p.Component != "surcharge" && p.Component != "snapshot" && o.counts(p) { // a sandbox pays for no snapshot
			vendor.Add(vendor, o.price(p))
		}
	}
	before := whole(vendor)
	for _, p := range o.book.Components {
		if p.Component == "surcharge" && o.counts(p) {
			vendor = new(big.Int).Add(vendor, nearest(times(before, rat(p.Price))))
		}
	}
	fees = o.fees(whole(vendor))
	return new(big.Int).Add(vendor, fees), fees
}

func (o oracle) fees(charged *big.Rat) *big.Int {
	sum := new(big.Int)
	if o.fee == nil {
		return sum
	}
	if o.fee.Share != "" {
		sum.Add(sum, nearest(times(charged, rat(o.fee.Share))))
	}
	amount := func(text string) string { return text[:len(text)-len(" USD")] }
	if o.fee.PerHour != "" {
		running := new(big.Rat)
		for _, s := range o.segments {
			if s.Mode == ModeRunning {
				running.Add(running, big.NewRat(s.Milliseconds, 3_600_000))
			}
		}
		sum.Add(sum, nanos(running, amount(o.fee.PerHour)))
	}
	if o.fee.PerCreation != "" {
		sum.Add(sum, nanos(rat("1"), amount(o.fee.PerCreation)))
	}
	return sum
}

// counts reports whether a price applies in the region: the most exact does.
func (o oracle) counts(p BookPrice) bool {
	exactness := func(region string) int {
		switch {
		case region == "":
			return 1
		case o.region == "":
			return 0
		case region == "*":
			return 2
		case region == o.region:
			return 3
		}
		return 0
	}
	for _, other := range o.book.Components {
		if other.Component == p.Component && other.Model == p.Model && other.Label == p.Label && exactness(other.Region) > exactness(p.Region) {
			return false
		}
	}
	return exactness(p.Region) > 0
}

func (o oracle) price(p BookPrice) *big.Int {
	switch p.Component {
	case "creation":
		return nanos(rat("1"), p.Price)
	case "egress":
		bytes := new(big.Rat)
		for _, s := range o.segments {
			if s.EgressBytes != nil {
				bytes.Add(bytes, big.NewRat(*s.EgressBytes, 1))
			}
		}
		units, _ := less(per(bytes, unitSize[p.Unit]), new(big.Rat).SetInt64(p.Included))
		return nanos(units, p.Price)
	}
	return o.time(p)
}

// pausedPrice is what an idle sandbox pays; "" is nothing.
func (o oracle) pausedPrice(p BookPrice) string {
	switch {
	case p.PausedPrice != "":
		return p.PausedPrice
	case o.book.Billing == extensions.BillingActiveCPU && p.Component == "vcpu":
		return ""
	case o.book.Billing == extensions.BillingFixed, o.book.Idle == extensions.IdleMetered,
		o.book.Idle == extensions.IdleStorageOnly && p.Component == "disk":
		return p.Price
	}
	return ""
}

func (o oracle) time(p BookPrice) *big.Int {
	pausedPrice := o.pausedPrice(p)
	used := map[Mode]*big.Rat{ModeRunning: new(big.Rat), ModePaused: new(big.Rat)} // seconds times size
	billed, last, lastSize := new(big.Rat), Mode(""), size(p.Component, o.sizes)
	for _, s := range o.segments {
		if s.Mode == ModePaused && pausedPrice == "" || p.Component == "gpu" && !o.prices(p, s.Sizes) {
			continue
		}
		seconds := big.NewRat(s.Milliseconds, 1000)
		billed.Add(billed, seconds)
		last, lastSize = s.Mode, size(p.Component, s.Sizes)
		used[s.Mode].Add(used[s.Mode], o.quantity(p, s, times(seconds, lastSize)))
	}
	if last == "" {
		if p.Component == "gpu" {
			return new(big.Int)
		}
		last = ModeRunning
	}
	due := new(big.Rat).Set(billed)
	if p.Increment != "" {
		step := oracleSeconds(p.Increment)
		steps := per(billed, step)
		n := new(big.Int).Quo(steps.Num(), steps.Denom())
		if whole(n).Cmp(steps) < 0 {
			n.Add(n, big.NewInt(1))
		}
		due = times(step, whole(n))
	}
	if p.Minimum != "" && due.Cmp(oracleSeconds(p.Minimum)) < 0 {
		due = oracleSeconds(p.Minimum)
	}
	used[last].Add(used[last], times(minus(due, billed), lastSize))
	running, left := less(per(used[ModeRunning], unitSize[p.Unit]), new(big.Rat).SetInt64(p.Included))
	sum := nanos(running, p.Price)
	if pausedPrice != "" {
		paused, _ := less(per(used[ModePaused], unitSize[p.Unit]), left)
		sum.Add(sum, nanos(paused, pausedPrice))
	}
	return sum
}

// quantity is what a segment counts: measured where the book says so.
func (o oracle) quantity(p BookPrice, s Segment, given *big.Rat) *big.Rat {
	var measured *big.Rat
	switch {
	case p.Component == "vcpu" && s.CPUMillis != nil:
		measured = big.NewRat(*s.CPUMillis, 1000)
	case p.Component == "memory" && s.MemoryMiBMillis != nil:
		measured = big.NewRat(*s.MemoryMiBMillis, 1024*1000)
	}
	switch {
	case measured == nil:
	case o.book.Billing == extensions.BillingActiveCPU && p.Component == "vcpu":
		return measured
	case o.book.Counts == "larger" && measured.Cmp(given) > 0:
		return measured
	}
	return given
}

// prices reports whether p is the price of these GPUs.
func (o oracle) prices(p BookPrice, s Sizes) bool {
	if s.GPUs == 0 || p.Model != "" && p.Model != s.GPUModel {
		return false
	}
	for _, other := range o.book.Components {
		if p.Model == "" && other.Component == "gpu" && other.Model != "" && other.Model == s.GPUModel && o.counts(other) {
			return false
		}
	}
	return true
}

func size(component string, s Sizes) *big.Rat {
	switch component {
	case "vcpu":
		return big.NewRat(s.VCPUMilli, 1000)
	case "memory":
		return big.NewRat(s.MemoryMiB, 1024)
	case "disk":
		return big.NewRat(s.DiskMiB, 1024)
	case "gpu":
		return big.NewRat(s.GPUs, 1)
	}
	return rat("1")
}

// less takes what is free off, and returns what of that is left.
func less(units, free *big.Rat) (rest, left *big.Rat) {
	if units.Cmp(free) >= 0 {
		return minus(units, free), new(big.Rat)
	}
	return new(big.Rat), minus(free, units)
}

func oracleSeconds(d string) *big.Rat {
	v, err := time.ParseDuration(d)
	if err != nil {
		panic(err)
	}
	return big.NewRat(int64(v), int64(time.Second))
}
