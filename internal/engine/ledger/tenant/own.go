package tenant

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// ownPlace refuses to take somebody's word for what is billed.
func (v *view) ownPlace(row ledger.Sandbox, q *ledger.Quote) error {
	if err := memoQuote("", q); err != nil {
		return err
	}
	a := asked(row)
	for _, place := range []string{row.Extension, named(q).Extension} {
		if place == "" {
			continue
		}
		a.Extension = place
		p, err := v.Pricer.Price(a)
		if err != nil {
			return err
		}
		if p.Metered {
			return failure(extensions.KindInvalid, "%s sends a bill: what happened there is not recorded afterwards", place)
		}
	}
	return nil
}

// told is a change at a place of the client's own: what it costs there is the
// client's to tell, and a memo.
func (v *view) told(place string, c ledger.Change) (ledger.Change, error) {
	v.boundPatch(ledger.Sandbox{}, &c.Patch)
	c.Reserve, c.Meter = noWallet(c.Reserve), copied(c.Meter)
	if c.Intent != nil {
		in := *c.Intent
		in.Metered = false
		c.Intent = &in
	}
	if err := memoQuote(place, c.Quote); err != nil {
		return c, err
	}
	now := v.now()
	if o := c.Meter.Open; o != nil {
		o.At = notAfter(o.At, now)
		rates, err := memoRates(o.Rates)
		if err != nil {
			return c, err
		}
		o.Rates = rates
	}
	if s := c.Meter.Switch; s != nil {
		s.At = notAfter(s.At, now)
	}
	if e := c.Meter.Close; e != nil {
		e.At = notAfter(e.At, now)
		if e.Booked != nil && slices.ContainsFunc(e.Booked.Charges, func(c ledger.Charge) bool {
			return !strings.HasPrefix(c.Memo, ledger.AccountInfra+":") && !strings.HasPrefix(c.Memo, ledger.AccountBYOK+":")
		}) {
			return c, failure(extensions.KindInvalid, "a charge of an own place is no memo")
		}
	}
	return c, nil
}

// noWallet keeps a reservation for an own place away from the wallet.
func noWallet(r *ledger.Reserve) *ledger.Reserve {
	if r == nil {
		return nil
	}
	out := *r
	out.Wallet, out.IfGranted, out.Own = false, false, ledger.Share{}
	out.Memo = ledger.AccountInfra
	return &out
}

var errBilled = errors.New("the prices of an own place are not marked as a memo")

// memoQuote refuses a quote of an own place whose prices would be billed, and
// one that names another place: a quote is kept by its digest, and whoever
// quotes the same content afterwards has the prices that are kept.
func memoQuote(place string, q *ledger.Quote) error {
	if q == nil {
		return nil
	}
	if at := named(q).Extension; place != "" && at != "" && at != place {
		return failure(extensions.KindInvalid, "the quote is for %s, and the place is %s", extensions.Clean(at, 80), place)
	}
	for _, p := range q.Prices {
		if _, err := memoRates(p.Body); err != nil {
			return err
		}
	}
	return nil
}

func memoRates(rates json.RawMessage) (json.RawMessage, error) {
	if len(rates) == 0 {
		return nil, nil
	}
	s, err := meter.DecodePriceSnapshot(string(rates))
	if err != nil {
		return nil, err
	}
	if !s.Memo {
		return nil, failure(extensions.KindInvalid, "%w", errBilled)
	}
	return rates, nil
}
