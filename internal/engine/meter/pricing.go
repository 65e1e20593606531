package meter

import (
	"fmt"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// pricing is a snapshot with the notes about it.
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

// priceOf returns the price that applies: the binding's price book, else a share of the host's cost, else
// the binding's cost per hour, else unknown.
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
		p.unknown("host %s has no cost; set `cost` to include it", in.Host.Name)
	case in.PricingModel == extensions.PricingSelfHosted:
		p.unknown("%s has no cost; set `cost` on the host or `cost.per_hour` on the binding", in.Extension)
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
	p.assume("%s per sandbox and hour, the catalog's price of this extension", in.PerHour)
	return nil
}

// fixed marks a place that costs the same running and paused.
func (p *pricing) fixed(basis Basis, currency Currency, confidence Confidence, source string) {
	p.Basis, p.Currency, p.Confidence, p.Source, p.Billing = basis, currency, confidence, source, extensions.BillingFixed
}

// always returns a price that applies in every mode.
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
		p.assume("use beyond the request is charged where a place allows any; the numbers cover the request")
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
		if !b.applies(bp, p.Region) || bp.Component == ComponentSnapshot {
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
		p.assume("the region is unknown: prices that depend on it are left out")
	}
	return nil
}

// withItsMemory counts the memory that the vCPUs come with, if it exceeds the request. Without a known
// number of vCPUs it is unknown.
func (p *pricing) withItsMemory(b *Book) error {
	switch {
	case b.MemoryMBPerCPU == 0:
		return nil
	case p.Sizes.VCPUMilli == 0:
		p.Sizes.MemoryMiB = 0
		return nil
	}
	comes, err := mulDiv(p.Sizes.VCPUMilli, b.MemoryMBPerCPU, milli, roundUp)
	if err == nil && comes > p.Sizes.MemoryMiB {
		p.assume("%d MiB of memory come with %s vCPU and are charged, according to %s", comes, formatDecimal(p.Sizes.VCPUMilli, 3, 0), b.ID)
		p.Sizes.MemoryMiB = comes
	}
	return err
}

// assumeSize notes that a size comes from the book rather than the request.
func (p *pricing) assumeSize(b *Book, component string, asked Sizes) {
	switch {
	case component == ComponentVCPU && asked.VCPUMilli == 0 && p.Sizes.VCPUMilli != 0:
		p.assume("the request sets no cpu: %s vCPU, according to %s", formatDecimal(p.Sizes.VCPUMilli, 3, 0), b.ID)
	case component == ComponentMemory && asked.MemoryMiB == 0 && p.Sizes.MemoryMiB != 0:
		p.assume("the request sets no memory: %d MiB, according to %s", p.Sizes.MemoryMiB, b.ID)
	case component == ComponentDisk && asked.DiskMiB == 0 && p.Sizes.DiskMiB != 0:
		p.assume("the request sets no disk: %d MiB, according to %s", p.Sizes.DiskMiB, b.ID)
	}
}

// applies selects by region: of several prices for one thing, that of the region, else that of any region,
// else the one without.
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

// snapshotPrice converts one price of a validated book.
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

// idlePriced reports whether the price continues while paused.
func (b *Book) idlePriced(p BookPrice) bool {
	switch {
	case !timed(p.Component), b.Billing == extensions.BillingActiveCPU && p.Component == ComponentVCPU:
		return false // a paused sandbox has no active CPU
	case b.Billing == extensions.BillingFixed, b.Idle == extensions.IdleMetered:
		return true
	}
	return b.Idle == extensions.IdleStorageOnly && p.Component == ComponentDisk
}
