package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// checkPrice refuses a place whose price must not be relied on: too old where
// a wallet pays, or above what the request may cost.
func (e *Engine) checkPrice(p *prepared, cand *route.Candidate) error {
	if cand == nil {
		return nil
	}
	if err := e.freshPrice(cand, p.quotes[cand.ID()]); err != nil {
		return extensions.AtField("profile", err)
	}
	return extensions.AtField("max_cost", p.checkMaxCost(cand))
}

// freshPrice refuses a price that is too old where a wallet pays by it.
func (e *Engine) freshPrice(cand *route.Candidate, q meter.Quote) error {
	book := e.catalog.Book(cand.Binding)
	if book == nil || !q.Snapshot.WalletPaysByIt() {
		return nil
	}
	if err := book.Fresh(e.now()); err != nil {
		return extensions.Errorf(extensions.KindInvalid, "what %s costs is not known any more: %w", cand.ID(), err).WithRemedy("%s", extensions.RemedyOf(err))
	}
	return nil
}

// checkMaxCost refuses a place whose worst case is above the request's
// ceiling, or not known, with the arithmetic.
func (p *prepared) checkMaxCost(cand *route.Candidate) error {
	q := p.quotes[cand.ID()]
	var lines []meter.ChargeLine
	for _, l := range q.Worst {
		lines = append(lines, l.ChargeLine)
	}
	return worstOf{about: cand.ID(), ttl: time.Duration(p.resolved.Spec.TTL), lines: lines, sum: q.Max, currency: q.Currency,
		unknowns: q.Unknowns, toKnow: toKnow(q)}.within(p.req.MaxCost)
}

// checkLaterCost refuses a later end of a sandbox that lives whose worst case,
// by the prices it is settled with, is above maxCost. An end that is not later
// passes: it costs no more than what was agreed to.
func (e *Engine) checkLaterCost(ctx context.Context, l ledger.Ledger, row ledger.Sandbox, ttl, maxTTL time.Duration, maxCost string) error {
	end, err := lifecycle.Retarget(row.CreatedAt, row.ExpiresAt, row.TTL, ttl, maxTTL)
	if maxCost == "" || err != nil || !end.After(row.ExpiresAt) {
		return nil // what is wrong with the end itself is told where it is moved
	}
	w, runs, err := e.liabilityOf(ctx, l, row)
	if err != nil || !runs {
		return err
	}
	lines, err := w.lines(end.Sub(row.CreatedAt))
	if err != nil {
		return err
	}
	worst := worstOf{about: fmt.Sprintf("sandbox %s (%s)", row.ID, row.Name), ttl: ttl, lines: lines, currency: w.prices.Currency, toKnow: "give what is missing"}
	sum, known, err := meter.Total(lines)
	if known {
		worst.sum = &sum
	}
	if err != nil {
		return err
	}
	return extensions.AtField("max_cost", worst.within(maxCost))
}

// worstOf is what something costs at most, and how that comes about.
type worstOf struct {
	about    string
	ttl      time.Duration
	lines    []meter.ChargeLine
	sum      *meter.Amount // nil is not known
	currency meter.Currency
	unknowns []string
	toKnow   string
}

// within refuses what is above a limit; "" is none.
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
		return extensions.Invalid("%s: what a ttl of %s costs is not known, so it cannot be kept below max_cost %s%s", w.toKnow+", or leave max_cost out",
			w.about, ttl, limit, listed(w.unknowns))
	}
	worst := meter.Money{Amount: *w.sum, Currency: w.currency}
	if worst.Currency != limit.Currency {
		return extensions.Invalid("%s is priced in %s and max_cost is %s: these are different currencies, and nothing here knows an exchange rate",
			"state max_cost in "+string(worst.Currency), w.about, worst.Currency, limit)
	}
	if worst.Amount <= limit.Amount {
		return nil
	}
	over := meter.Money{Amount: worst.Amount - limit.Amount, Currency: worst.Currency}
	return extensions.Invalid("%s costs up to %s for a ttl of %s, %s above max_cost %s:\n%s", "shorten ttl, raise max_cost or choose a smaller profile",
		w.about, worst, ttl, over, limit, arithmetic(w.lines, worst, limit))
}

// toKnow is what would make the price known.
func toKnow(q meter.Quote) string {
	if q.Basis == meter.BasisUnknown {
		return "state a price for it in the catalog"
	}
	return "give what is missing"
}

func listed(reasons []string) string {
	if len(reasons) == 0 {
		return ""
	}
	return " (" + strings.Join(reasons, "; ") + ")"
}

// arithmetic shows how the worst case comes about, a line for each component.
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

// stalePrices tells of old prices where they only make a memo.
func (e *Engine) stalePrices(p *prepared) []Notice {
	var out []Notice
	seen := map[*meter.Book]bool{}
	for _, c := range p.decision.Order {
		book := e.catalog.Book(c.Binding)
		if book == nil || seen[book] {
			continue
		}
		seen[book] = true
		if stale := book.Fresh(e.now()); stale != nil {
			out = append(out, Notice{Summary: "Old prices for " + c.Binding, Detail: stale.Error() + ". What to do: " + extensions.RemedyOf(stale) + "."})
		}
	}
	return out
}

// pricedBy names what states the price of a place.
func (e *Engine) pricedBy(c *route.Candidate) string {
	if book := e.catalog.Book(c.Binding); book != nil {
		return "price book " + book.ID + " (" + book.Where + ")"
	}
	return "the cost that the catalog or the host states"
}

// notPriced leaves a place out whose price cannot be worked out for this request:
// other places have theirs. A price that is malformed is an error.
func (p *prepared) notPriced(c *route.Candidate, by string, memo bool, err error) error {
	var beyond *meter.NotPriced
	if !errors.As(err, &beyond) {
		return extensions.Errorf(extensions.KindOf(err), "%s cannot be priced by %s: %w", c.ID(), by, err).WithRemedy("%s", extensions.RemedyOf(err))
	}
	reason := fmt.Sprintf("it cannot be priced by %s: %s", by, err)
	c.Price = route.Price{Confidence: meter.ConfidenceUnknown, Unpriced: &route.Unpriced{Reason: reason, Help: extensions.RemedyOf(err)}}
	p.quotes[c.ID()] = meter.Quote{Extension: c.Binding, Host: c.HostName(), Basis: meter.BasisUnknown, Confidence: meter.ConfidenceUnknown,
		Memo: memo, Unknowns: []string{reason}}
	return nil
}
