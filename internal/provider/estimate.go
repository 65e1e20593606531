package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

var stringsType = types.ListType{ElemType: types.StringType}

var refusalFields = []computedField{
	{name: "stage", typ: types.StringType, doc: "The step of routing that refused: `intent`, `permission`, `viability`, …"},
	{name: "rule", typ: types.StringType, doc: "Stable id of the rule."},
	{name: "reason", typ: types.StringType, doc: "Why, in words."},
	{name: "remedy", typ: types.StringType, doc: "What would let it in."},
}

var candidateFields = []computedField{
	{name: "extension", typ: types.StringType, doc: "The extension, such as `ext.local`."},
	{name: "host", typ: types.StringType, doc: "Name of the host; null for a vendor's account, or this machine without a name."},
	{name: "eligible", typ: types.BoolType, doc: "Whether the sandbox may run there."},
	{name: "order", typ: types.Int64Type, doc: "1 is the first choice; null for a refused one."},
	{name: "hourly", typ: types.StringType, doc: "Price per hour; null if unknown."},
	{name: "creation", typ: types.StringType, doc: "Fee per creation; null if unknown."},
	{name: "maximum", typ: types.StringType, doc: "Worst case at the TTL; null if unknown."},
	{name: "currency", typ: types.StringType, doc: "ISO 4217 code."},
	{name: "source", typ: types.StringType, doc: "Where the price comes from."},
	{name: "as_of", typ: types.StringType, doc: "Date of the price."},
	{name: "confidence", typ: types.StringType, doc: "`exact`, `estimated` or `unknown`."},
	{name: "expiry", typ: types.StringType, doc: "Who ends the sandbox when its time is up: `native` (the backend itself), `host` (a timer there) or `sweep` (the next run of sandboxer)."},
	{name: "refusals", list: refusalFields, doc: "Why it was refused; empty for an eligible one."},
}

// estimateFields are shared by sandboxer_sandbox.estimate and sandboxer_quote.
var estimateFields = []computedField{
	{name: "catalog_digest", typ: types.StringType, doc: "Digest of the catalog these numbers come from."},
	{name: "currency", typ: types.StringType, doc: "ISO 4217 code of the range; null where candidates are priced in several currencies or none is priced."},
	{name: "hourly_low", typ: types.StringType, doc: "Lowest price per hour over the eligible candidates, as a decimal string."},
	{name: "hourly_high", typ: types.StringType, doc: "Highest price per hour; null if one is unknown."},
	{name: "total_low", typ: types.StringType, doc: "Lowest total: fee and minimum charge of the cheapest candidate."},
	{name: "total_high", typ: types.StringType, doc: "Highest total over the eligible candidates; null if one is unknown."},
	{name: "maximum", typ: types.StringType, doc: "Worst case when the sandbox lives until its TTL; null if unknown, never 0 for unknown."},
	{name: "candidates", list: candidateFields, doc: "Every place that was considered, eligible ones first in their order, with its price or why it was refused. Test doubles are left out unless the profile names them."},
	{name: "unknowns", typ: stringsType, doc: "What could not be priced."},
	{name: "assumptions", typ: stringsType, doc: "What the numbers assume."},
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
	CatalogDigest types.String     `tfsdk:"catalog_digest"`
	Currency      types.String     `tfsdk:"currency"`
	HourlyLow     types.String     `tfsdk:"hourly_low"`
	HourlyHigh    types.String     `tfsdk:"hourly_high"`
	TotalLow      types.String     `tfsdk:"total_low"`
	TotalHigh     types.String     `tfsdk:"total_high"`
	Maximum       types.String     `tfsdk:"maximum"`
	Candidates    []candidateModel `tfsdk:"candidates"`
	Unknowns      []string         `tfsdk:"unknowns"`
	Assumptions   []string         `tfsdk:"assumptions"`
}

