package meter

import (
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// mostKept is the largest believable snapshot, in bytes. One that its place calls larger has an unknown size: what it
// costs in ten years must still be a number.
const mostKept = 1 << 44

// KeptPrices returns the prices of keeping a snapshot of so many bytes, by the place's price book. A vendor whose
// book names no price has an unknown one. nil = nobody charges it: a place of the user's own has its cost, whatever
// is kept there. Sizes count whole MiB, rounded up; of in's resources and times, nothing counts.
func KeptPrices(in QuoteInput, bytes int64) (*PriceSnapshot, error) {
	if in.PricingModel == extensions.PricingSelfHosted {
		return nil, nil
	}
	p := pricing{PriceSnapshot: UnknownPrices(in.Extension, in.BYOK)}
	p.Region = in.Region
	if book := in.Book; book != nil {
		if err := p.keptBy(book); err != nil {
			return nil, err
		}
	}
	p.Kept = true
	if bytes > 0 && bytes <= mostKept {
		p.Sizes.DiskMiB = (bytes + 1<<20 - 1) >> 20
	}
	if len(p.Prices) > 0 && in.Fee != nil && in.Fee.Share != "" {
		share := *in.Fee // what a sandbox pays once or by the hour, a snapshot does not
		share.PerHour, share.PerCreation = "", ""
		in.Fee = &share
		if err := p.addFee(in); err != nil {
			return nil, err
		}
	}
	return &p.PriceSnapshot, nil
}

// Free reports that every price is known, and zero.
func (s PriceSnapshot) Free() bool {
	return len(s.Prices) > 0 && !slices.ContainsFunc(s.Prices, func(p SnapshotPrice) bool { return p.Price == nil || *p.Price != 0 })
}

func (p *pricing) keptBy(b *Book) error {
	if err := b.Validate(); err != nil {
		return extensions.Errorf(extensions.KindInvalid, "%s: %w", b.title(), err)
	}
	for _, bp := range b.Components {
		if bp.Component != ComponentSnapshot || !b.applies(bp, p.Region) {
			continue
		}
		price, err := b.snapshotPrice(bp)
		if err != nil {
			return err
		}
		p.Basis, p.Book, p.BookVersion, p.AsOf, p.Source = BasisBook, b.ID, b.Version, b.AsOf, b.Source
		p.Currency, p.Confidence, p.Prices = b.Currency, price.Confidence, append(p.Prices, price)
	}
	return nil
}
