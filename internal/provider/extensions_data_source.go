package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

type extensionsDataSource struct{ dataSource }

type extensionsModel struct {
	Extensions []extensionModel `tfsdk:"extensions"`
}

type extensionModel struct {
	ID              string       `tfsdk:"id"`
	Title           types.String `tfsdk:"title"`
	Handler         string       `tfsdk:"handler"`
	TakesPart       bool         `tfsdk:"takes_part"`
	Places          []string     `tfsdk:"places"`
	Priority        int64        `tfsdk:"priority"`
	Region          types.String `tfsdk:"region"`
	Credentials     []string     `tfsdk:"credentials"`
	IsolationLevels []string     `tfsdk:"isolation_levels"`
	Powers          []string     `tfsdk:"powers"`
	Egress          types.String `tfsdk:"egress"`
	Expiry          types.String `tfsdk:"expiry"`
	PricingModel    types.String `tfsdk:"pricing_model"`
	PauseResume     bool         `tfsdk:"pause_resume"`
	GPU             bool         `tfsdk:"gpu"`
	OS              []string     `tfsdk:"os"`
	Arch            []string     `tfsdk:"arch"`
}

var stringList = types.ListType{ElemType: types.StringType}

var extensionFields = []computedField{
	{name: "id", typ: types.StringType, doc: "ID in the catalog, such as `ext.local`."},
	{name: "title", typ: types.StringType, doc: "Title for people."},
	{name: "handler", typ: types.StringType, doc: "Adapter that it configures."},
	{name: "takes_part", typ: types.BoolType, doc: "Whether routing considers it for a profile that does not pin it. A vendor needs an " +
		"entry in the provider's `credentials`, or `enabled: true` in the catalog."},
	{name: "places", typ: stringList, doc: "Kinds of place it runs at: `machine` (this one), `host` or `account`."},
	{name: "priority", typ: types.Int64Type, doc: "Higher is preferred."},
	{name: "region", typ: types.StringType, doc: "Its region. Null for any."},
	{name: "credentials", typ: stringList, doc: "Names of the credentials it takes."},
	{name: "isolation_levels", typ: stringList, doc: "Levels of isolation it offers, the weakest first."},
	{name: "powers", typ: stringList, doc: "Operations that it supports, such as `exec`, `snapshot` or `extend`."},
	{name: "egress", typ: types.StringType, doc: "Network policy that it can enforce: `none`, `deny-only`, `cidr`, `domain-only` or " +
		"`domain`."},
	{name: "expiry", typ: types.StringType, doc: "Strongest mechanism that ends its sandboxes: `native`, `host` or `sweep`."},
	{name: "pricing_model", typ: types.StringType, doc: "`self-hosted` or `metered`."},
	{name: "pause_resume", typ: types.BoolType, doc: "Whether sandboxes can be paused."},
	{name: "gpu", typ: types.BoolType, doc: "Whether they can have GPUs."},
	{name: "os", typ: stringList, doc: "Operating systems inside."},
	{name: "arch", typ: stringList, doc: "Architectures inside; `*` is the host's own."},
}

// Metadata implements datasource.DataSource.
func (d *extensionsDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_extensions"
}

// Schema implements datasource.DataSource.
func (d *extensionsDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the extensions of the catalog and what each declares. A single host or a vendor's plan may offer less. " +
			"It contacts no place.",
		Attributes: dataComputed([]computedField{{name: "extensions", list: extensionFields, doc: "Extensions, by ID."}}),
	}
}

// Read implements datasource.DataSource.
func (d *extensionsDataSource) Read(ctx context.Context, _ datasource.ReadRequest, resp *datasource.ReadResponse) {
	e := d.must(&resp.Diagnostics)
	if e == nil {
		return
	}
	m := extensionsModel{Extensions: []extensionModel{}}
	for _, b := range e.Bindings() {
		m.Extensions = append(m.Extensions, newExtension(b, e.TakesPart(b)))
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func newExtension(b engine.Binding, takesPart bool) extensionModel {
	c := b.Capabilities
	m := extensionModel{
		ID: b.ID, Title: optional(b.Title), Handler: b.Handler, TakesPart: takesPart, Priority: b.Priority, Region: optional(b.Region),
		Places: words(b.Descriptor.Places), Powers: words(b.Descriptor.Powers), IsolationLevels: words(c.IsolationLevels),
		Credentials: []string{},
		Egress:      optional(string(c.Egress)), Expiry: optional(string(c.Expiry)), PricingModel: optional(c.PricingModel),
		PauseResume: c.PauseResume, GPU: c.GPU, OS: words(c.OS), Arch: words(c.Arch),
	}
	for _, f := range b.Descriptor.Credentials {
		m.Credentials = append(m.Credentials, f.Name)
	}
	return m
}

// words returns a list of names, empty instead of null.
func words[T ~string](in []T) []string {
	out := make([]string, 0, len(in))
	for _, w := range in {
		out = append(out, string(w))
	}
	return out
}
