package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	fwlist "github.com/hashicorp/terraform-plugin-framework/list"
	lschema "github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// ListResources implements provider.ProviderWithListResources. Terraform before 1.14, and OpenTofu, never ask
// for them.
func (p *Provider) ListResources(context.Context) []func() fwlist.ListResource {
	return []func() fwlist.ListResource{func() fwlist.ListResource { return &sandboxList{} }}
}

// sandboxList lists sandboxes for `terraform query`.
type sandboxList struct{ withEngine }

var _ fwlist.ListResourceWithConfigure = (*sandboxList)(nil)

type sandboxListModel struct {
	filterModel
	Unknown types.Bool `tfsdk:"unknown"`
}

// Metadata implements list.ListResource.
func (l *sandboxList) Metadata(ctx context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	(&sandboxResource{}).Metadata(ctx, req, resp)
}

// ListResourceConfigSchema implements list.ListResource.
func (l *sandboxList) ListResourceConfigSchema(_ context.Context, _ fwlist.ListResourceSchemaRequest,
	resp *fwlist.ListResourceSchemaResponse) {
	attrs := map[string]lschema.Attribute{
		"unknown": lschema.BoolAttribute{Optional: true,
			MarkdownDescription: "Also asks every place for sandboxes with sandboxer's label that this ledger does not know. A warning lists " +
				"them. They cannot be imported, because another ledger may own them. Default: `false`, which contacts no place."},
	}
	for name, doc := range filterDocs {
		attrs[name] = lschema.StringAttribute{Optional: true, Validators: []validator.String{plainText("text")}, MarkdownDescription: doc}
	}
	resp.Schema = lschema.Schema{
		MarkdownDescription: "Lists the live sandboxes of the provider's account in the ledger. `terraform query " +
			"-generate-config-out=FILE` writes a resource and an `import` block for each, so you can import sandboxes that no state has.",
		Attributes: attrs,
	}
}

// List implements list.ListResource.
func (l *sandboxList) List(ctx context.Context, req fwlist.ListRequest, stream *fwlist.ListResultsStream) {
	var m sandboxListModel
	diags := req.Config.Get(ctx, &m)
	e := l.must(&diags)
	if diags.HasError() {
		stream.Results = fwlist.ListResultsStreamDiagnostics(diags)
		return
	}
	all, err := e.List(ctx, false)
	if err != nil {
		addError(ctx, &diags, "Sandboxes cannot be listed", err)
		stream.Results = fwlist.ListResultsStreamDiagnostics(diags)
		return
	}
	stream.Results = func(push func(fwlist.ListResult) bool) {
		var n int64
		for _, sb := range all {
			if !m.takes(sb) {
				continue
			}
			if n == req.Limit && req.Limit > 0 || !push(l.result(ctx, e, req, sb)) {
				return
			}
			n++
		}
		if m.Unknown.ValueBool() {
			if told := unknownSandboxes(ctx, e); len(told) > 0 {
				push(fwlist.ListResult{Diagnostics: told})
			}
		}
	}
}

func (l *sandboxList) result(ctx context.Context, e *engine.Engine, req fwlist.ListRequest, sb engine.Sandbox) fwlist.ListResult {
	r := req.NewListResult(ctx)
	r.DisplayName = fmt.Sprintf("%s (%s, %s)", sb.Name, sb.ID, sb.State)
	r.Diagnostics.Append(r.Identity.Set(ctx, identityModel{Account: optional(sb.Account), Name: optional(sb.Name)})...)
	if req.IncludeResource {
		m, diags := restored(ctx, e, sb)
		r.Diagnostics.Append(diags...)
		r.Diagnostics.Append(r.Resource.Set(ctx, &m)...)
	}
	return r
}

// unknownSandboxes tells what the places have and the ledger does not know.
func unknownSandboxes(ctx context.Context, e *engine.Engine) (diags diag.Diagnostics) {
	report, err := e.Sweep(ctx, true, nil)
	switch {
	case err != nil:
		addWarning(ctx, &diags, "The places were not asked for unknown sandboxes", err)
	case len(report.Orphans) > 0:
		diags.AddWarning(fmt.Sprintf("%d sandboxes are unknown to this ledger", len(report.Orphans)), bullets(report.Orphans)+
			"\nWhat to do: they are another ledger's, or end at their deadlines; `sandboxer sweep --dry-run` lists them again.")
	}
	if len(report.Failures) > 0 {
		diags.AddWarning("Not every place could be asked for unknown sandboxes", bullets(report.Failures))
	}
	return diags
}
