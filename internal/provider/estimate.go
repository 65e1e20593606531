package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

var stringsType = types.ListType{ElemType: types.StringType}

var refusalFields = []computedField{
	{name: "stage", typ: types.StringType, doc: "The step of routing that refused: `intent` (the request itself), `permission` (a policy) " +
		"or `viability` (what the place can do)."},
	{name: "rule", typ: types.StringType, doc: "Stable id of the rule, such as `viability.ttl-max`."},
	{name: "reason", typ: types.StringType, doc: "Why, in words."},
	{name: "remedy", typ: types.StringType, doc: "What would admit the sandbox."},
}

var candidateFields = []computedField{
	{name: "extension", typ: types.StringType, doc: "The extension, such as `ext.local`."},
	{name: "host", typ: types.StringType, doc: "Name of the host; null for a vendor's account, or this machine without a name."},
	{name: "eligible", typ: types.BoolType, doc: "Whether the sandbox may run there."},
	{name: "order", typ: types.Int64Type, doc: "1 is the first choice; null for a refused one."},
	{name: "hourly", typ: types.StringType, doc: "Price of a running hour in `currency`, with hourly fees and without those of a " +
		"creation; null if unknown."},
	{name: "creation", typ: types.StringType, doc: "What the creation costs, in `currency`; null if unknown."},
	{name: "maximum", typ: types.StringType, doc: "Worst case at the TTL, in `currency`; null if unknown."},
	{name: "currency", typ: types.StringType, doc: "ISO 4217 code; null if nothing has a price."},
	{name: "source", typ: types.StringType, doc: "Where the price comes from."},
	{name: "as_of", typ: types.StringType, doc: "Date of the price, `YYYY-MM-DD`; null if it has none."},
	{name: "confidence", typ: types.StringType, doc: "`exact`, `estimated` or `unknown`."},
	{name: "expiry", typ: types.StringType, doc: "Who ends the sandbox when its time is up: `native` (the backend itself), `host` (a timer " +
		"there) or `sweep` (the next run of sandboxer)."},
	{name: "refusals", list: refusalFields, doc: "Every reason why the place was refused; empty if it is eligible."},
}

// estimateFields are planned: the sandbox's numbers without their sources. Terraform rejects an apply that
// plans anything other than the plan it was given, and a new date or place changes no number.
var estimateFields = []computedField{
	{name: "summary", typ: types.StringType, doc: "The price in one line, rounded for people."},
	{name: "hourly", typ: types.StringType, doc: "Exact price of a running hour at the most expensive place where it may run, in " +
		"`currency`; null if one is unknown."},
	{name: "maximum", typ: types.StringType,
		doc: "Exact highest price until the end of the TTL, in `currency`; null if unknown, never 0."},
	{name: "currency", typ: types.StringType, doc: "ISO 4217 code; null if nothing has a price, or the places use several currencies."},
	{name: "confidence", typ: types.StringType,
		doc: "`exact`, `estimated` or `unknown`: the lowest of the places where it may run. `sandboxer_quote` shows what is unknown."},
}

// numberFields are the numbers a quote gives for all places together.
var numberFields = []computedField{
	{name: "currency", typ: types.StringType,
		doc: "ISO 4217 code; null if the places use several currencies, or none has a price."},
	{name: "hourly_low", typ: types.StringType,
		doc: "Lowest price per hour of the places where it may run, in `currency`; null if none is known. All amounts are decimal strings."},
	{name: "hourly_high", typ: types.StringType, doc: "Highest price per hour, in `currency`; null if one is unknown."},
	{name: "total_low", typ: types.StringType,
		doc: "Lowest total, in `currency`: fee and minimum charge of the cheapest place; null if none is known."},
	{name: "total_high", typ: types.StringType, doc: "Highest total of the places where it may run, in `currency`; null if one is " +
		"unknown."},
	{name: "maximum", typ: types.StringType,
		doc: "Worst case if the sandbox lives until its TTL, in `currency`; null if unknown, never 0."},
	{name: "unknowns", typ: stringsType, doc: "Components without a known price."},
	{name: "summary", typ: types.StringType, doc: "The same in one line, rounded for people."},
}

