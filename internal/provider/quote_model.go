package provider

import (
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

var quoteLineFields = []computedField{
	{name: "component", typ: types.StringType, doc: "What is paid for: `creation`, `vcpu`, `memory`, `disk`, `gpu:H100`, `egress`, `sandbox`, `surcharge`, `fee:share`, …"},
	{name: "quantity", typ: types.StringType, doc: "How much of it, in `unit`."},
	{name: "unit", typ: types.StringType, doc: "What the price is for, such as `vcpu-second`."},
	{name: "unit_price", typ: types.StringType, doc: "Price of one unit, in the candidate's `currency`; null if unknown."},
	{name: "amount", typ: types.StringType, doc: "Quantity times price, rounded once to 10⁻⁹ of the candidate's `currency`; null if unknown."},
	{name: "memo", typ: types.BoolType, doc: "Whether it is only noted down: somebody else is paid, or nobody."},
	{name: "source", typ: types.StringType, doc: "Where the price comes from."},
	{name: "as_of", typ: types.StringType, doc: "Date of the price, `YYYY-MM-DD`; null if it has none."},
	{name: "confidence", typ: types.StringType, doc: "`exact`, `estimated` or `unknown`."},
}

// quoteCandidateFields are those of an estimate, and what makes a quote of it.
var quoteCandidateFields = slices.Concat(candidateFields[:len(candidateFields)-1], []computedField{
	{name: "low", typ: types.StringType, doc: "What it costs if it ends at once, in `currency`: fee and minimum charge; null if unknown."},
	{name: "expected", typ: types.StringType, doc: "What it costs at the expected duration, in `currency`; null if unknown."},
	{name: "p95", typ: types.StringType, doc: "What it costs, in `currency`, at the duration that 95 in 100 past sandboxes of the profile stayed below; null without history."},
	{name: "reserve", typ: types.StringType, doc: "What is set aside, in `currency`: the maximum with every line rounded up; null if unknown."},
	{name: "wallet", typ: types.StringType, doc: "What of `reserve`, in `currency`, comes out of a wallet: all of it on platform credit, the fee with your own key, `0.00` on an own place; null if unknown."},
	{name: "memo", typ: types.BoolType, doc: "Whether no wallet pays the place itself: your own key or your own machine does."},
	{name: "lines", list: quoteLineFields, doc: "How `expected` comes about, a line for each component."},
	{name: "assumptions", typ: stringsType, doc: "What the numbers assume."},
	{name: "unknowns", typ: stringsType, doc: "What could not be priced."},
	{name: "digest", typ: types.StringType, doc: "Digest of this price with everything it is made of; the ledger keeps a sandbox's quote under the same one."},
}, candidateFields[len(candidateFields)-1:])

var quoteRouteFields = []computedField{
	{name: "strategy", typ: types.StringType, doc: "How places are ranked."},
	{name: "order", typ: stringsType, doc: "The places that are left, first choice first."},
	{name: "why", typ: types.StringType, doc: "Why the first is first; null if none is left."},
	{name: "fallbacks", typ: stringsType, doc: "What may be tried after the first choice, in order."},
	{name: "notices", typ: stringsType, doc: "What is accepted with a reservation."},
	{name: "refused", doc: "Places that are out, with every reason; test doubles that nobody named are left out.", list: []computedField{
		{name: "candidate", typ: types.StringType, doc: "The place."},
		{name: "refusals", list: refusalFields, doc: "Why it is refused."},
	}},
}

var fundsFields = []computedField{
	{name: "limit", typ: types.StringType, doc: "Which wallet or budget, and whose."},
	{name: "currency", typ: types.StringType, doc: "ISO 4217 code."},
	{name: "available", typ: types.StringType, doc: "What is left in it, in `currency`."},
	{name: "needed", typ: types.StringType, doc: "What the first choice would set aside of it, in `currency`; null if unknown."},
	{name: "hard", typ: types.BoolType, doc: "Whether a create that needs more is refused."},
	{name: "enough", typ: types.BoolType, doc: "Whether what is left covers what is needed; false too where that is not known."},
}

// quoteFields are those of an estimate, what its numbers are made of, and what
// the ledger knows beside them.
func quoteFields() []computedField {
	return append(slices.Clone(estimateFields),
		computedField{name: "catalog_digest", typ: types.StringType, doc: "Digest of the catalog these numbers come from."},
		computedField{name: "candidates", list: quoteCandidateFields, doc: "Every place that was considered, eligible ones first in their order, with its price or why it was refused. Test doubles are left out unless the profile names them."},
		computedField{name: "assumptions", typ: stringsType, doc: "What the numbers assume."},
		computedField{name: "funds", list: fundsFields,
			doc: "What wallet and budgets of the account leave; empty without `history`, and where there are none."},
		computedField{name: "past", typ: types.Int64Type, doc: "How many past sandboxes of the profile `expected` and `p95` are taken from; 0 without `history`."})
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
		out = append(out, fundsModel{Limit: f.Limit, Currency: f.Currency, Available: f.Available, Needed: optional(f.Needed), Hard: f.Hard, Enough: f.Enough})
	}
	return out
}
