package plan

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// price quotes a candidate. One that cannot be priced for this request is left out of the range; a
// malformed price is an error.
func (d *Decision) price(b catalog.Binding, c *route.Candidate) error {
	return d.priceOf(b, c, d.Resolved.Spec.Resources)
}

func (d *Decision) priceOf(b catalog.Binding, c *route.Candidate, r extensions.Resources) error {
	in := QuoteInput(d.cat, b, c.Host, c.PlacedIn(d.Resolved.Policy.Region), r.RoundUp(c.Capabilities), d.TTL,
		c.PaidAs(d.Request.Billing) == route.BillingBYOK)
	in.Expected, in.History = d.Evidence.Expected, d.Evidence.Past[b.ID]
	q, err := meter.NewQuote(in)
	if err != nil {
		return d.notPriced(c, d.pricedBy(c), in.BYOK || c.Capabilities.SelfHosted(), err)
	}
	d.quotes[c.ID()] = q
	c.Price = route.Price{Confidence: q.Confidence, Quote: q.Digest, Unbounded: q.Reserve == nil, FeeUnbounded: q.Wallet == nil}
	c.Fee = q.Snapshot.FeeRuns()
	if m, ok := q.In(q.Hourly); ok {
		c.Price.Hourly = &m
	}
	if b.Shadow != nil {
		m, err := b.Shadow.Hourly(q.Sizes)
		if err != nil {
			return d.notPriced(c, "its shadow_price", q.Memo, err)
		}
		c.Price.Shadow = &m
	}
	return nil
}

// QuoteInput returns what the catalog says about a binding's prices.
func QuoteInput(cat *catalog.Catalog, b catalog.Binding, host *extensions.Host, region string, r extensions.Resources, ttl time.Duration,
	byok bool) meter.QuoteInput {
	return meter.QuoteInput{Extension: b.ID, PricingModel: b.Capabilities.PricingModel, BYOK: byok, Region: region,
		Book: cat.Book(b.ID), PerHour: b.PerHour, PerHourSource: b.PerHourSource, PerHourAsOf: b.PerHourAsOf, Host: host, Fee: b.Fee,
		Resources: r, TTL: ttl, Grain: b.Capabilities.DeadlineGrain}
}

// Allocated returns the offer priced by the sizes that its place gave, and o itself if they equal the requested
// ones. It refuses, with the arithmetic, an offer that then costs more than the request's maximum.
func (d *Decision) Allocated(o *Offer, given extensions.Resources, now time.Time) (*Offer, error) {
	if given == (extensions.Resources{}) {
		return o, nil
	}
	b, err := d.cat.Named(o.Binding)
	if err != nil {
		return o, err
	}
	if err := d.priceOf(b, o.Candidate, given.Over(d.Resolved.Spec.Resources)); err != nil {
		return o, err
	}
	if d.quotes[o.ID()].Sizes == o.Quote.Sizes {
		d.quotes[o.ID()] = o.Quote
		return o, nil
	}
	return d.offerAt(o.Candidate), d.CheckPrice(o.Candidate, now)
}

// CheckPrice refuses a place whose price must not be relied on: too old where a wallet pays, or above the
// request's maximum.
func (d *Decision) CheckPrice(cand *route.Candidate, now time.Time) error {
	if err := d.freshPrice(cand, now); err != nil {
		return extensions.AtField("profile", err)
	}
	return extensions.AtField("max_cost", d.checkMaxCost(cand))
}

// freshPrice refuses a price that is too old where a wallet pays by it.
func (d *Decision) freshPrice(cand *route.Candidate, now time.Time) error {
	book := d.cat.Book(cand.Binding)
	if book == nil || !d.quotes[cand.ID()].Snapshot.WalletPaysByIt() {
		return nil
	}
	if err := book.Fresh(now); err != nil {
		return extensions.Errorf(extensions.KindInvalid, "the price of %s is no longer known: %w", cand.ID(), err).WithRemedy("%s",
			extensions.RemedyOf(err))
	}
	return nil
}

// checkMaxCost refuses, with the arithmetic, a place whose worst case is unknown or above the request's
// maximum.
func (d *Decision) checkMaxCost(cand *route.Candidate) error {
	q := d.quotes[cand.ID()]
	var lines []meter.ChargeLine
	for _, l := range q.Worst {
		lines = append(lines, l.ChargeLine)
	}
	return worstOf{about: cand.ID(), ttl: d.TTL, lines: lines, sum: q.Max, currency: q.Currency,
		unknowns: q.Unknowns, toKnow: toKnow(q)}.within(d.Request.MaxCost)
}

