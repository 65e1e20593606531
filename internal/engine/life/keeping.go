package life

import (
	"encoding/json"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// keeping returns what counts a snapshot from now on, at the catalog's prices of today. Who paid for its sandbox pays
// for it.
func (m *Manager) keeping(b *place.Backend, s ledger.Snapshot, made extensions.Snapshot) (*ledger.MeterOpen, error) {
	in := plan.QuoteInput(m.catalog, b.Binding, nil, b.Binding.Region, extensions.Resources{}, 0, s.Payer != ledger.AccountWallet)
	prices, err := meter.KeptPrices(in, made.SizeBytes)
	open := &ledger.MeterOpen{At: m.book.Now(), Source: "ours"}
	if err != nil || prices == nil {
		return open, err
	}
	open.Currency, open.Rates, open.Sizes = string(prices.Currency), json.RawMessage(prices.Encode()), prices.Sizes.Map()
	return open, nil
}

// checkEnd refuses a snapshot that platform credit pays for and nothing ends, as it refuses such sandboxes: keeping it
// would cost without end. payer paid for its sandbox.
func (m *Manager) checkEnd(b catalog.Binding, payer string, retention time.Duration) error {
	if payer != ledger.AccountWallet || retention > 0 || b.Descriptor.Snapshots.Expires > 0 {
		return nil
	}
	in := plan.QuoteInput(m.catalog, b, nil, b.Region, extensions.Resources{}, 0, false)
	if prices, err := meter.KeptPrices(in, 1<<30); err != nil || prices == nil || prices.Free() {
		return err
	}
	return extensions.AtField("retention", extensions.Invalid(
		"platform credit would pay without limit: nothing ends a snapshot at %s",
		"set retention, for example to 30d", b.ID))
}

// kept ends the count of a snapshot: now, or when its place deleted it.
func kept(s ledger.Snapshot, now time.Time) *ledger.MeterClose {
	if end := s.LapsesAt; !end.IsZero() && end.Before(now) {
		return &ledger.MeterClose{At: end, Source: "deadline"}
	}
	return &ledger.MeterClose{At: now, Source: "ours"}
}
