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

type quoteDataSource struct{ cfg *configured }

var _ datasource.DataSourceWithConfigure = (*quoteDataSource)(nil)

type quoteModel struct {
	Profile        types.String  `tfsdk:"profile"`
	TTL            types.String  `tfsdk:"ttl"`
	Hosts          types.List    `tfsdk:"hosts"`
	Inputs         types.Dynamic `tfsdk:"inputs"`
	History        types.Bool    `tfsdk:"history"`
	ProfileVersion types.String  `tfsdk:"profile_version"`
	Extension      types.String  `tfsdk:"extension"`
	estimateModel
}

// Metadata implements datasource.DataSource.
func (d *quoteDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_quote"
}

// Schema implements datasource.DataSource.
func (d *quoteDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attrs := dataComputed(estimateFields)
	attrs["profile"] = schema.StringAttribute{Required: true, Validators: []validator.String{profileRef()}, MarkdownDescription: "The profile to price."}
	attrs["ttl"] = schema.StringAttribute{Optional: true, Computed: true, Validators: []validator.String{duration()}, MarkdownDescription: "How long the sandbox would live. Default: the profile's."}
	attrs["hosts"] = schema.ListAttribute{ElementType: types.StringType, Optional: true, Validators: []validator.List{eachString(hostEntry())},
		MarkdownDescription: "Where it may run, as in `sandboxer_sandbox.hosts`."}
	attrs["inputs"] = schema.DynamicAttribute{Optional: true, MarkdownDescription: "The profile's inputs, as in `sandboxer_sandbox.inputs`; needed where the profile requires some."}
	attrs["history"] = schema.BoolAttribute{Optional: true, MarkdownDescription: "Reserved for quotes from what earlier sandboxes really cost. Only `false` is accepted in this version."}
	attrs["profile_version"] = schema.StringAttribute{Computed: true, MarkdownDescription: "Version of the profile that was priced."}
	attrs["extension"] = schema.StringAttribute{Computed: true, MarkdownDescription: "The first choice."}
	resp.Schema = schema.Schema{
		MarkdownDescription: "What a sandbox would cost, and where it could run, without making one. It is the same computation as `sandboxer_sandbox.estimate`: " +
			"nothing is dialled and nothing is written. Amounts are decimal strings in `currency`; null means unknown, never zero.",
		Attributes: attrs,
	}
}

// Read implements datasource.DataSource.
func (d *quoteDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m quoteModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if m.History.ValueBool() {
		resp.Diagnostics.AddAttributeError(path.Root("history"), "Quotes from history are not available",
			"This version prices from the catalog alone.\n\nWhat to do: leave history out.")
	}
	if d.cfg == nil || d.cfg.engine == nil {
		resp.Diagnostics.AddError("The provider is not configured yet",
			"An argument of the provider block is not known at this point, so nothing can be priced.")
	}
	if resp.Diagnostics.HasError() {
		return
	}
	request, diags := sandboxModel{Profile: m.Profile, TTL: m.TTL, Hosts: m.Hosts, Inputs: m.Inputs}.request(ctx)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	planned, err := d.cfg.engine.Plan(ctx, request)
	if err != nil {
		summary, detail := describe("No quote for "+m.Profile.ValueString(), err)
		if refused := explainRefusals(planned.Estimate, true); refused != "" {
			detail += "\n\nThe places that were considered:\n" + refused
		}
		resp.Diagnostics.AddAttributeError(fieldPath(err, path.Root("profile"), "ttl", "hosts", "inputs"), summary, detail)
		return
	}
	m.take(planned)
	addNotices(&resp.Diagnostics, planned.Notices)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (m *quoteModel) take(p engine.Planned) {
	if m.TTL.IsNull() {
		m.TTL = optional(p.Estimate.TTL)
	}
	m.ProfileVersion = optional(p.Version)
	m.estimateModel = newEstimate(p.Estimate)
	for _, c := range p.Estimate.Candidates {
		if c.Order == 1 {
			m.Extension = optional(c.Extension)
		}
	}
}
