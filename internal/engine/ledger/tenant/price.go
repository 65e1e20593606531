package tenant

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// quotedFor is the place that a quote's body names.
func quotedFor(q *ledger.Quote) string {
	var body struct {
		Extension string `json:"extension"`
	}
	if q != nil {
		_ = json.Unmarshal(q.Body, &body) // of any form: a body without it names none
	}
	return body.Extension
}

// priceBegin lets the owner price the place that a begin was quoted for.
func (v *view) priceBegin(b *ledger.Begin) error {
	place := b.Extension
	if place == "" {
		place = quotedFor(b.Quote)
	}
	if place == "" {
		if b.Reserve != nil {
			return failure(extensions.KindInvalid, "something is to be set aside, and nothing says for which place").
				WithRemedy("use a client that sends its quote")
		}
		return nil
	}
	p, err := v.Pricer.Price(Asked{Extension: place, HostRef: b.HostRef, Spec: b.Spec, Request: b.Request, TTL: b.TTL})
	if err != nil {
		return err
	}
	b.Metered = p.Metered
	if !p.Metered {
		b.Reserve = noWallet(b.Reserve)
		return memoQuote(b.Quote)
	}
	b.Quote, b.Reserve = p.quote(b.Quote), &p.Reserve
	return nil
}

// quote is the client's, if it has the owner's prices; else the owner's.
func (p Price) quote(told *ledger.Quote) *ledger.Quote {
	if told != nil && len(told.Prices) == 1 && bytes.Equal(told.Prices[0].Body, p.Rates) {
		return told
	}
	q := p.Quote
	return &q
}

