package provider

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

type profileDataSource struct{ dataSource }

type profileModel struct {
	Profile      types.String        `tfsdk:"profile"`
	ID           types.String        `tfsdk:"id"`
	Version      types.String        `tfsdk:"version"`
	Extension    types.String        `tfsdk:"extension"`
	CostClass    types.String        `tfsdk:"cost_class"`
	LatencyClass types.String        `tfsdk:"latency_class"`
	Inputs       []profileInputModel `tfsdk:"inputs"`
}

type profileInputModel struct {
	Name     string       `tfsdk:"name"`
	Type     string       `tfsdk:"type"`
	Required bool         `tfsdk:"required"`
	Default  types.String `tfsdk:"default_json"`
	Doc      types.String `tfsdk:"doc"`
}

var profileFields = []computedField{
	{name: "id", typ: types.StringType, doc: "ID of the profile."},
	{name: "version", typ: types.StringType, doc: "Version: the one in `profile`, or the newest."},
	{name: "extension", typ: types.StringType, doc: "Extension that the profile pins. Null if routing chooses."},
	{name: "cost_class", typ: types.StringType, doc: "Label `metadata.cost_class`. Null without one."},
	{name: "latency_class", typ: types.StringType, doc: "Label `metadata.latency_class`. Null without one."},
	{name: "inputs", doc: "Declared inputs, by name.", list: []computedField{
		{name: "name", typ: types.StringType, doc: "Name of the input."},
		{name: "type", typ: types.StringType, doc: "`string`, `number`, `bool`, `list` or `map`."},
		{name: "required", typ: types.BoolType, doc: "Whether a sandbox must set it."},
		{name: "default_json", typ: types.StringType, doc: "Default as JSON, for `jsondecode`. Null without one."},
		{name: "doc", typ: types.StringType, doc: "Description of the input. Null if the profile has none."},
	}},
}

// Metadata implements datasource.DataSource.
func (d *profileDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_profile"
}

// Schema implements datasource.DataSource.
func (d *profileDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attrs := dataComputed(profileFields)
	attrs["profile"] = schema.StringAttribute{Required: true, Validators: []validator.String{profileRef()},
		MarkdownDescription: "ID of a profile in the catalog, such as `profile.quickstart`, or one of its versions, such as " +
			"`profile.quickstart@1.0.0`."}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Reads a profile of the catalog, merged with the profiles that it extends: the version that a new sandbox " +
			"gets, and the inputs. It contacts no place. `sandboxer profile list` prints the same for all profiles.",
		Attributes: attrs,
	}
}

// Read implements datasource.DataSource.
func (d *profileDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m profileModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	e := d.must(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	p, err := e.Profile(m.Profile.ValueString())
	if err != nil {
		addErrorAt(ctx, &resp.Diagnostics, path.Root("profile"), "No profile "+m.Profile.ValueString(), err)
		return
	}
	m.ID, m.Version, m.Extension = optional(p.ID), optional(p.Version), optional(p.Extension)
	m.CostClass, m.LatencyClass, m.Inputs = optional(p.CostClass), optional(p.LatencyClass), []profileInputModel{}
	for _, in := range p.Inputs {
		im := profileInputModel{Name: in.Name, Type: in.Type, Required: in.Required, Doc: optional(in.Doc)}
		if in.Default != nil {
			raw, err := json.Marshal(in.Default)
			if err != nil {
				addError(ctx, &resp.Diagnostics, "The default of input "+in.Name+" cannot be shown", err)
				return
			}
			im.Default = types.StringValue(string(raw))
		}
		m.Inputs = append(m.Inputs, im)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}
