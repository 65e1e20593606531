package engine

import (
	"context"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Plan resolves, routes and prices req without dialling and without writing.
// On an error of routing or cost the Planned is filled in as far as it goes,
// so that refusals can be shown beside it.
func (e *Engine) Plan(ctx context.Context, req Request) (Planned, error) {
	e.heardOf(req.Former)
	p, err := e.prepare(ctx, req, preparation{})
	if p != nil {
		out, unread := e.planned(ctx, p, err)
		if err == nil {
			err = e.unusable(unread)
		}
		return out, err
	}
	r, unresolved := e.resolve(req)
	if unresolved != nil {
		return Planned{}, err
	}
	return resolvedAs(r), err // what was in the way, such as a missing folder, says nothing of the profile
}

// resolvedAs is what a plan knows of a request before it looks for a place.
func resolvedAs(r *profile.Resolved) Planned {
	return Planned{TTL: time.Duration(r.Spec.TTL), Scope: r.Spec.Scope, ProfileID: r.ID, Version: r.Version, CostClass: r.CostClass, LatencyClass: r.LatencyClass}
}

// planned is what a preparation found, as far as it came, and why the ledger
// could not be read.
func (e *Engine) planned(ctx context.Context, p *prepared, err error) (out Planned, unread error) {
	out = resolvedAs(p.resolved)
	out.Estimate, out.EstimateKnown, out.Notices, out.Route = p.estimate, !p.fromLedger, p.notices, routeOf(p.decision)
	if d := p.decision; err == nil && p.pinned() {
		out.Extension, out.Pinned = d.Chosen.Binding, true
		if d.Chosen.Host != nil {
			out.Host = d.Chosen.Host.Ref()
		}
	}
	unread = e.planNotices(ctx, p, &out)
	if err == nil {
		out.Notices = append(out.Notices, e.stalePrices(p)...)
	}
	return out, unread
}

// pinned reports that the request itself leaves one place: whatever else the
// catalog gets, it is this one or none.
func (p *prepared) pinned() bool {
	policy := p.resolved.Policy
	return policy.Extension != "" && len(policy.Fallback) == 0 && len(p.req.Hosts) <= 1 && !p.fromLedger && p.req.FromSnapshot == ""
}

// estimate renders quotes and refusals; see Estimate.
func (e *Engine) estimate(p *prepared, candidates []route.Candidate) Estimate {
	est := Estimate{CatalogDigest: e.catalog.Digest, TTL: profile.FormatDuration(time.Duration(p.resolved.Spec.TTL)), Candidates: []EstimateCandidate{}}
	refused := map[string][]Refusal{}
	for _, r := range p.decision.Refusals() {
		refused[r.Candidate] = append(refused[r.Candidate], Refusal{Stage: string(r.Stage), Rule: string(r.Rule), Reason: r.Reason, Remedy: r.Help})
	}
	for i, c := range p.decision.Order {
		ec := estimateCandidate(c, p.quotes[c.ID()], p.req.Billing)
		ec.Eligible, ec.Order = true, int64(i+1)
		est.Candidates = append(est.Candidates, ec)
	}
	var out []string
	for _, c := range candidates {
		if id := c.ID(); len(refused[id]) > 0 {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	for _, id := range slices.Compact(out) {
		i := slices.IndexFunc(candidates, func(c route.Candidate) bool { return c.ID() == id })
		ec := estimateCandidate(&candidates[i], p.quotes[id], p.req.Billing)
		ec.Refusals = refused[id]
		est.Candidates = append(est.Candidates, ec)
	}
	e.rangeOver(&est, p)
	return est
}

// EstimateLife is the estimate of a sandbox that lives, with another ttl: its
// own place alone, by the prices it is settled with. It is a function of the
// receipt, the ttl and the catalog; false where the receipt has no prices or the
// catalog does not have its place.
func (e *Engine) EstimateLife(ctx context.Context, rec Receipt, ttl time.Duration) (Estimate, bool) {
	b, err := e.catalog.Named(rec.Extension)
	if err != nil {
		return Estimate{}, false
	}
	prices, err := meter.DecodePriceSnapshot(rec.Prices)
	if err != nil {
		return Estimate{}, false
	}
	q, err := meter.QuoteBy(prices, ttl)
	if err != nil {
		return Estimate{}, false
	}
	p := &prepared{resolved: &profile.Resolved{}, quotes: map[string]meter.Quote{}}
	p.resolved.Spec.TTL = extensions.Duration(ttl)
	c := candidate(b, nil, 0)
	if h, err := extensions.ParseHostRef(rec.Host); rec.Host != "" && err == nil {
		c = candidate(b, &h, 0)
		e.narrow(ctx, p, b, &c, preparation{})
	}
	p.quotes[c.ID()] = q
	p.decision.Order = []*route.Candidate{&c}
	return e.estimate(p, nil), true
}

// UnnamedDouble reports the refusals of a test double that nobody asked for. It
// was no candidate, and its invented price beside real ones would only puzzle:
// it is not shown to people.
func UnnamedDouble(rs []Refusal) bool {
	return slices.ContainsFunc(rs, func(r Refusal) bool { return r.Rule == string(route.RuleNamedOnly) })
}

func estimateCandidate(c *route.Candidate, q meter.Quote, billing string) EstimateCandidate {
	ec := EstimateCandidate{
		Extension: c.Binding, Host: c.HostName(), Hourly: amount(q.Hourly), Creation: amount(q.PerCreation), Low: amount(q.Low),
		Expected: amount(q.Expected), P95: amount(q.P95), Maximum: amount(q.Max), Reserve: amount(q.Reserve), Wallet: amount(q.Wallet),
		Currency: string(q.Currency), Source: q.Source, AsOf: q.AsOf, Confidence: string(q.Confidence), Memo: q.Memo, Billing: c.PaidAs(billing),
		Expiry: string(c.Capabilities.Expiry), Assumptions: q.Assumptions, Unknowns: q.Unknowns, Digest: q.Digest,
	}
	for _, l := range q.Lines {
		el := EstimateLine{Component: l.Component, Quantity: l.Units(), Unit: l.Unit, Memo: l.Memo, Source: l.Source, AsOf: l.AsOf, Confidence: string(l.Confidence)}
		if l.Confidence != meter.ConfidenceUnknown {
			el.UnitPrice, el.Amount = l.UnitPrice.String(), l.Amount.String()
		}
		ec.Lines = append(ec.Lines, el)
	}
	return ec
}

func amount(a *meter.Amount) string {
	if a == nil {
		return ""
	}
	return a.String()
}

// notPricedSomewhere stands for whatever keeps the price of a place from being
// known: which place it is, and why, changes no number.
const notPricedSomewhere = "what it costs at a place where it may run: sandboxer_quote tells where, and why"

// rangeOver fills the range over what may be chosen. Amounts in several
// currencies have no range, and an unknown price leaves its upper end open.
func (e *Engine) rangeOver(est *Estimate, p *prepared) {
	var hourly, total bounds
	mixed := false
	for _, c := range p.decision.Order {
		q := p.quotes[c.ID()]
		if est.Currency == "" {
			est.Currency = string(q.Currency)
		}
		mixed = mixed || q.Currency != "" && est.Currency != string(q.Currency)
		hourly.add(q.Hourly, q.Hourly)
		total.add(q.Low, q.Max)
		for _, u := range q.Unknowns {
			est.Unknowns = append(est.Unknowns, c.ID()+": "+u)
		}
		if q.Basis == meter.BasisUnknown || q.Confidence == meter.ConfidenceUnknown {
			est.Unpriced = append(est.Unpriced, notPricedSomewhere)
		} else {
			est.Unpriced = append(est.Unpriced, q.Unknowns...)
		}
		est.Assumptions = append(est.Assumptions, q.Assumptions...)
	}
	if mixed {
		const several = "a range: candidates are priced in several currencies"
		est.Currency, est.Unknowns, est.Unpriced = "", append(est.Unknowns, several), append(est.Unpriced, several)
	} else {
		est.HourlyLow, est.HourlyHigh = hourly.low(), hourly.high()
		est.TotalLow, est.TotalHigh, est.Maximum = total.low(), total.high(), total.high()
	}
	for _, list := range []*[]string{&est.Unpriced, &est.Assumptions} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
}

// bounds is the range of amounts of which some may be unknown.
type bounds struct {
	min, max *meter.Amount
	open     bool
}

func (b *bounds) add(low, high *meter.Amount) {
	if low == nil || high == nil {
		b.open = true
	}
	if low != nil && (b.min == nil || *low < *b.min) {
		b.min = low
	}
	if high != nil && (b.max == nil || *high > *b.max) {
		b.max = high
	}
}

func (b *bounds) low() string { return amount(b.min) }

func (b *bounds) high() string {
	if b.open {
		return ""
	}
	return amount(b.max)
}
