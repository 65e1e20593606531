package meter

import (
	"fmt"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// pricing is a snapshot with what has to be said about it.
type pricing struct {
	PriceSnapshot
	assumptions []string
	unknowns    []string
}

func (p *pricing) assume(format string, args ...any) {
	p.assumptions = append(p.assumptions, fmt.Sprintf(format, args...))
}

func (p *pricing) unknown(format string, args ...any) {
	p.unknowns = append(p.unknowns, fmt.Sprintf(format, args...))
}

// priceOf finds what applies: the binding's price book, else a share of the
// host's cost, else the binding's cost per hour, else nothing is known.
func priceOf(in QuoteInput) (pricing, error) {
	p := pricing{PriceSnapshot: PriceSnapshot{
		Version: snapshotVersion, Extension: in.Extension, Region: in.Region, Basis: BasisUnknown, Confidence: ConfidenceUnknown,
		Memo: in.BYOK || in.PricingModel == extensions.PricingSelfHosted, Sizes: SizesOf(in.Resources),
	}}
	var err error
	switch {
	case in.Book != nil:
		err = p.fromBook(in.Book)
	case in.Host != nil && in.Host.Cost != nil && in.Host.Cost.PerHour != "":
		err = p.fromHost(*in.Host)
	case in.PerHour != "":
		err = p.fromPerHour(in)
	case in.Host != nil:
		p.unknown("nobody said what host %s costs: set cost on it", in.Host.Name)
	case in.PricingModel == extensions.PricingSelfHosted:
		p.unknown("nobody said what %s costs: set cost on the host or per_hour on the binding", in.Extension)
	default:
		p.unknown("the catalog has no price book for %s", in.Extension)
	}
	if err == nil {
		err = p.addFee(in)
	}
	return p, err
}

func (p *pricing) fromPerHour(in QuoteInput) error {
	price, currency, err := hourlyPrice(in.PerHour)
	if err != nil {
		return err
	}
	p.fixed(BasisPerHour, currency, ConfidenceExact, "cost.per_hour of "+p.Extension)
	if p.AsOf = in.PerHourAsOf; in.PerHourSource != "" {
		p.Source = in.PerHourSource
	}
	p.Prices = []SnapshotPrice{always(ComponentSandbox, unitSandboxHour, price, ConfidenceExact)}
	p.assume("%s per sandbox and hour, the price that the catalog gives this extension", in.PerHour)
	return nil
}

// fixed marks a place that costs the same, paused or not.
func (p *pricing) fixed(basis Basis, currency Currency, confidence Confidence, source string) {
	p.Basis, p.Currency, p.Confidence, p.Source, p.Billing = basis, currency, confidence, source, extensions.BillingFixed
}

// always is a price that counts in every mode.
func always(component, unit string, price UnitPrice, confidence Confidence) SnapshotPrice {
	return SnapshotPrice{Component: component, Unit: unit, Price: &price, Paused: &price, Confidence: confidence}
}

// hourlyPrice reads "0.40 USD" as a unit price.
func hourlyPrice(perHour string) (UnitPrice, Currency, error) {
	m, err := ParseMoney(perHour)
	if err != nil {
		return 0, "", err
	}
	n, err := mul(int64(m.Amount), 1000) // nano to pico
	return UnitPrice(n), m.Currency, err
}

func (p *pricing) fromBook(b *Book) error {
	if err := b.Validate(); err != nil {
		return extensions.Errorf(extensions.KindInvalid, "%s: %w", b.title(), err)
	}
	p.Basis, p.Book, p.BookVersion, p.AsOf, p.Source = BasisBook, b.ID, b.Version, b.AsOf, b.Source
	p.Currency, p.Confidence, p.Billing, p.Notes = b.Currency, b.Confidence, b.Billing, slices.Clone(b.Notes)
	if b.Counts == CountsLarger {
		p.Counts = CountsLarger
		p.assume("what is used counts where it is more than what was asked for; the numbers are for what was asked for")
	}
	defaults, err := b.Defaults.sizes()
	if err != nil {
		return err
	}
	asked := p.Sizes
	p.Sizes = asked.or(defaults)
	if err := p.withItsMemory(b); err != nil {
		return err
	}
	for _, bp := range b.Components {
		if !b.applies(bp, p.Region) {
			continue
		}
		sp, err := b.snapshotPrice(bp)
		if err != nil {
			return err
		}
		p.Prices = append(p.Prices, sp)
		p.assumeSize(b, base(sp.Component), asked)
	}
	p.assumptions = append(p.assumptions, b.Notes...)
	if p.Region == "" && slices.ContainsFunc(b.Components, func(bp BookPrice) bool { return bp.Region != "" }) {
		p.assume("the region is not known: prices that depend on it are left out")
	}
	return nil
}

// withItsMemory counts the memory that the vCPUs come with, where that is more
// than what was asked for. Without a known number of vCPUs it is not known.
func (p *pricing) withItsMemory(b *Book) error {
	switch {
	case b.MemoryMBPerCPU == 0:
		return nil
	case p.Sizes.VCPUMilli == 0:
		p.Sizes.MemoryMiB = 0
		return nil
	}
	comes, err := mulDiv(p.Sizes.VCPUMilli, b.MemoryMBPerCPU, milli, ceiling)
	if err == nil && comes > p.Sizes.MemoryMiB {
		p.assume("%d MiB of memory come with %s vCPU and are counted, as %s says", comes, formatDecimal(p.Sizes.VCPUMilli, 3, 0), b.ID)
		p.Sizes.MemoryMiB = comes
	}
	return err
}

// assumeSize tells that a size comes from the book and not from the request.
func (p *pricing) assumeSize(b *Book, component string, asked Sizes) {
	switch {
	case component == ComponentVCPU && asked.VCPUMilli == 0 && p.Sizes.VCPUMilli != 0:
		p.assume("no cpu was asked for: %s vCPU, as %s says", formatDecimal(p.Sizes.VCPUMilli, 3, 0), b.ID)
	case component == ComponentMemory && asked.MemoryMiB == 0 && p.Sizes.MemoryMiB != 0:
		p.assume("no memory was asked for: %d MiB, as %s says", p.Sizes.MemoryMiB, b.ID)
	case component == ComponentDisk && asked.DiskMiB == 0 && p.Sizes.DiskMiB != 0:
		p.assume("no disk was asked for: %d MiB, as %s says", p.Sizes.DiskMiB, b.ID)
	}
}

// applies picks by region: of prices for the same thing the one of the region,
// else that of any region, else the one without.
func (b *Book) applies(p BookPrice, region string) bool {
	twin := func(of string) bool {
		return slices.ContainsFunc(b.Components, func(o BookPrice) bool {
			return o.Region == of && o.Component == p.Component && o.Model == p.Model && o.Label == p.Label
		})
	}
	switch p.Region {
	case "":
		return region == "" || !twin(region) && !twin(AnyRegion)
	case AnyRegion:
		return region != "" && (region == AnyRegion || !twin(region))
	}
	return p.Region == region
}

// snapshotPrice reduces one price of a validated book.
func (b *Book) snapshotPrice(p BookPrice) (SnapshotPrice, error) {
	s := SnapshotPrice{Component: p.Component, Unit: p.Unit, Included: p.Included, Confidence: b.confidenceOf(p), Source: p.Source}
	if tag := p.Model + p.Label; tag != "" {
		s.Component += ":" + tag
	}
	var err error
	if p.Price != "" {
		price, perr := ParseUnitPrice(p.Price)
		s.Price, err = &price, perr
	}
	if err == nil && p.PausedPrice != "" {
		price, perr := ParseUnitPrice(p.PausedPrice)
		s.Paused, err = &price, perr
	} else if b.idlePriced(p) {
		s.Paused = s.Price
	}
	if err == nil {
		s.Minimum, err = wholeMillis(p.Minimum)
	}
	if err == nil {
		s.Increment, err = wholeMillis(p.Increment)
	}
	return s, err
}

// idlePriced reports whether the price goes on while paused.
func (b *Book) idlePriced(p BookPrice) bool {
	switch {
	case !timed(p.Component), b.Billing == extensions.BillingActiveCPU && p.Component == ComponentVCPU:
		return false // a paused sandbox has no active CPU
	case b.Billing == extensions.BillingFixed, b.Idle == extensions.IdleMetered:
		return true
	}
	return b.Idle == extensions.IdleStorageOnly && p.Component == ComponentDisk
}
