package bank

import (
	"math"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Sums are the durations and costs of lives.
type Sums struct {
	Running, Paused int64 // milliseconds
	// Nano-units, by who pays: the wallet; the vendor's customer through the user's own key; the owner of
	// the place.
	Wallet, OwnKey, OwnPlace int64
	// Unpriced counts lives with a charge of unknown price. The per-payer counts say whose sums lack such
	// amounts and are lower bounds.
	Unpriced                                      int64
	WalletUnknown, OwnKeyUnknown, OwnPlaceUnknown int64
	// Mixed says that a meter has charges in other currencies, which its sums leave out.
	Mixed bool
}

func (s *Sums) time(segments []Segment) {
	for _, seg := range segments {
		ms := seg.EndedAt.UnixMilli() - seg.StartedAt.UnixMilli()
		if seg.Mode == meter.ModePaused {
			s.Paused += ms
		} else {
			s.Running += ms
		}
	}
}

// payer returns the sum, and the count of unknown amounts, of whoever pays a charge with this memo
// account.
func (s *Sums) payer(memo string) (sum, unknown *int64) {
	switch {
	case memo == "":
		return &s.Wallet, &s.WalletUnknown
	case strings.HasPrefix(memo, AccountBYOK+":"):
		return &s.OwnKey, &s.OwnKeyUnknown
	}
	return &s.OwnPlace, &s.OwnPlaceUnknown
}

func (s *Sums) book(c Charge) error {
	sum, unknown := s.payer(c.Memo)
	if !c.Known() {
		*unknown++
		return nil
	}
	if c.Amount > 0 && *sum > math.MaxInt64-c.Amount {
		return fault.Errorf(extensions.KindInvalid, "usage adds up to more than the largest amount: %s and %s", meter.Amount(*sum),
			meter.Amount(c.Amount))
	}
	*sum += c.Amount
	return nil
}

// SumsOf returns the sums of a meter with these charges.
func SumsOf(m Meter, charges []Charge) (Sums, error) {
	var s Sums
	if m.SnapshotID == "" { // what is kept does not live
		s.time(m.Segments)
	}
	for _, c := range charges {
		if c.Currency != m.Currency {
			s.Mixed = true
			continue
		}
		if !c.Known() {
			s.Unpriced = 1
		}
		if err := s.book(c); err != nil {
			return s, err
		}
	}
	return s, nil
}
