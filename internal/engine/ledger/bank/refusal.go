package bank

import (
	"cmp"
	"math/bits"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// fits returns the longest ttl, in whole minutes and at most ttl, whose worst case is available.
func (s Share) fits(available int64, ttl time.Duration) time.Duration {
	if s.Hourly <= 0 || available <= s.Fixed {
		return 0
	}
	hi, lo := bits.Mul64(uint64(available-s.Fixed), uint64(time.Hour))
	if hi >= uint64(s.Hourly) {
		return ttl
	}
	most, _ := bits.Div64(hi, lo, uint64(s.Hourly))
	return min(time.Duration(min(most, uint64(ttl))), ttl).Truncate(time.Minute)
}

func (r Reserve) unpriced(bs []Budget) error {
	for _, b := range bs {
		if b.Hard {
			return fault.New(extensions.KindExhausted, "", &Unpriced{Limit: b.title()}).
				WithRemedy("choose a place with a known price, add a price book for this one to the catalog, " +
					"or ask to make the budget soft")
		}
	}
	return nil
}

// refusal returns the error of the limit that allows the shortest ttl; among equals, of the one with the
// largest shortfall; nil if all suffice.
func (r Reserve) refusal(parts []portion, wallet Balance, bs []Budget) error {
	var worst *Insufficient
	var lacking uint64
	limit := func(name string, need Share, kept, available int64) {
		missing := need.Amount - kept
		if missing <= available {
			return
		}
		lacks := uint64(missing) - uint64(available) // available may be negative; the unsigned difference always fits
		available = max(0, available)
		e := &Insufficient{Limit: name, Need: missing, Available: available, Held: kept, Currency: r.Currency, TTL: r.TTL,
			Fits: need.fits(add(available, kept), r.TTL)}
		if worst == nil || cmp.Or(cmp.Compare(e.Fits, worst.Fits), cmp.Compare(lacking, lacks)) < 0 {
			worst, lacking = e, lacks
		}
	}
	all, kept := Share{}, int64(0)
	for _, p := range parts {
		all = Share{all.Amount + p.Amount, all.Fixed + p.Fixed, all.Hourly + p.Hourly}
		kept += min(p.kept, p.Amount)
		if p.payer == AccountWallet && p.missing() > 0 {
			limit(wallet.title(), p.Share, p.kept, wallet.Available())
			if worst != nil {
				worst.Part = p.Share != r.whole()
			}
		}
	}
	for _, b := range bs {
		if b.Hard {
			limit(b.title(), all, kept, b.Available())
		}
	}
	if worst == nil {
		return nil
	}
	return fault.New(extensions.KindExhausted, "", worst).WithRemedy("shorten ttl, destroy unused sandboxes, or ask to raise the limit")
}
