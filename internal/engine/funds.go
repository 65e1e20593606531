package engine

import (
	"context"
	"errors"
	"math/bits"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/account"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// liability is what a life costs at most, by the prices it is settled with,
// and how it is paid.
type liability struct {
	prices meter.PriceSnapshot
	sizes  meter.Sizes
	own    bool   // a place of the user's own: nobody sends a bill
	bill   string // the request's billing, else the binding's; "" = platform credit once there was any
	// head is how much of the ttl had passed when the meter was opened.
	head time.Duration
	// quoted is the worst case at the ttl of a quote, exactly; nil where the
	// life runs, and what is set aside for it tells how it is paid.
	quoted *worstCase
	ttl    time.Duration
	payer  string // who pays for a life that runs; "" = nobody decided
	first  bool   // it is the sandbox's first life, whose ttl counts from its beginning
	// quotes: lines are rounded up as a quote does, without what bounds the
	// rounding of several meters' worth of them.
	quotes bool
}

// worstCase is what a life costs at most; nil is not known.
type worstCase struct {
	all *meter.Amount
	// fee is what of it the wallet pays where the user's own key pays the vendor.
	fee *meter.Amount
}

// liabilityAt is that of a place which a request may get.
func (p *prepared) liabilityAt(cand *route.Candidate) liability {
	q := p.quotes[cand.ID()]
	return liability{prices: q.Snapshot, sizes: q.Sizes, own: selfHosted(cand), bill: cand.PaidAs(p.req.Billing),
		quoted: &worstCase{q.Reserve, q.Wallet}, ttl: time.Duration(p.resolved.Spec.TTL)}
}

// liabilityOf is that of a sandbox that lives; false where no meter runs. It
// goes on being paid as it was begun, whatever its request says by now.
func (e *Engine) liabilityOf(ctx context.Context, l ledger.Ledger, row ledger.Sandbox) (liability, bool, error) {
	meters, err := l.Meters(ctx, row.ID)
	if err != nil || len(meters) == 0 || !meters[len(meters)-1].Open() {
		return liability{}, false, err
	}
	m := meters[len(meters)-1]
	prices, err := meter.DecodePriceSnapshot(string(m.Rates))
	if err != nil {
		return liability{}, false, err
	}
	w := liability{prices: prices, sizes: prices.Sizes, own: e.ownPlace(row.Extension), head: max(0, m.OpenedAt.Sub(row.CreatedAt)),
		payer: row.Payer, first: m.Generation == 1}
	if n := len(m.Segments); n > 0 {
		w.sizes = meter.SizesFromMap(m.Segments[n-1].Sizes)
	}
	return w, true, nil
}

// at is the worst case of a ttl, rounded up. Traffic out, which nobody can
// foresee, is not in it.
func (w liability) at(ttl time.Duration) (worstCase, error) {
	if w.quoted != nil && ttl == w.ttl {
		return *w.quoted, nil
	}
	lines, err := w.lines(ttl)
	if err != nil {
		return worstCase{}, err
	}
	all, err := w.bound(lines)
	if err != nil || !w.prices.FeeOnly() {
		return worstCase{all: all}, err
	}
	fee, err := w.bound(slices.DeleteFunc(lines, func(l meter.ChargeLine) bool { return l.Memo }))
	return worstCase{all, fee}, err
}

// lines are what a ttl is charged at most, as far as it can be foreseen.
func (w liability) lines(ttl time.Duration) ([]meter.ChargeLine, error) {
	ms := (max(0, ttl-w.head) + time.Millisecond - 1).Milliseconds()
	price := meter.Charge
	if w.quotes {
		price = meter.WorstCase
	}
	return price([]meter.Segment{{Mode: meter.ModeRunning, Milliseconds: ms, Sizes: w.sizes, EgressBytes: new(int64)}}, w.prices.Dearest())
}

// bound is the sum of lines, nil where one is not known. A line is rounded half
// up: one nano-unit more bounds it from above, and as much again what shares of
// such lines are off by.
func (w liability) bound(lines []meter.ChargeLine) (*meter.Amount, error) {
	sum, known, err := meter.Total(lines)
	if err != nil || !known {
		return nil, err
	}
	rounded := meter.Amount(0)
	for _, l := range lines {
		if !exact(l) && !w.quotes {
			rounded += 2
		}
	}
	sum, err = sum.Add(rounded)
	return &sum, err
}

// exact reports a line that was not rounded.
func exact(l meter.ChargeLine) bool {
	per, _, ok := meter.QuantaPerUnit(l.Unit)
	if !ok || per <= 0 {
		return false
	}
	hi, lo := bits.Mul64(uint64(l.Quantity), uint64(l.UnitPrice))
	return bits.Rem64(hi, lo, uint64(per)*1000) == 0 // pico-units in a nano-unit
}

// reserve is what has to be set aside in all for a ttl.
func (w liability) reserve(ttl time.Duration) (*ledger.Reserve, error) {
	r := &ledger.Reserve{Total: true, TTL: ttl, Anew: w.quoted != nil, Memo: ledger.AccountBYOK}
	if w.own {
		r.Memo = ledger.AccountInfra
	}
	whole, own, known, err := w.shares(ttl)
	if err != nil {
		return nil, err
	}
	// What nobody knows is set aside for nobody's place but one's own.
	r.Unknown = !known && !w.own
	if !known && whole.Amount == 0 {
		return r, nil
	}
	r.Currency, r.Amount, r.Fixed, r.Hourly, r.Own = string(w.prices.Currency), whole.Amount, whole.Fixed, whole.Hourly, own
	switch {
	case w.own:
	case w.prices.FeeOnly(): // the user's own key pays the vendor, the wallet the fee
		r.Wallet = true
	case w.prices.Memo: // the user's own key
	case w.bill == route.BillingPlatform, w.payer == ledger.AccountWallet:
		r.Wallet = true
	case w.payer != "":
		r.Memo = w.payer
	default:
		r.IfGranted = true
	}
	return r, nil
}

// shares is the worst case of a ttl and what of it another is paid than the
// platform; where known is false, what is known of it, which is the fee.
func (w liability) shares(ttl time.Duration) (whole, own ledger.Share, known bool, err error) {
	var at [3]worstCase
	for i, d := range []time.Duration{ttl, w.head, w.head + time.Hour} {
		if at[i], err = w.at(d); err != nil {
			return whole, own, false, err
		}
	}
	of := func(part func(worstCase) *meter.Amount) (ledger.Share, bool) {
		amount, fixed, hour := part(at[0]), part(at[1]), part(at[2])
		if amount == nil || fixed == nil || hour == nil {
			return ledger.Share{}, false
		}
		return ledger.Share{Amount: int64(*amount), Fixed: int64(*fixed), Hourly: max(0, int64(*hour-*fixed))}, true
	}
	whole, known = of(func(c worstCase) *meter.Amount { return c.all })
	if !w.prices.FeeOnly() {
		return whole, own, known, nil
	}
	fee, priced := of(func(c worstCase) *meter.Amount { return c.fee })
	switch {
	case !known: // of the vendor's price nothing is known
		return fee, own, false, nil
	case priced:
		own = ledger.Share{Amount: whole.Amount - fee.Amount, Fixed: whole.Fixed - fee.Fixed, Hourly: max(0, whole.Hourly-fee.Hourly)}
	}
	return whole, own, true, nil
}

// fits is the longest ttl below ttl, in whole minutes, whose worst case, or of
// it the fee, is at most so much; 0 = none. A price has steps (minimums,
// increments, free parts), but never falls with time.
func (w liability) fits(available int64, fee bool, ttl time.Duration) time.Duration {
	low, high := int64(0), int64((ttl-1)/time.Minute)
	for low < high {
		mid := low + (high-low+1)/2
		worst, err := w.at(time.Duration(mid) * time.Minute)
		amount := worst.all
		if fee {
			amount = worst.fee
		}
		if err != nil || amount == nil || int64(*amount) > available {
			high = mid - 1
		} else {
			low = mid
		}
	}
	return time.Duration(low) * time.Minute
}

// unaffordable explains a refusal for want of funds of what is about.
func (w liability) unaffordable(err error, about string, ttl time.Duration) error {
	var short *ledger.Insufficient
	var unpriced *ledger.Unpriced
	switch {
	case errors.As(err, &short):
		if !short.Part || w.prices.FeeOnly() { // else the fee is another's, who told what fits
			short.Fits = w.fits(short.Available+short.Held, short.Part, ttl)
		}
		next := "destroy what is not needed, or have the limit raised (`sandboxer ledger grant`, `sandboxer ledger budget`)"
		if short.Fits > 0 {
			next = "set ttl to at most " + profile.FormatDuration(short.Fits) + ", " + next
		}
		return extensions.AtField("ttl", extensions.Errorf(extensions.KindExhausted, "%s %w", about, short).WithRemedy("%s", next))
	case errors.As(err, &unpriced):
		return extensions.Errorf(extensions.KindExhausted, "%s cannot be used: %w", about, unpriced).WithRemedy("%s", extensions.RemedyOf(err))
	}
	return err
}

// LimitOf says which limit of money or speed refused, as a summary: that of a
// wallet or budget, or a ceiling; "" for every other error.
func LimitOf(err error) string {
	var short *ledger.Insufficient
	var unpriced *ledger.Unpriced
	var fast *ledger.TooFast
	switch {
	case errors.As(err, &short), errors.As(err, &unpriced):
		return "it cannot be paid for"
	case errors.As(err, &fast):
		return "a ceiling is reached"
	}
	return ""
}

// settledEnd is the release of what an end that is settled does not need: what
// stays set aside is what a create with that ttl would need. nil where that is
// not known. It never sets anything aside.
func (e *Engine) settledEnd(ctx context.Context, l ledger.Ledger, row ledger.Sandbox, end time.Time) *ledger.Reserve {
	w, runs, err := e.liabilityOf(context.WithoutCancel(ctx), l, row)
	if err != nil || !runs {
		return nil // held until the end of the life
	}
	w.quotes = true
	if w.first {
		w.head = 0
	}
	r, err := w.reserve(end.Sub(row.CreatedAt))
	if err != nil || r.Unknown && r.Amount == 0 {
		return nil
	}
	r.Less = true
	return r
}

// reserveLater adds to a change what a later end needs beside what is set
// aside; an end that is not later needs nothing.
func (e *Engine) reserveLater(ctx context.Context, l ledger.Ledger, row ledger.Sandbox, end time.Time, c *ledger.Change) (liability, error) {
	if !end.After(row.ExpiresAt) {
		return liability{}, nil
	}
	w, runs, err := e.liabilityOf(ctx, l, row)
	if err != nil || !runs {
		return w, err
	}
	c.Reserve, err = w.reserve(end.Sub(row.CreatedAt))
	c.Ceilings = account.CeilingsOf(e.catalog, row.Account, !w.own)
	return w, err
}

// affordLater sets aside what a later end needs, in a step of its own.
func (o *operation) affordLater(ctx context.Context, end time.Time, ttl time.Duration) error {
	c := ledger.Change{Event: ledger.NewNote("sandbox.extending", map[string]any{"expires_at": end})}
	w, err := o.e.reserveLater(ctx, o.l, o.row, end, &c)
	if err != nil || c.Reserve == nil {
		return err
	}
	return w.unaffordable(o.apply(ctx, c), "the later end", ttl)
}
