package provider

import (
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

var quoteLineFields = []computedField{
	{name: "component", typ: types.StringType,
		doc: "Priced component: `creation`, `vcpu`, `memory`, `disk`, `gpu:H100`, `egress`, `sandbox`, `surcharge`, `fee:share`, …"},
	{name: "quantity", typ: types.StringType, doc: "Quantity, in `unit`."},
	{name: "unit", typ: types.StringType, doc: "Unit of the price, such as `vcpu-second`."},
	{name: "unit_price", typ: types.StringType, doc: "Price of one unit, in the candidate's `currency`; null if unknown."},
	{name: "amount", typ: types.StringType,
		doc: "Quantity times price, rounded once to 10⁻⁹ of the candidate's `currency`; null if unknown."},
	{name: "memo", typ: types.BoolType, doc: "Whether it is recorded only: no wallet pays it."},
	{name: "source", typ: types.StringType, doc: "Where the price comes from."},
	{name: "as_of", typ: types.StringType, doc: "Date of the price, `YYYY-MM-DD`; null if it has none."},
	{name: "confidence", typ: types.StringType, doc: "`exact`, `estimated` or `unknown`."},
}

// quoteCandidateFields are those of an estimate's candidates plus those only a quote has.
var quoteCandidateFields = slices.Concat(candidateFields[:len(candidateFields)-1], []computedField{
	{name: "low", typ: types.StringType, doc: "Cost if it ends at once, in `currency`: fee and minimum charge; null if unknown."},
	{name: "expected", typ: types.StringType, doc: "Cost at the expected duration, in `currency`; null if unknown."},
	{name: "p95", typ: types.StringType, doc: "Cost at the 95th percentile of the profile's past durations, in `currency`; null without " +
		"history."},
	{name: "reserve", typ: types.StringType, doc: "Hold, in `currency`: the maximum with every line rounded up; null if unknown."},
	{name: "wallet", typ: types.StringType, doc: "Part of `reserve` taken from a wallet, in `currency`: all of it on platform credit, the " +
		"fee with your own key, `0.00` on a place of your own; null if unknown."},
	{name: "memo", typ: types.BoolType,
		doc: "Whether you pay the place yourself, with your own key or your own machine, instead of a wallet."},
	{name: "lines", list: quoteLineFields, doc: "Lines of `expected`, one per component."},
	{name: "assumptions", typ: stringsType, doc: "Assumptions behind the numbers."},
	{name: "unknowns", typ: stringsType, doc: "Components without a known price."},
	{name: "digest", typ: types.StringType, doc: "Digest of this price and its inputs. The ledger keeps the sandbox's quote under the same " +
		"digest."},
}, candidateFields[len(candidateFields)-1:])

var quoteRouteFields = []computedField{
	{name: "strategy", typ: types.StringType, doc: "Ranking used for the places."},
	{name: "order", typ: stringsType, doc: "Eligible places, first choice first."},
	{name: "why", typ: types.StringType, doc: "Why the first choice won. Null if no place is eligible."},
	{name: "fallbacks", typ: stringsType, doc: "Places tried after the first choice, in order."},
	{name: "notices", typ: stringsType, doc: "What was accepted with reservations."},
	{name: "refused", doc: "Refused places with every reason. Test doubles are listed only if the request names them.", list: []computedField{
		{name: "candidate", typ: types.StringType, doc: "The place."},
		{name: "refusals", list: refusalFields, doc: "Why it is refused."},
	}},
}

var fundsFields = []computedField{
	{name: "limit", typ: types.StringType, doc: "Wallet or budget, and its owner."},
	{name: "currency", typ: types.StringType, doc: "ISO 4217 code."},
	{name: "available", typ: types.StringType, doc: "Amount left, in `currency`."},
	{name: "needed", typ: types.StringType, doc: "Hold of the first choice, in `currency`; null if unknown."},
	{name: "hard", typ: types.BoolType, doc: "Whether it refuses a create that needs more."},
	{name: "enough", typ: types.BoolType, doc: "Whether the amount left covers the need. False if that is unknown."},
}

// quoteFields are those of an estimate, the parts of its numbers, and what the ledger adds.
func quoteFields() []computedField {
	return append(slices.Clone(numberFields),
		computedField{name: "catalog_digest", typ: types.StringType, doc: "Digest of the catalog behind these numbers."},
		computedField{name: "candidates", list: quoteCandidateFields,
			doc: "Every place considered, with its price or its refusals; eligible places first, in order. Test doubles are listed only if the " +
				"profile names them."},
		computedField{name: "assumptions", typ: stringsType, doc: "Assumptions behind the numbers."},
		computedField{name: "funds", list: fundsFields,
			doc: "Credit and budgets left to the account. Empty without `history`, or without wallet and budgets."},
		computedField{name: "past", typ: types.Int64Type, doc: "Number of past sandboxes behind `expected` and `p95`; 0 without `history`."})
}

type quoteLineModel struct {
	Component  string       `tfsdk:"component"`
	Quantity   string       `tfsdk:"quantity"`
	Unit       string       `tfsdk:"unit"`
	UnitPrice  types.String `tfsdk:"unit_price"`
	Amount     types.String `tfsdk:"amount"`
	Memo       bool         `tfsdk:"memo"`
	Source     types.String `tfsdk:"source"`
	AsOf       types.String `tfsdk:"as_of"`
	Confidence string       `tfsdk:"confidence"`
}

type quoteCandidateModel struct {
	candidateModel
	Low         types.String     `tfsdk:"low"`
	Expected    types.String     `tfsdk:"expected"`
	P95         types.String     `tfsdk:"p95"`
	Reserve     types.String     `tfsdk:"reserve"`
	Wallet      types.String     `tfsdk:"wallet"`
	Memo        bool             `tfsdk:"memo"`
	Lines       []quoteLineModel `tfsdk:"lines"`
	Assumptions []string         `tfsdk:"assumptions"`
	Unknowns    []string         `tfsdk:"unknowns"`
	Digest      types.String     `tfsdk:"digest"`
}

type quoteRouteModel struct {
	Strategy  types.String    `tfsdk:"strategy"`
	Order     []string        `tfsdk:"order"`
	Why       types.String    `tfsdk:"why"`
	Fallbacks []string        `tfsdk:"fallbacks"`
	Notices   []string        `tfsdk:"notices"`
	Refused   []rejectedModel `tfsdk:"refused"`
}

type fundsModel struct {
	Limit     string       `tfsdk:"limit"`
	Currency  string       `tfsdk:"currency"`
	Available string       `tfsdk:"available"`
	Needed    types.String `tfsdk:"needed"`
	Hard      bool         `tfsdk:"hard"`
	Enough    bool         `tfsdk:"enough"`
}

func newQuoteCandidates(list []engine.EstimateCandidate) []quoteCandidateModel {
	out := []quoteCandidateModel{}
	for _, c := range list {
		if engine.UnnamedDouble(c.Refusals) {
			continue
		}
		m := quoteCandidateModel{candidateModel: newCandidate(c), Low: optional(c.Low), Expected: optional(c.Expected), P95: optional(c.P95),
			Reserve: optional(c.Reserve), Wallet: optional(c.Wallet), Memo: c.Memo, Lines: []quoteLineModel{},
			Assumptions: notNil(c.Assumptions), Unknowns: notNil(c.Unknowns), Digest: optional(c.Digest)}
		for _, l := range c.Lines {
			m.Lines = append(m.Lines, quoteLineModel{Component: l.Component, Quantity: l.Quantity, Unit: l.Unit, UnitPrice: optional(l.UnitPrice),
				Amount: optional(l.Amount), Memo: l.Memo, Source: optional(l.Source), AsOf: optional(l.AsOf), Confidence: l.Confidence})
		}
		out = append(out, m)
	}
	return out
}

func newQuoteRoute(r engine.Route) quoteRouteModel {
	return quoteRouteModel{Strategy: optional(r.Strategy), Order: notNil(r.Order), Why: optional(r.Why), Fallbacks: notNil(r.Fallbacks),
		Notices: notNil(r.Notices), Refused: newRejected(r.Refused)}
}

func newFunds(list []engine.Funds) []fundsModel {
	out := []fundsModel{}
	for _, f := range list {
		out = append(out, fundsModel{Limit: f.Limit, Currency: f.Currency, Available: f.Available, Needed: optional(f.Needed), Hard: f.Hard,
			Enough: f.Enough})
	}
	return out
}