func newEstimate(e engine.Estimate) estimateModel {
	m := estimateModel{
		CatalogDigest: optional(e.CatalogDigest), Currency: optional(e.Currency),
		HourlyLow: optional(e.HourlyLow), HourlyHigh: optional(e.HourlyHigh),
		TotalLow: optional(e.TotalLow), TotalHigh: optional(e.TotalHigh), Maximum: optional(e.Maximum),
		Candidates: []candidateModel{}, Unknowns: notNil(e.Unknowns), Assumptions: notNil(e.Assumptions),
	}
	for _, c := range e.Candidates {
		if isUnnamedDouble(c.Refusals) {
			continue
		}
		cm := candidateModel{
			Extension: c.Extension, Host: optional(c.Host), Eligible: c.Eligible, Order: types.Int64Null(),
			Hourly: optional(c.Hourly), Creation: optional(c.Creation), Maximum: optional(c.Maximum), Currency: optional(c.Currency),
			Source: optional(c.Source), AsOf: optional(c.AsOf), Confidence: optional(c.Confidence), Expiry: optional(c.Expiry),
			Refusals: newRefusals(c.Refusals),
		}
		if c.Order > 0 {
			cm.Order = types.Int64Value(c.Order)
		}
		m.Candidates = append(m.Candidates, cm)
	}
	return m
}

// isUnnamedDouble reports the refusal of a test double that nobody asked for:
// it was no candidate, and its invented price in every plan would only puzzle.
func isUnnamedDouble(rs []engine.Refusal) bool {
	return slices.ContainsFunc(rs, func(r engine.Refusal) bool { return r.Rule == "intent.named-only" })
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

// estimateOrNull is null for an estimate nobody made.
func estimateOrNull(ctx context.Context, e engine.Estimate) (types.Object, diag.Diagnostics) {
	if e.CatalogDigest == "" {
		return types.ObjectNull(attrTypes(estimateFields)), nil
	}
	return estimateValue(ctx, e)
}

func estimateUnknown() types.Object { return types.ObjectUnknown(attrTypes(estimateFields)) }

// explainRefusals lists refused candidates for people; "" if there are none.
// Those that the request itself leaves out (another extension is pinned,
// other hosts are named) are only counted, unless all is set.
func explainRefusals(e engine.Estimate, all bool) string {
	var b strings.Builder
	leftOut := 0
	for _, c := range e.Candidates {
		if c.Eligible {
			continue
		}
		if !all && leavesOut(c) {
			leftOut++
			continue
		}
		fmt.Fprintf(&b, "- %s:", place(c.Extension, c.Host))
		for i, r := range c.Refusals {
			if i > 0 {
				b.WriteString("\n ")
			}
			b.WriteString(" " + sentence(r.Reason))
			if r.Remedy != "" {
				b.WriteString(" To use it: " + strings.TrimRight(r.Remedy, ".") + ".")
			}
		}
		b.WriteString("\n")
	}
	if b.Len() > 0 && leftOut > 0 {
		fmt.Fprintf(&b, "- not considered, because the request leaves them out: %d more\n", leftOut)
	}
	return strings.TrimRight(b.String(), "\n")
}

const stageIntent = "intent"

func leavesOut(c engine.EstimateCandidate) bool {
	return len(c.Refusals) > 0 && !slices.ContainsFunc(c.Refusals, func(r engine.Refusal) bool { return r.Stage != stageIntent })
}

// explainNumbers is the estimate in one paragraph, for a notice where it
// cannot be planned.
func explainNumbers(e engine.Estimate) string {
	var b strings.Builder
	for _, c := range e.Candidates {
		if !c.Eligible {
			continue
		}
		cost := "price unknown"
		if c.Hourly != "" {
			cost = fmt.Sprintf("%s %s an hour", c.Hourly, c.Currency)
		}
		if c.Maximum != "" {
			cost += fmt.Sprintf(", at most %s %s for %s", c.Maximum, c.Currency, e.TTL)
		}
		fmt.Fprintf(&b, "%d. %s: %s\n", c.Order, place(c.Extension, c.Host), cost)
	}
	return strings.TrimRight(b.String(), "\n")
}

func place(extension, host string) string {
	if host == "" {
		return extension
	}
	return extension + " on " + host
}
