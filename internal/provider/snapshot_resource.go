package provider

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

type snapshotResource struct{ withEngine }

var (
	_ resource.ResourceWithConfigure   = (*snapshotResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*snapshotResource)(nil)
	_ resource.ResourceWithImportState = (*snapshotResource)(nil)
)

type snapshotModel struct {
	SandboxID types.String `tfsdk:"sandbox_id"`
	Name      types.String `tfsdk:"name"`
	Triggers  types.Map    `tfsdk:"triggers"`
	ID        types.String `tfsdk:"id"`
	Account   types.String `tfsdk:"account"`
	Extension types.String `tfsdk:"extension"`
	Host      types.String `tfsdk:"host"`
	Handle    types.String `tfsdk:"handle"`
	Kind      types.String `tfsdk:"kind"`
	SizeBytes types.Int64  `tfsdk:"size_bytes"`
	Digest    types.String `tfsdk:"digest"`
	CreatedAt types.String `tfsdk:"created_at"`
	Live      types.Bool   `tfsdk:"live"`
	AllowEnd  types.Bool   `tfsdk:"allow_end"`
	Retention types.String `tfsdk:"retention"`
	ExpiresAt types.String `tfsdk:"expires_at"`
}

// Metadata implements resource.Resource.
func (r *snapshotResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_snapshot"
}

// Schema implements resource.Resource.
func (r *snapshotResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Keeps a checkpoint of a sandbox. Sandboxes start from it with `from_snapshot`.\n\nA snapshot outlives its " +
			"sandbox. A change of `sandbox_id` takes no new snapshot; a change of `triggers`, `name`, `kind` or `live` does, " +
			"and is refused once the sandbox has ended. Refresh and destroy need no live sandbox.",
		Attributes: map[string]schema.Attribute{
			"sandbox_id": schema.StringAttribute{
				Required: true, Validators: []validator.String{sandboxID()},
				MarkdownDescription: "ID of the sandbox. Used only when the snapshot is taken.",
			},
			"name": schema.StringAttribute{
				Optional: true, Validators: []validator.String{label("a snapshot's name")},
				MarkdownDescription: "Name for people. A change takes a new snapshot.",
			},
			"triggers": schema.MapAttribute{
				ElementType: types.StringType, Optional: true, Validators: []validator.Map{eachValue(text())},
				MarkdownDescription: "Any values. A change takes a new snapshot.",
			},
			"id":        schema.StringAttribute{Computed: true, MarkdownDescription: "ID of the snapshot, for `sandboxer_sandbox.from_snapshot`."},
			"account":   schema.StringAttribute{Computed: true, MarkdownDescription: "Account of the snapshot."},
			"extension": schema.StringAttribute{Computed: true, MarkdownDescription: "Extension that keeps it."},
			"host":      schema.StringAttribute{Computed: true, MarkdownDescription: "Ref of the host that keeps it. Null for a vendor's account."},
			"handle":    schema.StringAttribute{Computed: true, MarkdownDescription: "Durable pointer to the snapshot, without secrets."},
			"kind": schema.StringAttribute{
				Optional: true, Computed: true, Validators: []validator.String{oneOf(snapshotKinds()...)},
				MarkdownDescription: "What the snapshot contains: `workspace`, `filesystem`, `memory` (with running processes and their secrets) " +
					"or `metadata`. Default: that of its place. A change takes a new snapshot.",
			},
			"live": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Takes the snapshot while the sandbox keeps running, so its files may be from different moments. Default: " +
					"`false`, which stops everything inside meanwhile. A change takes a new snapshot.",
			},
			"allow_end": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Permits a snapshot that ends its sandbox, at a place that takes no other, such as `ext.vercel`. The sandbox is " +
					"then settled; with `on_expiry = \"keep\"`, its resource is not replaced. Default: `false`, which refuses the snapshot there.",
			},
			"retention": schema.StringAttribute{
				Optional: true, Validators: []validator.String{duration()},
				MarkdownDescription: "How long the snapshot is kept after its creation, such as `30d`. Then the next run that changes something, " +
					"or `sandboxer sweep`, deletes it, unless a sandbox is being started from it. Default: until you destroy it, or its place " +
					"deletes it. Platform credit does not pay for a snapshot without an end. A change applies in place.",
			},
			"expires_at": schema.StringAttribute{Computed: true,
				MarkdownDescription: "Time when `retention` or its place ends it, RFC 3339. Null if nothing does."},
			"size_bytes": schema.Int64Attribute{Computed: true, MarkdownDescription: "Size in bytes."},
			"digest": schema.StringAttribute{Computed: true,
				MarkdownDescription: "`sha256:…` of the content. Null if the place reports none."},
			"created_at": schema.StringAttribute{Computed: true, MarkdownDescription: "Time of the snapshot, RFC 3339."},
		},
	}
}