type refusalModel struct {
	Stage  string `tfsdk:"stage"`
	Rule   string `tfsdk:"rule"`
	Reason string `tfsdk:"reason"`
	Remedy string `tfsdk:"remedy"`
}

type candidateModel struct {
	Extension  string         `tfsdk:"extension"`
	Host       types.String   `tfsdk:"host"`
	Eligible   bool           `tfsdk:"eligible"`
	Order      types.Int64    `tfsdk:"order"`
	Hourly     types.String   `tfsdk:"hourly"`
	Creation   types.String   `tfsdk:"creation"`
	Maximum    types.String   `tfsdk:"maximum"`
	Currency   types.String   `tfsdk:"currency"`
	Source     types.String   `tfsdk:"source"`
	AsOf       types.String   `tfsdk:"as_of"`
	Confidence types.String   `tfsdk:"confidence"`
	Expiry     types.String   `tfsdk:"expiry"`
	Refusals   []refusalModel `tfsdk:"refusals"`
}

type estimateModel struct {
	Summary    types.String `tfsdk:"summary"`
	Hourly     types.String `tfsdk:"hourly"`
	Maximum    types.String `tfsdk:"maximum"`
	Currency   types.String `tfsdk:"currency"`
	Confidence types.String `tfsdk:"confidence"`
}

// numbersModel holds the numbers a quote gives for all places together.
type numbersModel struct {
	Currency   types.String `tfsdk:"currency"`
	HourlyLow  types.String `tfsdk:"hourly_low"`
	HourlyHigh types.String `tfsdk:"hourly_high"`
	TotalLow   types.String `tfsdk:"total_low"`
	TotalHigh  types.String `tfsdk:"total_high"`
	Maximum    types.String `tfsdk:"maximum"`
	Unknowns   []string     `tfsdk:"unknowns"`
	Summary    types.String `tfsdk:"summary"`
}

func newEstimate(e engine.Estimate) estimateModel {
	return estimateModel{Summary: optional(costOf(e)), Hourly: optional(e.HourlyHigh), Maximum: optional(e.Maximum),
		Currency: optional(e.Currency), Confidence: optional(e.Confidence)}
}

func newNumbers(e engine.Estimate) numbersModel {
	return numbersModel{
		Currency: optional(e.Currency), HourlyLow: optional(e.HourlyLow), HourlyHigh: optional(e.HourlyHigh),
		TotalLow: optional(e.TotalLow), TotalHigh: optional(e.TotalHigh), Maximum: optional(e.Maximum),
		Unknowns: notNil(e.Unpriced), Summary: optional(costOf(e)),
	}
}

func newCandidate(c engine.EstimateCandidate) candidateModel {
	m := candidateModel{
		Extension: c.Extension, Host: optional(c.Host), Eligible: c.Eligible, Order: types.Int64Null(),
		Hourly: optional(c.Hourly), Creation: optional(c.Creation), Maximum: optional(c.Maximum), Currency: optional(c.Currency),
		Source: optional(c.Source), AsOf: optional(c.AsOf), Confidence: optional(c.Confidence), Expiry: optional(c.Expiry),
		Refusals: newRefusals(c.Refusals),
	}
	if c.Order > 0 {
		m.Order = types.Int64Value(c.Order)
	}
	return m
}

func newRefusals(rs []engine.Refusal) []refusalModel {
	out := []refusalModel{}
	for _, r := range rs {
		out = append(out, refusalModel(r))
	}
	return out
}

func notNil(l []string) []string {
	if l == nil {
		return []string{}
	}
	return l
}

func estimateValue(ctx context.Context, e engine.Estimate) (types.Object, diag.Diagnostics) {
	return types.ObjectValueFrom(ctx, attrTypes(estimateFields), newEstimate(e))
}

// estimateOrNull returns null for an absent estimate.
func estimateOrNull(ctx context.Context, e engine.Estimate) (types.Object, diag.Diagnostics) {
	if e.CatalogDigest == "" {
		return types.ObjectNull(attrTypes(estimateFields)), nil
	}
	return estimateValue(ctx, e)
}

func estimateUnknown() types.Object { return types.ObjectUnknown(attrTypes(estimateFields)) }
