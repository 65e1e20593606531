package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

type quoteDataSource struct{ dataSource }

type quoteModel struct {
	Profile        types.String  `tfsdk:"profile"`
	TTL            types.String  `tfsdk:"ttl"`
	Hosts          types.List    `tfsdk:"hosts"`
	Inputs         types.Dynamic `tfsdk:"inputs"`
	Billing        types.String  `tfsdk:"billing"`
	Expected       types.String  `tfsdk:"expected_duration"`
	History        types.Bool    `tfsdk:"history"`
	ProfileVersion types.String  `tfsdk:"profile_version"`
	CostClass      types.String  `tfsdk:"cost_class"`
	LatencyClass   types.String  `tfsdk:"latency_class"`
	Extension      types.String  `tfsdk:"extension"`
	numbersModel
	CatalogDigest types.String          `tfsdk:"catalog_digest"`
	Candidates    []quoteCandidateModel `tfsdk:"candidates"`
	Assumptions   []string              `tfsdk:"assumptions"`
	Route         *quoteRouteModel      `tfsdk:"route"`
	Funds         []fundsModel          `tfsdk:"funds"`
	Past          types.Int64           `tfsdk:"past"`
}

// Metadata implements datasource.DataSource.
func (d *quoteDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_quote"
}

// Schema implements datasource.DataSource.
func (d *quoteDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attrs := dataComputed(quoteFields())
	attrs["route"] = schema.SingleNestedAttribute{Computed: true, Attributes: dataComputed(quoteRouteFields),
		MarkdownDescription: "Where the sandbox would run, and why not elsewhere."}
	attrs["profile"] = schema.StringAttribute{Required: true, Validators: []validator.String{profileRef()},
		MarkdownDescription: "Profile to price."}
	attrs["ttl"] = schema.StringAttribute{Optional: true, Computed: true, Validators: []validator.String{duration()},
		MarkdownDescription: "How long the sandbox would live. Defaults to the profile's."}
	attrs["hosts"] = schema.ListAttribute{ElementType: types.StringType, Optional: true, Validators: []validator.List{eachString(hostEntry())},
		MarkdownDescription: "Hosts it may run on, as in `sandboxer_sandbox.hosts`."}
	attrs["inputs"] = schema.DynamicAttribute{Optional: true,
		MarkdownDescription: "Inputs of the profile, as in `sandboxer_sandbox.inputs`. Needed if the profile requires some."}
	attrs["billing"] = schema.StringAttribute{Optional: true, Validators: []validator.String{oneOf("platform", "byok")},
		MarkdownDescription: "Who pays the vendor, as in `sandboxer_sandbox.billing`. Defaults to the binding's `billing`, then to `platform`."}
	attrs["expected_duration"] = schema.StringAttribute{Optional: true, Validators: []validator.String{duration()},
		MarkdownDescription: "Probable duration, for `expected`. Defaults to the median of the profile's past sandboxes with `history`, else " +
			"to the whole TTL."}
	attrs["history"] = schema.BoolAttribute{Optional: true,
		MarkdownDescription: "Also reads past durations of the profile and the remaining credit and budgets from the ledger. The quote " +
			"then changes with them. Defaults to `false`: the quote depends only on the arguments and the catalog."}
	attrs["profile_version"] = schema.StringAttribute{Computed: true, MarkdownDescription: "Version of the profile."}
	attrs["cost_class"] = schema.StringAttribute{Computed: true,
		MarkdownDescription: "Label `metadata.cost_class` of the profile. Routing and prices ignore it. Null without one."}
	attrs["latency_class"] = schema.StringAttribute{Computed: true,
		MarkdownDescription: "Label `metadata.latency_class` of the profile. Routing ignores it. Null without one."}
	attrs["extension"] = schema.StringAttribute{Computed: true, MarkdownDescription: "First choice."}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Returns what a sandbox would cost and where it could run, without creating it: the computation behind " +
			"`sandboxer_sandbox.estimate`, with every place, source and date. " +
			"It contacts no place and writes nothing. Amounts are decimal strings in `currency`; null means unknown, never zero.",
		Attributes: attrs,
	}
}

// Read implements datasource.DataSource.
func (d *quoteDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m quoteModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if d.cfg == nil || d.cfg.engine == nil {
		resp.Diagnostics.AddError("The provider is not configured yet",
			"An argument of the provider block is still unknown, so the provider cannot price anything.")
	}
	if resp.Diagnostics.HasError() {
		return
	}
	request, diags := sandboxModel{Profile: m.Profile, TTL: m.TTL, Hosts: m.Hosts, Inputs: m.Inputs, Billing: m.Billing}.request(ctx)
	resp.Diagnostics.Append(diags...)
	options := engine.QuoteOptions{History: m.History.ValueBool()}
	if text := m.Expected.ValueString(); text != "" {
		var err error
		if options.Expected, err = engine.ParseDuration(text); err != nil {
			addErrorAt(ctx, &resp.Diagnostics, path.Root("expected_duration"), "No quote for "+m.Profile.ValueString(), err)
		}
	}
	if resp.Diagnostics.HasError() {
		return
	}
	quoted, err := d.cfg.engine.Quote(ctx, request, options)
	if err != nil {
		summary, detail := describe(ctx, "No quote for "+m.Profile.ValueString(), err)
		if refused := explainRefusals(quoted.Estimate, true); refused != "" {
			detail += "\n\nPlaces considered:\n" + refused
		}
		resp.Diagnostics.AddAttributeError(fieldPath(err, path.Root("profile"), "ttl", "hosts", "inputs"), summary, detail)
		return
	}
	m.take(quoted)
	addNotices(&resp.Diagnostics, quoted.Notices)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (m *quoteModel) take(p engine.Quoted) {
	if m.TTL.IsNull() {
		m.TTL = optional(p.Estimate.TTL)
	}
	m.ProfileVersion, m.CostClass, m.LatencyClass = optional(p.Version), optional(p.CostClass), optional(p.LatencyClass)
	m.numbersModel, m.Candidates = newNumbers(p.Estimate), newQuoteCandidates(p.Estimate.Candidates)
	m.Summary, m.CatalogDigest = optional(summaryOf(p.Estimate)), optional(p.Estimate.CatalogDigest)
	m.Unknowns, m.Assumptions = notNil(p.Estimate.Unknowns), notNil(p.Estimate.Assumptions)
	route := newQuoteRoute(p.Route)
	m.Route, m.Funds, m.Past = &route, newFunds(p.Funds), types.Int64Value(p.Past)
	for _, c := range p.Estimate.Candidates {
		if c.Order == 1 {
			m.Extension = optional(c.Extension)
		}
	}
}