// CheckLaterCost refuses a later deadline of a live sandbox if its worst case, at the prices it is settled
// with, exceeds maxCost. about names the sandbox, lives is how long it will have lived by then and ttl
// what was requested.
func (w Liability) CheckLaterCost(about string, lives, ttl time.Duration, maxCost string) error {
	lines, err := w.lines(lives)
	if err != nil {
		return err
	}
	worst := worstOf{about: about, ttl: ttl, lines: lines, currency: w.prices.Currency, toKnow: "add the missing values"}
	sum, known, err := meter.Total(lines)
	if known {
		worst.sum = &sum
	}
	if err != nil {
		return err
	}
	return extensions.AtField("max_cost", worst.within(maxCost))
}

// worstOf is a worst case and how it is made up.
type worstOf struct {
	about    string
	ttl      time.Duration
	lines    []meter.ChargeLine
	sum      *meter.Amount // nil = unknown
	currency meter.Currency
	unknowns []string
	toKnow   string
}

// within refuses a worst case above maxCost; "" is no limit.
func (w worstOf) within(maxCost string) error {
	if maxCost == "" {
		return nil
	}
	limit, err := meter.ParseMoney(maxCost)
	if err != nil {
		return err
	}
	ttl := profile.FormatDuration(w.ttl)
	if w.sum == nil {
		return extensions.Invalid("%s: the cost for a ttl of %s is unknown, so it may exceed max_cost %s%s", w.toKnow+", or remove max_cost",
			w.about, ttl, limit, listed(w.unknowns))
	}
	worst := meter.Money{Amount: *w.sum, Currency: w.currency}
	if worst.Currency != limit.Currency {
		return extensions.Invalid("%s is priced in %s and max_cost is %s: sandboxer does not convert currencies",
			"set max_cost in "+string(worst.Currency), w.about, worst.Currency, limit)
	}
	if worst.Amount <= limit.Amount {
		return nil
	}
	over := meter.Money{Amount: worst.Amount - limit.Amount, Currency: worst.Currency}
	return extensions.Invalid("%s costs up to %s for a ttl of %s, %s above max_cost %s:\n%s",
		"shorten ttl, raise max_cost or choose a smaller profile",
		w.about, worst, ttl, over, limit, arithmetic(w.lines, worst, limit))
}

// toKnow returns what would make the price known.
func toKnow(q meter.Quote) string {
	if q.Basis == meter.BasisUnknown {
		return "add a price for it to the catalog"
	}
	return "add the missing values"
}

func listed(reasons []string) string {
	if len(reasons) == 0 {
		return ""
	}
	return " (" + strings.Join(reasons, "; ") + ")"
}

// arithmetic shows how the worst case is made up, one line per component.
func arithmetic(lines []meter.ChargeLine, worst, limit meter.Money) string {
	var rows [][2]string
	for _, l := range lines {
		rows = append(rows, [2]string{l.Component, l.Arithmetic()})
	}
	rows = append(rows, [2]string{"sum", worst.String()}, [2]string{"max_cost", limit.String()})
	width := 0
	for _, r := range rows {
		width = max(width, len(r[0]))
	}
	var b strings.Builder
	for i, r := range rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "  %-*s  %s", width, r[0], r[1])
	}
	return b.String()
}

// StalePrices reports old prices that are only used for a memo.
func (d *Decision) StalePrices() []notice.Notice {
	var out []notice.Notice
	seen := map[*meter.Book]bool{}
	for _, c := range d.Choice.Order {
		book := d.cat.Book(c.Binding)
		if book == nil || seen[book] {
			continue
		}
		seen[book] = true
		if stale := book.Fresh(d.Evidence.Now); stale != nil {
			out = append(out, notice.Notice{Summary: "Old prices for " + c.Binding, Detail: stale.Error() + ". What to do: " +
				extensions.RemedyOf(stale) + "."})
		}
	}
	return out
}

// pricedBy names the source of a place's price.
func (d *Decision) pricedBy(c *route.Candidate) string {
	if book := d.cat.Book(c.Binding); book != nil {
		return "price book " + book.ID + " (" + book.Where + ")"
	}
	return "the cost of the catalog or the host"
}

// notPriced leaves out a place whose price cannot be computed for this request; other places keep theirs.
// A malformed price is an error.
func (d *Decision) notPriced(c *route.Candidate, by string, memo bool, err error) error {
	var beyond *meter.NotPriced
	if !errors.As(err, &beyond) {
		return extensions.Errorf(extensions.KindOf(err), "%[2]s cannot price %[1]s: %[3]w", c.ID(), by, err).WithRemedy("%s",
			extensions.RemedyOf(err))
	}
	reason := fmt.Sprintf("%s cannot price it: %s", by, err)
	c.Price = route.Price{Confidence: meter.ConfidenceUnknown, Unpriced: &route.Unpriced{Reason: reason, Help: extensions.RemedyOf(err)}}
	d.quotes[c.ID()] = meter.Quote{Extension: c.Binding, Host: c.HostName(), Basis: meter.BasisUnknown, Confidence: meter.ConfidenceUnknown,
		Memo: memo, Unknowns: []string{reason}}
	return nil
}
