package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

type sandboxesDataSource struct{ dataSource }

type sandboxesModel struct {
	filterModel
	All       types.Bool    `tfsdk:"all"`
	Sandboxes []listedModel `tfsdk:"sandboxes"`
}

// filterModel selects sandboxes of the ledger.
type filterModel struct {
	Profile   types.String `tfsdk:"profile"`
	Extension types.String `tfsdk:"extension"`
	Harness   types.String `tfsdk:"harness"`
	RunID     types.String `tfsdk:"run_id"`
}

func (f filterModel) takes(sb engine.Sandbox) bool {
	for _, c := range []struct {
		want types.String
		have string
	}{
		{f.Profile, sb.Profile}, {f.Extension, sb.Extension}, {f.Harness, sb.Request.Consumer.Harness}, {f.RunID, sb.Request.Consumer.RunID},
	} {
		if !c.want.IsNull() && c.want.ValueString() != c.have {
			return false
		}
	}
	return true
}

// filterDocs are the arguments of filterModel that are text.
var filterDocs = map[string]string{
	"profile": "Only this profile, by ID, in any version.", "extension": "Only this extension, such as `ext.local`.",
	"harness": "Only this consumer's harness.", "run_id": "Only this consumer's run.",
}

type listedModel struct {
	ID             string       `tfsdk:"id"`
	Name           types.String `tfsdk:"name"`
	Profile        types.String `tfsdk:"profile"`
	ProfileVersion types.String `tfsdk:"profile_version"`
	State          types.String `tfsdk:"state"`
	Mode           types.String `tfsdk:"mode"`
	Extension      types.String `tfsdk:"extension"`
	Host           types.String `tfsdk:"host"`
	CreatedAt      types.String `tfsdk:"created_at"`
	ExpiresAt      types.String `tfsdk:"expires_at"`
	EndedAt        types.String `tfsdk:"ended_at"`
	Reason         types.String `tfsdk:"reason"`
	Actor          types.String `tfsdk:"actor"`
	Harness        types.String `tfsdk:"harness"`
	RunID          types.String `tfsdk:"run_id"`
}

var listedFields = []computedField{
	{name: "id", typ: types.StringType, doc: "ID of the sandbox."},
	{name: "name", typ: types.StringType, doc: "Its name."},
	{name: "profile", typ: types.StringType, doc: "ID of its profile."},
	{name: "profile_version", typ: types.StringType, doc: "Version of its profile."},
	{name: "state", typ: types.StringType,
		doc: "`requested`, `provisioning`, `ready`, `expired`, `failed`, `destroying` or `destroyed`, as recorded in the ledger."},
	{name: "mode", typ: types.StringType, doc: "`running` or `paused`. Null if it is not ready."},
	{name: "extension", typ: types.StringType, doc: "Extension that runs it."},
	{name: "host", typ: types.StringType, doc: "Name of its host. Null for a vendor's account."},
	{name: "created_at", typ: types.StringType, doc: "Time of creation, RFC 3339."},
	{name: "expires_at", typ: types.StringType, doc: "Its deadline, RFC 3339."},
	{name: "ended_at", typ: types.StringType, doc: "When it ended, RFC 3339. Null while it lives."},
	{name: "reason", typ: types.StringType, doc: "Why it failed or ended."},
	{name: "actor", typ: types.StringType, doc: "The consumer's actor."},
	{name: "harness", typ: types.StringType, doc: "The consumer's harness."},
	{name: "run_id", typ: types.StringType, doc: "The consumer's run."},
}

// Metadata implements datasource.DataSource.
func (d *sandboxesDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_sandboxes"
}

// Schema implements datasource.DataSource.
func (d *sandboxesDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attrs := dataComputed([]computedField{{name: "sandboxes", list: listedFields, doc: "Sandboxes, the oldest first."}})
	attrs["all"] = schema.BoolAttribute{Optional: true, MarkdownDescription: "Includes sandboxes that have ended. Default: `false`."}
	for name, doc := range filterDocs {
		attrs[name] = schema.StringAttribute{Optional: true, Validators: []validator.String{plainText("text")}, MarkdownDescription: doc}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the sandboxes of the provider's account in the ledger. It contacts no place, so a sandbox that ended by " +
			"itself may still show as `ready` until the next run that changes something. `sandboxer sandbox list` prints the same.",
		Attributes: attrs,
	}
}

// Read implements datasource.DataSource.
func (d *sandboxesDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m sandboxesModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	e := d.must(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	all, err := e.List(ctx, m.All.ValueBool())
	if err != nil {
		addError(ctx, &resp.Diagnostics, "Sandboxes cannot be listed", err)
		return
	}
	m.Sandboxes = []listedModel{}
	for _, sb := range all {
		if m.takes(sb) {
			m.Sandboxes = append(m.Sandboxes, newListed(sb))
		}
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func newListed(sb engine.Sandbox) listedModel {
	c := sb.Request.Consumer
	return listedModel{
		ID: string(sb.ID), Name: optional(sb.Name), Profile: optional(sb.Profile), ProfileVersion: optional(sb.Version),
		State: optional(sb.State),
		Mode:  optional(sb.Mode), Extension: optional(sb.Extension), Host: optional(sb.HostName), CreatedAt: stamp(sb.CreatedAt),
		ExpiresAt: stamp(sb.ExpiresAt), EndedAt: stamp(sb.EndedAt), Reason: optional(sb.Reason), Actor: optional(c.Actor),
		Harness: optional(c.Harness), RunID: optional(c.RunID),
	}
}
