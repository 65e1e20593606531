package plan

import (
	"errors"
	"math/bits"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Liability is the worst case of a life, at the prices it is settled with, and how it is paid.
type Liability struct {
	prices     meter.PriceSnapshot
	sizes      meter.Sizes
	selfHosted bool          // no vendor bills
	bill       string        // the request's billing, else the binding's; "" = platform once the org was granted credit
	grain      time.Duration // how much later than its deadline the place may end it
	// head is how much of the ttl had passed when the meter was opened.
	head time.Duration
	// quoted is the exact worst case at the ttl of a quote; nil if the life runs, since its hold then tells
	// how it is paid.
	quoted *worstCase
	ttl    time.Duration
	payer  string // who pays for a running life; "" = undecided
	first  bool   // the sandbox's first life, whose ttl counts from its beginning
	// quotes says that lines are rounded up as in a quote, without the allowance for rounding several
	// meters.
	quotes bool
}

// worstCase is the most that a life costs; nil is unknown.
type worstCase struct {
	all *meter.Amount
	// fee is the part that the wallet pays if the user's own key pays the vendor.
	fee *meter.Amount
}

// LiabilityOf returns the liability of a live sandbox from its meters; false if none runs. c is what its
// place can do. It stays paid as it began, whatever its request says now.
func LiabilityOf(row ledger.Sandbox, meters []ledger.Meter, c extensions.Capabilities) (Liability, bool, error) {
	if len(meters) == 0 || !meters[len(meters)-1].Open() {
		return Liability{}, false, nil
	}
	m := meters[len(meters)-1]
	prices, err := meter.DecodePriceSnapshot(string(m.Rates))
	if err != nil {
		return Liability{}, false, err
	}
	w := Liability{prices: prices, sizes: prices.Sizes, selfHosted: c.SelfHosted(), grain: c.DeadlineGrain,
		head: max(0, m.OpenedAt.Sub(row.CreatedAt)), payer: row.Payer, first: m.Generation == 1}
	if n := len(m.Segments); n > 0 {
		w.sizes = meter.SizesFromMap(m.Segments[n-1].Sizes)
	}
	return w, true, nil
}

// Metered reports whether a vendor bills.
func (w Liability) Metered() bool { return !w.selfHosted }

// at returns the worst case of a ttl, rounded up, without outgoing traffic, which nobody can foresee.
func (w Liability) at(ttl time.Duration) (worstCase, error) {
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

// lines returns the most that a ttl is charged, as far as it can be foreseen.
func (w Liability) lines(ttl time.Duration) ([]meter.ChargeLine, error) {
	ms := (max(0, ttl-w.head) + w.grain + time.Millisecond - 1).Milliseconds()
	price := meter.Charge
	if w.quotes {
		price = meter.WorstCase
	}
	return price([]meter.Segment{{Mode: meter.ModeRunning, Milliseconds: ms, Sizes: w.sizes, EgressBytes: new(int64)}}, w.prices.Dearest())
}

// bound returns the sum of lines, nil if one is unknown. A line is rounded half up, so one nano-unit more
// bounds it from above; as much again covers the rounding of shares of such lines.
func (w Liability) bound(lines []meter.ChargeLine) (*meter.Amount, error) {
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

// exact reports whether a line was not rounded.
func exact(l meter.ChargeLine) bool {
	per, _, ok := meter.QuantaPerUnit(l.Unit)
	if !ok || per <= 0 {
		return false
	}
	hi, lo := bits.Mul64(uint64(l.Quantity), uint64(l.UnitPrice))
	return bits.Rem64(hi, lo, uint64(per)*1000) == 0 // pico-units in a nano-unit
}

// Reserve returns what must be set aside in all for a ttl.
func (w Liability) Reserve(ttl time.Duration) (*ledger.Reserve, error) {
	r := &ledger.Reserve{Total: true, TTL: ttl, Anew: w.quoted != nil, Memo: ledger.AccountBYOK}
	if w.selfHosted {
		r.Memo = ledger.AccountInfra
	}
	whole, own, known, err := w.shares(ttl)
	if err != nil {
		return nil, err
	}
	// An unknown price is set aside as unknown, except for the user's own place.
	r.Unknown = !known && !w.selfHosted
	if !known && whole.Amount == 0 {
		return r, nil
	}
	r.Currency, r.Amount, r.Fixed, r.Hourly, r.Own = string(w.prices.Currency), whole.Amount, whole.Fixed, whole.Hourly, own
	switch {
	case w.selfHosted:
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

// shares returns the worst case of a ttl, and the part of it paid to somebody other than the platform. If
// known is false, whole is the part that is known: the fee.
func (w Liability) shares(ttl time.Duration) (whole, own ledger.Share, known bool, err error) {
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
	case !known: // the vendor's price is unknown
		return fee, own, false, nil
	case priced:
		own = ledger.Share{Amount: whole.Amount - fee.Amount, Fixed: whole.Fixed - fee.Fixed, Hourly: max(0, whole.Hourly-fee.Hourly)}
	}
	return whole, own, true, nil
}

// fits returns the longest ttl below ttl, in whole minutes, whose worst case, or whose fee, is at most
// available; 0 = none. A price may have steps (minimums, increments, free parts) but never falls with
// time.
func (w Liability) fits(available int64, fee bool, ttl time.Duration) time.Duration {
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

// Unaffordable explains a refusal for want of funds; about names what was refused.
func (w Liability) Unaffordable(err error, about string, ttl time.Duration) error {
	var short *ledger.Insufficient
	var unpriced *ledger.Unpriced
	switch {
	case errors.As(err, &short):
		if !short.Part || w.prices.FeeOnly() { // else the fee is paid to another, who said what fits
			short.Fits = w.fits(short.Available+short.Held, short.Part, ttl)
		}
		next := "destroy unused sandboxes, or raise the limit (`sandboxer ledger grant`, `sandboxer ledger budget`)"
		if short.Fits > 0 {
			next = "set ttl to at most " + profile.FormatDuration(short.Fits) + ", " + next
		}
		return extensions.AtField("ttl", extensions.Errorf(extensions.KindExhausted, "%s %w", about, short).WithRemedy("%s", next))
	case errors.As(err, &unpriced):
		return extensions.Errorf(extensions.KindExhausted, "%s cannot be used: %w", about, unpriced).WithRemedy("%s", extensions.RemedyOf(err))
	}
	return err
}

// LimitOf names the limit of money or speed that refused, for a summary: a wallet, a budget or a ceiling;
// "" for every other error.
func LimitOf(err error) string {
	var short *ledger.Insufficient
	var unpriced *ledger.Unpriced
	var fast *ledger.TooFast
	switch {
	case errors.As(err, &short), errors.As(err, &unpriced):
		return "it cannot be paid for"
	case errors.As(err, &fast):
		return "a ceiling has been reached"
	}
	return ""
}

// Settled returns the amount that stays set aside for a settled deadline, which is what a create with that ttl
// would need; nil if unknown. It never sets anything aside.
func (w Liability) Settled(ttl time.Duration) *ledger.Reserve {
	w.quotes = true
	if w.first {
		w.head = 0
	}
	r, err := w.Reserve(ttl)
	if err != nil || r.Unknown && r.Amount == 0 {
		return nil
	}
	r.Less = true
	return r
}
