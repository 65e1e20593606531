package tenant

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// priceBegin lets the owner price the place that a begin was quoted for, if it
// lets the account use it.
func (v *view) priceBegin(ctx context.Context, b *ledger.Begin) error {
	place := chosen(rowOf(*b), b.Quote)
	if place.Extension == "" {
		if b.Reserve != nil {
			return failure(extensions.KindInvalid, "something is to be set aside, and nothing says for which place").
				WithRemedy("use a client that sends its quote")
		}
		return nil
	}
	if err := v.permit(ctx, place, b.Extension != ""); err != nil {
		return err
	}
	p, err := v.Pricer.Price(asked(place))
	if err != nil {
		return err
	}
	b.Metered = p.Metered
	if !p.Metered {
		b.Reserve = noWallet(b.Reserve)
		return memoQuote(place.Extension, b.Quote)
	}
	b.Quote, b.Reserve = &p.Quote, &p.Reserve
	return endless(place)
}

// endless refuses a bill without an end: nothing bounds what to set aside for.
func endless(place ledger.Sandbox) error {
	if place.TTL > 0 {
		return nil
	}
	return failure(extensions.KindInvalid, "%s sends a bill, and the sandbox has no ttl", place.Extension).WithRemedy("set ttl")
}

// bound works out what a change comes to: one change, or two where what was
// made has to be paid for that nobody metered.
func (v *view) bound(ctx context.Context, row ledger.Sandbox, c ledger.Change) ([]ledger.Change, error) {
	present, err := v.lifeOf(ctx, row)
	if err != nil {
		return nil, err
	}
	c.Meter = copied(c.Meter)
	v.boundPatch(row, &c.Patch)
	v.seen(&c)
	v.boundEnd(&c)
	place := v.placed(row, c, present.since)
	if takes(row, c, place) {
		if err := v.permit(ctx, place, c.Patch.Extension != nil || !c.NextGeneration); err != nil {
			return nil, err
		}
	}
	price, err := v.price(ctx, row, c, place, present.open)
	if err != nil {
		return nil, err
	}
	if place.Extension == "" {
		c.Reserve = nil
	}
	c.Room = owners(c, place.Extension, price.MaxSandboxes)
	if err := v.leave(row, c, place, present); err != nil {
		return nil, err
	}
	if !price.Metered && recreates(c) {
		c.Ceilings = v.withCeilings(row.Account, false, c.Ceilings)
	}
	if !price.Metered && !billed(present.open) {
		c, err := v.told(place.Extension, c)
		return []ledger.Change{c}, err
	}
	c.Expect.UpdatedAt = row.UpdatedAt
	v.boundMeter(row, present.open, &c)
	if c.Meter.Close != nil {
		c.Meter.Close.Booked = nil // amounts are the owner's
	}
	if !price.Metered {
		c, err := v.told(place.Extension, c)
		return []ledger.Change{c}, err
	}
	return v.metered(ctx, row, c, place, price, present)
}

// price is the owner's for the place. A change that only ends or describes what
// there is goes on by the prices that were fixed, where the owner's catalog has
// the place no more: nothing that lives is left without an end.
func (v *view) price(ctx context.Context, row ledger.Sandbox, c ledger.Change, place ledger.Sandbox, open *ledger.Meter) (Price, error) {
	if place.Extension == "" {
		return Price{}, nil
	}
	p, err := v.Pricer.Price(asked(place))
	if !extensions.IsKind(err, extensions.KindInvalid) || takes(row, c, place) || c.Quote != nil || c.Meter.Open != nil || c.Reserve != nil || later(row, c.Patch) {
		return p, err
	}
	if open != nil {
		return Price{Metered: billed(open), Rates: open.Rates}, nil
	}
	q, err := v.stored(ctx, row.QuoteDigest)
	if err != nil {
		return Price{}, err
	}
	rates := ratesOf(q)
	return Price{Metered: bills(rates), Rates: rates}, nil
}

// owners adds the room that the owner's catalog gives a place, where one is
// taken, to what the client's does.
func owners(c ledger.Change, place string, most *int64) []ledger.Room {
	if most == nil || c.Patch.Extension == nil && c.To != lifecycle.Provisioning {
		return c.Room
	}
	return append(slices.Clone(c.Room), ledger.Room{Extension: place, Max: *most})
}

// leave refuses to forget what was made at a place that sends a bill: another
// place is tried only where nothing was, and none at all is no place to go to.
func (v *view) leave(row ledger.Sandbox, c ledger.Change, to ledger.Sandbox, present life) error {
	if row.Extension == "" || row.Extension == to.Extension || c.NextGeneration && present.ran {
		return nil
	}
	from, err := v.Pricer.Price(asked(row))
	nothing := !present.ran && !present.made && v.now().Sub(present.since) <= v.Window
	if err != nil || !from.Metered || nothing && to.Extension != "" {
		return err
	}
	return failure(extensions.KindConflict, "what was made at %s is not settled, so %q is not tried", row.Extension, to.Extension).
		WithRemedy("end the sandbox, then make it anew")
}

// billed reports a meter whose charges move money.
func billed(m *ledger.Meter) bool { return m != nil && bills(m.Rates) }

func bills(rates json.RawMessage) bool {
	if len(rates) == 0 {
		return false
	}
	s, err := meter.DecodePriceSnapshot(string(rates))
	return err != nil || !s.Memo
}

// metered is bound for a place that sends a bill.
func (v *view) metered(ctx context.Context, row ledger.Sandbox, c ledger.Change, place ledger.Sandbox, price Price, present life) ([]ledger.Change, error) {
	if c.Intent != nil {
		in := *c.Intent
		in.Metered = true
		c.Intent = &in
	}
	if h := c.Patch.Handle; h != nil && h.IsZero() && row.Extension == place.Extension && !c.NextGeneration && present.made {
		c.Patch.Handle = nil // what was made is not forgotten
	}
	if end := c.Patch.ExpiresAt; end != nil && !present.ran && !c.NextGeneration && end.Before(row.ExpiresAt) {
		c.Patch.ExpiresAt = nil // what nobody metered counts until then
	}
	stored, err := v.stored(ctx, row.QuoteDigest)
	if err != nil {
		return nil, err
	}
	switch fresh := c.Quote != nil || c.NextGeneration || named(stored).Extension != place.Extension; {
	case fresh && place.Extension != "":
		if err := endless(place); err != nil {
			return nil, err
		}
		c.Quote, c.Reserve = &price.Quote, &price.Reserve
	case c.Reserve != nil || later(row, c.Patch):
		ttl := endOf(row, c.Patch).Sub(row.CreatedAt)
		if c.Reserve != nil { // for an end that is not there yet
			ttl = max(ttl, c.Reserve.TTL)
		}
		a := asked(place)
		a.TTL, a.Rates, a.Less = ttl, ratesOf(stored), less(c)
		if open := present.open; open != nil && !(a.Less && open.Generation == 1) { // a first life's ttl counts from its beginning
			a.Head = max(0, open.OpenedAt.Sub(row.CreatedAt))
		}
		if price, err = v.Pricer.Price(a); err != nil {
			return nil, err
		}
		price.Reserve.Less = a.Less
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
	if fixed := ratesOf(stored); fixed != nil && named(stored).Extension == row.Extension {
		price.Rates = fixed // of the life that ends, if one does
	}
	return v.proved(ctx, row, c, price, present)
}

// less reports a change that only releases.
func less(c ledger.Change) bool { return c.Reserve != nil && c.Reserve.Less }

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