// ModifyPlan implements resource.ResourceWithModifyPlan.
func (r *snapshotResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	switch {
	case req.Plan.Raw.IsNull():
		return
	case req.State.Raw.IsNull():
		r.planCreate(ctx, req, resp)
		return
	}
	var plan, state snapshotModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	var config snapshotModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	replaced := false
	for _, c := range []struct {
		name    string
		changed bool
	}{
		{"kind", !config.Kind.IsNull() && !config.Kind.Equal(state.Kind)},
		{"live", config.Live.IsUnknown() || config.Live.ValueBool() != state.Live.ValueBool()},
	} {
		if c.changed {
			resp.RequiresReplace.Append(path.Root(c.name))
			replaced = true
		}
	}
	if !sameMap(plan.Triggers, state.Triggers) && !imported(ctx, req.Private) {
		resp.RequiresReplace.Append(path.Root("triggers"))
		replaced = true
	}
	if !plan.Name.Equal(state.Name) {
		resp.RequiresReplace.Append(path.Root("name"))
		replaced = true
	}
	if replaced {
		return
	}
	if r.cfg != nil {
		r.cfg.tellAccount(&resp.Diagnostics, "Snapshot "+state.ID.ValueString(), state.Account.ValueString())
	}
	args := plan
	plan = state
	plan.SandboxID, plan.Name, plan.Triggers, plan.Live, plan.AllowEnd, plan.Retention = args.SandboxID, args.Name, args.Triggers, args.Live,
		args.AllowEnd, args.Retention
	if !sameDuration(plan.Retention, state.Retention) {
		plan.ExpiresAt = types.StringUnknown() // its place may end it earlier
		if e := r.ready(); e != nil && !plan.Retention.IsUnknown() {
			if err := e.CheckRetention(ctx, plan.ID.ValueString(), plan.Retention.ValueString()); err != nil {
				addErrorAt(ctx, &resp.Diagnostics, path.Root("retention"), "It cannot be kept that long", err)
			}
		}
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// planCreate plans a new snapshot, which is also the second half of a replacement. A snapshot that could not
// be recorded, or whose sandbox has ended, is not taken, so the old one is not deleted for it.
func (r *snapshotResource) planCreate(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan snapshotModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, keyReplaces, strconv.AppendQuote(nil, plan.SandboxID.ValueString()))...)
	e := r.ready()
	if e == nil || r.cfg.run().destroys {
		return
	}
	if err := e.CheckLedger(ctx); err != nil {
		addError(ctx, &resp.Diagnostics, "No snapshot can be taken", err)
		return
	}
	told, err := e.CheckSnapshot(ctx, engine.ID(plan.SandboxID.ValueString()), plan.request())
	addNotices(&resp.Diagnostics, told)
	if err != nil {
		addError(ctx, &resp.Diagnostics, "This snapshot cannot be taken", err)
	}
}