// bound works out what a change comes to: one change, or two where what was
// made has to be paid for that nobody metered.
func (v *view) bound(ctx context.Context, row ledger.Sandbox, c ledger.Change) ([]ledger.Change, error) {
	place := placed(row, c)
	price := Price{}
	if at := cmp.Or(place.Extension, quotedFor(c.Quote)); at != "" {
		var err error
		price, err = v.Pricer.Price(Asked{Extension: at, HostRef: place.HostRef, Spec: place.Spec, Request: place.Request, TTL: place.TTL})
		if err != nil {
			return nil, err
		}
	} else {
		c.Reserve = nil
	}
	meters, err := v.base.Meters(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	ran := len(meters) > 0 && meters[len(meters)-1].Generation == row.Generation
	if err := v.leave(row, c, place, ran); err != nil {
		return nil, err
	}
	c.Meter = copied(c.Meter)
	v.boundPatch(row, &c.Patch)
	var open *ledger.Meter
	if n := len(meters); n > 0 && meters[n-1].Open() {
		open = &meters[n-1]
	}
	if !price.Metered && !billed(open) {
		c, err := v.told(c)
		return []ledger.Change{c}, err
	}
	c.Expect.UpdatedAt = row.UpdatedAt
	v.boundMeter(row, open, &c)
	if c.Meter.Close != nil {
		c.Meter.Close.Booked = nil // amounts are the owner's
	}
	if !price.Metered {
		c, err := v.told(c)
		return []ledger.Change{c}, err
	}
	head := time.Duration(0)
	if open != nil {
		head = max(0, open.OpenedAt.Sub(row.CreatedAt))
	}
	return v.metered(ctx, row, c, place, price, head, ran)
}

// placed is where the sandbox is after the change, and what is asked for there.
func placed(row ledger.Sandbox, c ledger.Change) ledger.Sandbox {
	setText(&row.Extension, c.Patch.Extension)
	setText(&row.HostRef, c.Patch.HostRef)
	if c.Patch.Spec != nil {
		row.Spec = c.Patch.Spec
	}
	if c.Patch.Request != nil {
		row.Request = c.Patch.Request
	}
	if c.Patch.TTL != nil {
		row.TTL = *c.Patch.TTL
	}
	return row
}

// leave refuses to forget what was made at a place that sends a bill: another
// place is tried only where nothing was.
func (v *view) leave(row ledger.Sandbox, c ledger.Change, to ledger.Sandbox, ran bool) error {
	if row.Extension == "" || row.Extension == to.Extension || c.NextGeneration || anew(row, ran) {
		return nil
	}
	from, err := v.Pricer.Price(Asked{Extension: row.Extension, HostRef: row.HostRef, Spec: row.Spec, Request: row.Request, TTL: row.TTL})
	if err != nil || !from.Metered || !ran && row.Handle.IsZero() && v.now().Sub(row.CreatedAt) <= v.Window {
		return err
	}
	return failure(extensions.KindConflict, "what was made at %s is not settled, so %s is not tried", row.Extension, to.Extension).
		WithRemedy("end the sandbox, then make it anew")
}

// anew reports a life that has just begun after another one, whose handle the
// row may still have.
func anew(row ledger.Sandbox, ran bool) bool { return row.Generation > 1 && !ran }

// billed reports a meter whose charges move money.
func billed(m *ledger.Meter) bool {
	if m == nil || len(m.Rates) == 0 {
		return false
	}
	s, err := meter.DecodePriceSnapshot(string(m.Rates))
	return err != nil || !s.Memo
}

// metered is bound for a place that sends a bill.
func (v *view) metered(ctx context.Context, row ledger.Sandbox, c ledger.Change, place ledger.Sandbox, price Price, head time.Duration, ran bool) ([]ledger.Change, error) {
	if c.Intent != nil {
		in := *c.Intent
		in.Metered = true
		c.Intent = &in
	}
	if h := c.Patch.Handle; h != nil && h.IsZero() && row.Extension == place.Extension && !c.NextGeneration && !anew(row, ran) {
		c.Patch.Handle = nil // what was made is not forgotten
	}
	stored, err := v.stored(ctx, row.QuoteDigest)
	if err != nil {
		return nil, err
	}
	switch fresh := c.Quote != nil || c.NextGeneration || quotedFor(stored) != place.Extension; {
	case fresh && place.Extension != "":
		c.Quote, c.Reserve = price.quote(c.Quote), &price.Reserve
	case c.Reserve != nil || later(row, c.Patch):
		ttl := endOf(row, c.Patch).Sub(row.CreatedAt)
		if c.Reserve != nil { // for an end that is not there yet
			ttl = max(ttl, c.Reserve.TTL)
		}
		price, err = v.Pricer.Price(Asked{Extension: place.Extension, HostRef: place.HostRef, Spec: place.Spec, Request: place.Request,
			TTL: ttl, Head: head, Rates: ratesOf(stored)})
		if err != nil {
			return nil, err
		}
		c.Reserve = &price.Reserve
	default:
		if fixed := ratesOf(stored); fixed != nil {
			price.Rates = fixed
		}
	}
	if c.Reserve != nil {
		c.Ceilings = v.withCeilings(row.Account, true, c.Ceilings)
	}
	if c.Meter.Open != nil {
		if err := v.rate(&c.Meter, price); err != nil {
			return nil, err
		}
	}
	return v.proved(ctx, row, c, price, ran)
}

// rate opens a meter with the owner's prices and sizes.
func (v *view) rate(ops *ledger.MeterOps, p Price) error {
	s, err := meter.DecodePriceSnapshot(string(p.Rates))
	if err != nil {
		return err
	}
	o := *ops.Open
	o.Rates, o.Currency, o.Sizes = p.Rates, string(s.Currency), s.Sizes.Map()
	ops.Open = &o
	return nil
}

// stored is a quote of the ledger; nil for none.
func (v *view) stored(ctx context.Context, digest string) (*ledger.Quote, error) {
	if digest == "" {
		return nil, nil
	}
	q, err := v.base.Quote(ctx, digest)
	return &q, err
}

func ratesOf(q *ledger.Quote) json.RawMessage {
	if q == nil || len(q.Prices) == 0 {
		return nil
	}
	return q.Prices[0].Body
}

func later(row ledger.Sandbox, p ledger.Patch) bool { return endOf(row, p).After(row.ExpiresAt) }

func endOf(row ledger.Sandbox, p ledger.Patch) time.Time {
	if p.ExpiresAt != nil {
		return *p.ExpiresAt
	}
	return row.ExpiresAt
}

// copied lets the times of a change be moved without moving the caller's.
func copied(ops ledger.MeterOps) ledger.MeterOps {
	if ops.Close != nil {
		c := *ops.Close
		ops.Close = &c
	}
	if ops.Open != nil {
		o := *ops.Open
		ops.Open = &o
	}
	if ops.Switch != nil {
		s := *ops.Switch
		ops.Switch = &s
	}
	return ops
}

func setText(to *string, v *string) {
	if v != nil {
		*to = *v
	}
}
