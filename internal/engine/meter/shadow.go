package meter

import "github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"

// Sizes that a shadow price assumes if none is requested.
const (
	shadowVCPUMilli = 1000
	shadowMiB       = 1024
)

// ShadowPrice values an own place whose owner pays nothing for it, or states no cost: what one sandbox
// uses there is not available to others. It compares places and is never charged.
type ShadowPrice struct {
	VCPUHour, GiBHour UnitPrice
	Currency          Currency
	Source            string
	AsOf              string // YYYY-MM-DD
	Confidence        Confidence
}

// ParseShadowPrice reads two amounts in one currency, "0.03 USD" and "0.004 USD". Anything else is
// KindInvalid.
func ParseShadowPrice(vcpuHour, gibHour string) (ShadowPrice, error) {
	vcpu, currency, err := hourlyPrice(vcpuHour)
	if err != nil {
		return ShadowPrice{}, err
	}
	gib, other, err := hourlyPrice(gibHour)
	if err != nil {
		return ShadowPrice{}, err
	}
	if currency != other {
		return ShadowPrice{}, extensions.Errorf(extensions.KindInvalid, "%s and %s are in different currencies", vcpuHour, gibHour)
	}
	return ShadowPrice{VCPUHour: vcpu, GiBHour: gib, Currency: currency}, nil
}

// Hourly returns the price of such a sandbox per hour. An unknown size counts as one vCPU or one GiB.
// KindInvalid on overflow.
func (s ShadowPrice) Hourly(sizes Sizes) (Money, error) {
	sizes = sizes.or(Sizes{VCPUMilli: shadowVCPUMilli, MemoryMiB: shadowMiB})
	vcpu, err := cost(sizes.VCPUMilli, s.VCPUHour, milli, halfUp)
	if err != nil {
		return Money{}, err
	}
	gib, err := cost(sizes.MemoryMiB, s.GiBHour, mibPer, halfUp)
	if err != nil {
		return Money{}, err
	}
	sum, err := vcpu.Add(gib)
	return Money{Amount: sum, Currency: s.Currency}, err
}
