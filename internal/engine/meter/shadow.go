package meter

import "github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"

// What a shadow price counts for a size nobody asked for.
const (
	shadowVCPUMilli = 1000
	shadowMiB       = 1024
)

// ShadowPrice is what an own place is counted at where its owner pays nothing
// for it, or did not say: what is used there cannot be used by another. It
// compares places and is never charged.
type ShadowPrice struct {
	VCPUHour, GiBHour UnitPrice
	Currency          Currency
	Source            string
	AsOf              string // YYYY-MM-DD
	Confidence        Confidence
}

// ParseShadowPrice reads two amounts of one currency, "0.03 USD" and "0.004
// USD". Anything else is KindInvalid.
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
		return ShadowPrice{}, extensions.Errorf(extensions.KindInvalid, "%s and %s are of two currencies", vcpuHour, gibHour)
	}
	return ShadowPrice{VCPUHour: vcpu, GiBHour: gib, Currency: currency}, nil
}

// Hourly is the price of an hour of such a sandbox. A size that is not known
// counts as one vCPU or one GiB. The error, KindInvalid, is for overflow.
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