func (m snapshotModel) request() engine.SnapshotRequest {
	return engine.SnapshotRequest{Name: m.Name.ValueString(), Kind: m.Kind.ValueString(), Live: m.Live.ValueBool(),
		AllowEnd: m.AllowEnd.ValueBool(), Retention: m.Retention.ValueString()}
}

func snapshotKinds() (names []string) {
	for _, k := range extensions.SnapshotKinds {
		names = append(names, string(k))
	}
	return names
}

// keyImported marks a snapshot whose triggers no import could restore: it then takes the configuration's
// without a new snapshot.
const keyImported = "imported"

func markImported(ctx context.Context, private privateWriter, is bool) diag.Diagnostics {
	return private.SetKey(ctx, keyImported, strconv.AppendBool(nil, is))
}

func imported(ctx context.Context, private privateReader) bool {
	raw, _ := private.GetKey(ctx, keyImported)
	return string(raw) == "true"
}

// Create implements resource.Resource.
func (r *snapshotResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan snapshotModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	e := r.must(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	rec, err := receiptBy(ctx, e, plan.SandboxID, r.cfg.account)
	if err != nil {
		addError(ctx, &resp.Diagnostics, notTaken(string(rec.ID), engine.SnapshotView{}), err)
		return
	}
	view, err := e.Snapshot(ctx, rec, plan.request())
	addNotices(&resp.Diagnostics, view.Notices)
	if view.ID != "" {
		plan.take(view)
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
		resp.Diagnostics.Append(markReplaces(ctx, resp.Private, false)...)
	}
	if err != nil {
		addErrorAt(ctx, &resp.Diagnostics, path.Root("sandbox_id"), notTaken(string(rec.ID), view), err)
	}
}

// notTaken says what a snapshot that failed has come to.
func notTaken(sandbox string, view engine.SnapshotView) string {
	if view.ID != "" { // one may exist
		return "The snapshot of sandbox " + sandbox + " was not finished"
	}
	return "No snapshot of sandbox " + sandbox + " was taken"
}

func (m *snapshotModel) take(v engine.SnapshotView) {
	m.ID, m.Account, m.Extension, m.Host, m.Handle = optional(v.ID),
		optional(v.Account), optional(v.Extension), optional(v.Host), handleValue(v.Handle, v.ID)
	m.Kind, m.SizeBytes, m.Digest, m.CreatedAt = optional(v.Kind), types.Int64Value(v.SizeBytes), optional(v.Digest), stamp(v.CreatedAt)
	m.ExpiresAt = stamp(v.ExpiresAt)
}

func (m snapshotModel) view() engine.SnapshotView {
	return engine.SnapshotView{ID: m.ID.ValueString(), Account: m.Account.ValueString(), Name: m.Name.ValueString(),
		SandboxID: engine.ID(m.SandboxID.ValueString()),
		Extension: m.Extension.ValueString(), Host: m.Host.ValueString(), Handle: handleOf(m.Handle, m.ID), Kind: m.Kind.ValueString(),
		SizeBytes: m.SizeBytes.ValueInt64(), Digest: m.Digest.ValueString(), CreatedAt: parseStamp(m.CreatedAt),
		Retention: m.Retention.ValueString()}
}

// Read implements resource.Resource.
func (r *snapshotResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state snapshotModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	e := r.ready()
	if resp.Diagnostics.HasError() || e == nil {
		return
	}
	got, err := e.GetSnapshot(ctx, state.view())
	switch {
	case extensions.IsKind(err, extensions.KindNotFound):
		summary, detail := "Snapshot "+state.ID.ValueString()+" was lost", sentence(err.Error())
		if end := parseStamp(state.ExpiresAt); !end.IsZero() && !end.After(time.Now()) {
			summary, detail = "Snapshot "+state.ID.ValueString()+" expired", "It was kept until "+state.ExpiresAt.ValueString()+"."
		}
		resp.Diagnostics.AddWarning(summary, detail+"\n\nThe state no longer has it. The next apply takes a new one.")
		resp.State.RemoveResource(ctx)
		return
	case err != nil:
		summary, detail := describe(ctx, "Snapshot "+state.ID.ValueString()+" could not be read", err)
		if !extensions.IsKind(engine.GivenUp(ctx, err), extensions.KindInterrupted) {
			detail += "\n\nIt stays in the state. To continue without contacting its place, use -refresh=false."
		}
		resp.Diagnostics.AddError(summary, detail)
		return
	}
	before := state
	state.take(got)
	state.keep(before)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// keep restores what an answer omits.
func (m *snapshotModel) keep(before snapshotModel) {
	for _, f := range []struct{ to, from *types.String }{
		{&m.ID, &before.ID}, {&m.Account, &before.Account}, {&m.Extension, &before.Extension}, {&m.Host, &before.Host},
		{&m.Handle, &before.Handle}, {&m.Kind, &before.Kind}, {&m.Digest, &before.Digest}, {&m.CreatedAt, &before.CreatedAt},
	} {
		if f.to.IsNull() {
			*f.to = *f.from
		}
	}
	if m.SizeBytes.ValueInt64() == 0 {
		m.SizeBytes = before.SizeBytes
	}
}

// Update implements resource.Resource. It changes the ledger's retention, and else only the state.
func (r *snapshotResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state snapshotModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	e := r.must(&resp.Diagnostics)
	if !resp.Diagnostics.HasError() && !sameDuration(plan.Retention, state.Retention) {
		kept, err := e.Retain(ctx, plan.ID.ValueString(), plan.Retention.ValueString())
		if err != nil {
			addErrorAt(ctx, &resp.Diagnostics, path.Root("retention"), "The retention of snapshot "+plan.ID.ValueString()+" was not changed", err)
			return
		}
		plan.ExpiresAt = stamp(kept.ExpiresAt)
	}
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
		resp.Diagnostics.Append(markImported(ctx, resp.Private, false)...)
	}
}

// Delete implements resource.Resource.
func (r *snapshotResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state snapshotModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	e := r.must(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	view := state.view()
	next, _ := req.Private.GetKey(ctx, keyReplaces) // planCreate wrote the sandbox of the next one
	view.SandboxID = engine.ID(strings.Trim(string(next), `"`))
	notices, err := e.DeleteSnapshot(ctx, view, len(next) > 0)
	addNotices(&resp.Diagnostics, notices)
	if err != nil && !extensions.IsKind(err, extensions.KindNotFound) {
		resp.Diagnostics.Append(markReplaces(ctx, resp.Private, false)...)
		addError(ctx, &resp.Diagnostics, "Snapshot "+state.ID.ValueString()+" was not deleted", err)
	}
}

// ImportState implements resource.ResourceWithImportState, by id.
func (r *snapshotResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	e := r.must(&resp.Diagnostics)
	if !extensions.ValidSnapshotID(req.ID) {
		notImportable(&resp.Diagnostics, "snapshot", req.ID,
			fmt.Sprintf("%q is not a snapshot ID, which is \"snp-\" and 20 characters", extensions.Clean(req.ID, 200)), importsSnapshot)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	v, err := e.LookupSnapshot(ctx, req.ID)
	if err != nil {
		addError(ctx, &resp.Diagnostics, "Snapshot "+req.ID+" cannot be imported", err)
		return
	}
	m := snapshotModel{SandboxID: optional(string(v.SandboxID)), Name: optional(v.Name), Triggers: types.MapNull(types.StringType)}
	m.Retention = optional(v.Retention)
	if v.Live {
		m.Live = types.BoolValue(true)
	}
	if v.AllowEnd {
		m.AllowEnd = types.BoolValue(true)
	}
	if v.Name == v.ID {
		m.Name = types.StringNull() // it was not given one
	}
	m.take(v)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	resp.Diagnostics.Append(markImported(ctx, resp.Private, true)...)
}
