package plan

import (
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
)

// Estimate is the price before a create. It depends only on the request's known arguments and the
// catalog's bytes, so that Terraform's second plan during apply finds the same. Amounts are decimal
// strings without currency; "" means unknown, never zero.
type Estimate struct {
	CatalogDigest string `json:"catalog_digest"`
	Currency      string `json:"currency"`
	HourlyLow     string `json:"hourly_low"`
	HourlyHigh    string `json:"hourly_high"`
	TotalLow      string `json:"total_low"`  // at the TTL's end, or the minimum charge
	TotalHigh     string `json:"total_high"` // over eligible candidates
	Maximum       string `json:"maximum"`    // worst case at the TTL
	// Confidence is the lowest among the places where it may run: exact | estimated | unknown; "" if none
	// is left.
	Confidence  string              `json:"confidence"`
	TTL         string              `json:"ttl"`
	Candidates  []EstimateCandidate `json:"candidates"`
	Unknowns    []string            `json:"unknowns,omitempty"` // each with its place, first choice first
	Unpriced    []string            `json:"unpriced,omitempty"` // the same without places, sorted: changes only when the numbers do
	Assumptions []string            `json:"assumptions,omitempty"`
}

// EstimateCandidate is one place with its price, or why it was refused.
type EstimateCandidate struct {
	Extension  string `json:"extension"`
	Host       string `json:"host"` // name; "" for an account
	Eligible   bool   `json:"eligible"`
	Order      int64  `json:"order"` // 1 = first choice; 0 = refused
	Hourly     string `json:"hourly"`
	Creation   string `json:"creation"`
	Low        string `json:"low"`      // fee and minimum
	Expected   string `json:"expected"` // at the expected duration
	P95        string `json:"p95"`      // at the 95th percentile of past durations; "" without history
	Maximum    string `json:"maximum"`
	Reserve    string `json:"reserve"` // Maximum with every line rounded up
	Wallet     string `json:"wallet"`  // the part of Reserve that a wallet pays
	Currency   string `json:"currency"`
	Source     string `json:"source"`
	AsOf       string `json:"as_of"`
	Confidence string `json:"confidence"` // exact | estimated | unknown
	Memo       bool   `json:"memo"`       // no wallet pays for the place itself
	Billing    string `json:"billing"`    // platform | byok; "" = platform once the org was granted credit
	Expiry     string `json:"expiry"`     // native | host | sweep
	// Lines make up Expected; without a duration, Hourly.
	Lines       []EstimateLine `json:"lines,omitempty"`
	Assumptions []string       `json:"assumptions,omitempty"`
	Unknowns    []string       `json:"unknowns,omitempty"`
	Digest      string         `json:"digest,omitempty"` // of the quote with its prices
	Refusals    []Refusal      `json:"refusals,omitempty"`
}

// EstimateLine is one component of a price. Quantity is a decimal in whole units; UnitPrice and Amount are
// "" if unknown.
type EstimateLine struct {
	Component  string `json:"component"`
	Quantity   string `json:"quantity"`
	Unit       string `json:"unit"`
	UnitPrice  string `json:"unit_price"`
	Amount     string `json:"amount"`
	Memo       bool   `json:"memo"`
	Source     string `json:"source"`
	AsOf       string `json:"as_of"`
	Confidence string `json:"confidence"`
}

// estimate renders quotes and refusals; see Estimate.
func (d *Decision) estimate() Estimate {
	est := Estimate{CatalogDigest: d.cat.Digest, TTL: profile.FormatDuration(d.TTL), Candidates: []EstimateCandidate{}}
	refused := map[string][]Refusal{}
	for _, r := range d.Choice.Refusals() {
		refused[r.Candidate] = append(refused[r.Candidate],
			Refusal{Stage: string(r.Stage), Rule: string(r.Rule), Reason: r.Reason, Remedy: r.Help})
	}
	for i, c := range d.Choice.Order {
		ec := estimateCandidate(c, d.quotes[c.ID()], d.Request.Billing)
		ec.Eligible, ec.Order = true, int64(i+1)
		est.Candidates = append(est.Candidates, ec)
	}
	var out []string
	for _, c := range d.query.Candidates {
		if id := c.ID(); len(refused[id]) > 0 {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	for _, id := range slices.Compact(out) {
		i := slices.IndexFunc(d.query.Candidates, func(c route.Candidate) bool { return c.ID() == id })
		ec := estimateCandidate(&d.query.Candidates[i], d.quotes[id], d.Request.Billing)
		ec.Refusals = refused[id]
		est.Candidates = append(est.Candidates, ec)
	}
	d.rangeOver(&est)
	return est
}

// EstimateLife estimates a live sandbox at c with another ttl: at its own place, with the prices it is
// settled with. false if they yield none.
func EstimateLife(cat *catalog.Catalog, c route.Candidate, prices meter.PriceSnapshot, ttl time.Duration) (Estimate, bool) {
	q, err := meter.QuoteBy(prices, ttl, c.Capabilities.DeadlineGrain)
	if err != nil {
		return Estimate{}, false
	}
	d := &Decision{cat: cat, Asked: &Asked{TTL: ttl}, quotes: map[string]meter.Quote{c.ID(): q}}
	d.Choice.Order = []*route.Candidate{&c}
	return d.estimate(), true
}

// UnnamedDouble reports whether the refusals are those of a test double that the profile does not name. It was
// not a candidate, and its invented price would only confuse, so people do not see it.
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
		el := EstimateLine{Component: l.Component, Quantity: l.Units(), Unit: l.Unit, Memo: l.Memo, Source: l.Source, AsOf: l.AsOf,
			Confidence: string(l.Confidence)}
		if l.Confidence != meter.ConfidenceUnknown {
			el.UnitPrice, el.Amount = l.UnitPrice.String(), l.Amount.String()
		}
		ec.Lines = append(ec.Lines, el)
	}
	return ec
}

// Short returns an amount of an estimate with at most six significant digits, for people; up as in
// [meter.Amount.Short]. Text that is no amount is returned unchanged.
func Short(amount string, up bool) string {
	a, err := meter.ParseAmount(amount)
	if err != nil {
		return amount
	}
	return a.Short(up)
}

func amount(a *meter.Amount) string {
	if a == nil {
		return ""
	}
	return a.String()
}

// notPricedSomewhere stands for any reason why a place's price is unknown: which place and why changes no
// number.
const notPricedSomewhere = "the price at one of its places: see sandboxer_quote"

// bySureness lists confidences, surest first.
var bySureness = []meter.Confidence{meter.ConfidenceExact, meter.ConfidenceEstimated, meter.ConfidenceUnknown}

// rangeOver fills the range over the eligible candidates. Amounts in several currencies have no range; an
// unknown price leaves the upper end open.
func (d *Decision) rangeOver(est *Estimate) {
	var hourly, total bounds
	mixed := false
	for _, c := range d.Choice.Order {
		q := d.quotes[c.ID()]
		if est.Currency == "" {
			est.Currency = string(q.Currency)
		}
		mixed = mixed || q.Currency != "" && est.Currency != string(q.Currency)
		sure := q.Confidence
		if len(q.Unknowns) > 0 || q.Basis == meter.BasisUnknown {
			sure = meter.ConfidenceUnknown
		}
		if slices.Index(bySureness, sure) > slices.Index(bySureness, meter.Confidence(est.Confidence)) {
			est.Confidence = string(sure)
		}
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
		const several = "a range, because candidates have prices in several currencies"
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

// bounds is the range of amounts, some of which may be unknown.
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
