package cli

import "github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"

// quoteView is the stable JSON form of a quote. It uses the names of the data source sandboxer_quote, null
// for the unknown and an empty list for none.
type quoteView struct {
	Profile      string         `json:"profile"`
	Version      string         `json:"version"`
	CostClass    *string        `json:"cost_class"` // the profile's labels
	LatencyClass *string        `json:"latency_class"`
	Estimate     estimateView   `json:"estimate"`
	Route        quoteRouteView `json:"route"`
	Past         int64          `json:"past"` // past lives of the profile behind expected and p95
	Funds        []fundsView    `json:"funds"`
	Notices      []noticeView   `json:"notices"`
	Asked        []foretoldView `json:"asked"` // places' own estimates, with --ask
}

type estimateView struct {
	CatalogDigest string          `json:"catalog_digest"`
	TTL           string          `json:"ttl"`
	Currency      *string         `json:"currency"` // null if candidates are priced in several currencies
	HourlyLow     *string         `json:"hourly_low"`
	HourlyHigh    *string         `json:"hourly_high"`
	TotalLow      *string         `json:"total_low"`
	TotalHigh     *string         `json:"total_high"`
	Maximum       *string         `json:"maximum"`
	Candidates    []candidateView `json:"candidates"`
	Unknowns      []string        `json:"unknowns"`
	Assumptions   []string        `json:"assumptions"`
}

type candidateView struct {
	Extension   string           `json:"extension"`
	Host        *string          `json:"host"` // null for a vendor's account
	Eligible    bool             `json:"eligible"`
	Order       *int64           `json:"order"` // 1 = first choice; null if refused
	Hourly      *string          `json:"hourly"`
	Creation    *string          `json:"creation"`
	Low         *string          `json:"low"`
	Expected    *string          `json:"expected"`
	P95         *string          `json:"p95"` // null without past lives
	Maximum     *string          `json:"maximum"`
	Reserve     *string          `json:"reserve"`
	Wallet      *string          `json:"wallet"`
	Currency    *string          `json:"currency"`
	Source      *string          `json:"source"`
	AsOf        *string          `json:"as_of"`
	Confidence  *string          `json:"confidence"`
	Memo        bool             `json:"memo"`
	Expiry      *string          `json:"expiry"`
	Lines       []lineView       `json:"lines"`
	Assumptions []string         `json:"assumptions"`
	Unknowns    []string         `json:"unknowns"`
	Digest      *string          `json:"digest"`
	Refusals    []engine.Refusal `json:"refusals"`
}

type lineView struct {
	Component  string  `json:"component"`
	Quantity   string  `json:"quantity"`
	Unit       string  `json:"unit"`
	UnitPrice  *string `json:"unit_price"`
	Amount     *string `json:"amount"`
	Memo       bool    `json:"memo"`
	Source     *string `json:"source"`
	AsOf       *string `json:"as_of"`
	Confidence string  `json:"confidence"`
}

// quoteRouteView is the route before any attempt.
type quoteRouteView struct {
	Strategy  string            `json:"strategy"`
	Order     []string          `json:"order"`
	Why       *string           `json:"why"`
	Fallbacks []string          `json:"fallbacks"`
	Notices   []string          `json:"notices"`
	Refused   []engine.Rejected `json:"refused"`
	Explained string            `json:"explained"`
}

type fundsView struct {
	Limit     string  `json:"limit"`
	Currency  string  `json:"currency"`
	Available string  `json:"available"`
	Needed    *string `json:"needed"`
	Hard      bool    `json:"hard"`
	Enough    bool    `json:"enough"`
}

type noticeView struct {
	Summary string  `json:"summary"`
	Detail  *string `json:"detail"`
}

func viewOfQuote(q engine.Quoted) quoteView {
	v := quoteView{Profile: q.ProfileID, Version: q.Version, CostClass: known(q.CostClass), LatencyClass: known(q.LatencyClass),
		Estimate: viewOfEstimate(q.Estimate), Past: q.Past, Funds: []fundsView{}, Notices: []noticeView{}, Asked: foretoldViews(q.Foretold),
		Route: quoteRouteView{Strategy: q.Route.Strategy, Order: list(q.Route.Order), Why: known(q.Route.Why), Fallbacks: list(q.Route.Fallbacks),
			Notices: list(q.Route.Notices), Refused: list(q.Route.Refused), Explained: q.Route.Explained}}
	for _, f := range q.Funds {
		v.Funds = append(v.Funds, fundsView{f.Limit, f.Currency, f.Available, known(f.Needed), f.Hard, f.Enough})
	}
	for _, n := range q.Notices {
		v.Notices = append(v.Notices, noticeView{n.Summary, known(n.Detail)})
	}
	return v
}

func viewOfEstimate(e engine.Estimate) estimateView {
	v := estimateView{CatalogDigest: e.CatalogDigest, TTL: e.TTL, Currency: known(e.Currency), HourlyLow: known(e.HourlyLow),
		HourlyHigh: known(e.HourlyHigh),
		TotalLow:   known(e.TotalLow), TotalHigh: known(e.TotalHigh), Maximum: known(e.Maximum), Candidates: []candidateView{},
		Unknowns: list(e.Unknowns), Assumptions: list(e.Assumptions)}
	for _, c := range e.Candidates {
		v.Candidates = append(v.Candidates, viewOfCandidate(c))
	}
	return v
}

func viewOfCandidate(c engine.EstimateCandidate) candidateView {
	v := candidateView{Extension: c.Extension, Host: known(c.Host), Eligible: c.Eligible, Hourly: known(c.Hourly), Creation: known(c.Creation),
		Low:      known(c.Low),
		Expected: known(c.Expected), P95: known(c.P95), Maximum: known(c.Maximum), Reserve: known(c.Reserve), Wallet: known(c.Wallet),
		Currency: known(c.Currency),
		Source:   known(c.Source), AsOf: known(c.AsOf), Confidence: known(c.Confidence),
		Memo: c.Memo, Expiry: known(c.Expiry), Lines: []lineView{},
		Assumptions: list(c.Assumptions), Unknowns: list(c.Unknowns), Digest: known(c.Digest), Refusals: list(c.Refusals)}
	if c.Eligible {
		v.Order = &c.Order
	}
	for _, l := range c.Lines {
		v.Lines = append(v.Lines, lineView{l.Component, l.Quantity, l.Unit, known(l.UnitPrice), known(l.Amount), l.Memo, known(l.Source),
			known(l.AsOf), l.Confidence})
	}
	return v
}
