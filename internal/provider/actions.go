package provider

import (
	"context"
	"fmt"

	tfaction "github.com/hashicorp/terraform-plugin-framework/action"
	aschema "github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// Actions implements provider.ProviderWithActions. Terraform before 1.14, and OpenTofu, never ask for them.
func (p *Provider) Actions(context.Context) []func() tfaction.Action {
	return []func() tfaction.Action{
		func() tfaction.Action { return &execAction{} },
		func() tfaction.Action { return &extendAction{} },
		func() tfaction.Action { return &snapshotAction{} },
	}
}

// actionOn is withEngine for an action.
type actionOn struct{ withEngine }

// Configure implements action.ActionWithConfigure.
func (a *actionOn) Configure(_ context.Context, req tfaction.ConfigureRequest, resp *tfaction.ConfigureResponse) {
	a.cfg = takeConfigured(req.ProviderData, &resp.Diagnostics)
}

var (
	_ tfaction.ActionWithConfigure      = (*execAction)(nil)
	_ tfaction.ActionWithValidateConfig = (*execAction)(nil)
	_ tfaction.ActionWithConfigure      = (*extendAction)(nil)
	_ tfaction.ActionWithConfigure      = (*snapshotAction)(nil)
)

// actionArguments are a resource's arguments as an action has them.
func actionArguments(of map[string]schema.Attribute) map[string]aschema.Attribute {
	out := map[string]aschema.Attribute{}
	for name, a := range of {
		switch a := a.(type) {
		case schema.StringAttribute:
			out[name] = aschema.StringAttribute{Required: a.Required, Optional: a.Optional, Validators: a.Validators,
				MarkdownDescription: a.MarkdownDescription}
		case schema.BoolAttribute:
			out[name] = aschema.BoolAttribute{Optional: a.Optional, MarkdownDescription: a.MarkdownDescription}
		case schema.ListAttribute:
			out[name] = aschema.ListAttribute{ElementType: a.ElementType, Optional: a.Optional, Validators: a.Validators,
				MarkdownDescription: a.MarkdownDescription}
		case schema.MapAttribute:
			out[name] = aschema.MapAttribute{ElementType: a.ElementType, Optional: a.Optional, Validators: a.Validators,
				MarkdownDescription: a.MarkdownDescription}
		}
	}
	return out
}

// execAction runs a command inside, and keeps nothing of it.
type execAction struct{ actionOn }

// Metadata implements action.Action.
func (a *execAction) Metadata(_ context.Context, req tfaction.MetadataRequest, resp *tfaction.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_exec"
}

// Schema implements action.Action.
func (a *execAction) Schema(_ context.Context, _ tfaction.SchemaRequest, resp *tfaction.SchemaResponse) {
	resp.Schema = aschema.Schema{
		MarkdownDescription: "Runs a command inside a sandbox and shows each line of its output. An unexpected exit code fails the action " +
			"and shows the end of the output. The output hides the secrets of the command and of the sandbox. If sandboxer cannot read the " +
			"sandbox's secrets, for example without its ledger, it shows no output.",
		Attributes: actionArguments(commandArguments()),
	}
}

// ValidateConfig implements action.ActionWithValidateConfig.
func (a *execAction) ValidateConfig(ctx context.Context, req tfaction.ValidateConfigRequest, resp *tfaction.ValidateConfigResponse) {
	var m commandModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if !resp.Diagnostics.HasError() {
		m.check(ctx, &resp.Diagnostics)
	}
}

// Invoke implements action.Action.
func (a *execAction) Invoke(ctx context.Context, req tfaction.InvokeRequest, resp *tfaction.InvokeResponse) {
	e := a.changing(&resp.Diagnostics)
	var m commandModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	task, diags := m.task(ctx)
	resp.Diagnostics.Append(diags...)
	task.Secrets, diags = m.resolve(ctx, nil)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	task.Line = func(line string) { resp.SendProgress(tfaction.InvokeProgressEvent{Message: line}) }
	rec, err := receiptBy(ctx, e, m.SandboxID, a.cfg.account)
	if err == nil {
		_, err = e.Perform(ctx, rec, task)
	}
	if err != nil {
		addError(ctx, &resp.Diagnostics, "Command in sandbox "+m.SandboxID.ValueString()+" failed", err)
	}
}

// extendAction moves a sandbox's deadline on behalf of others than its owner.
type extendAction struct{ actionOn }

// Metadata implements action.Action.
func (a *extendAction) Metadata(_ context.Context, req tfaction.MetadataRequest, resp *tfaction.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_extend"
}

// Schema implements action.Action.
func (a *extendAction) Schema(_ context.Context, _ tfaction.SchemaRequest, resp *tfaction.SchemaResponse) {
	resp.Schema = aschema.Schema{
		MarkdownDescription: "Moves a sandbox's deadline to its creation time plus a duration. The deadline never moves to an earlier " +
			"time, or past the profile's maximum. The `ttl` of the sandbox's own resource stays as it is.",
		Attributes: map[string]aschema.Attribute{
			"sandbox_id": aschema.StringAttribute{Required: true, Validators: []validator.String{sandboxID()},
				MarkdownDescription: "ID of the sandbox."},
			"ttl": aschema.StringAttribute{Required: true, Validators: []validator.String{duration()},
				MarkdownDescription: "How long it lives from its creation, such as `6h`."},
		},
	}
}

// Invoke implements action.Action.
func (a *extendAction) Invoke(ctx context.Context, req tfaction.InvokeRequest, resp *tfaction.InvokeResponse) {
	e := a.changing(&resp.Diagnostics)
	var m struct {
		SandboxID types.String `tfsdk:"sandbox_id"`
		TTL       types.String `tfsdk:"ttl"`
	}
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	var sb engine.Sandbox
	ttl, err := parseDuration(m.TTL.ValueString())
	if err == nil {
		var rec engine.Receipt
		if rec, err = receiptBy(ctx, e, m.SandboxID, a.cfg.account); err == nil {
			sb, err = e.ExtendTTL(ctx, rec, ttl)
		}
	}
	if err != nil {
		addError(ctx, &resp.Diagnostics, "Sandbox "+m.SandboxID.ValueString()+" was not extended", err)
		return
	}
	addNotices(&resp.Diagnostics, sb.Notices)
	resp.SendProgress(tfaction.InvokeProgressEvent{Message: fmt.Sprintf("%s now ends at %s", sb.ID, stamp(sb.ExpiresAt).ValueString())})
}

// snapshotAction takes a snapshot that no state keeps.
type snapshotAction struct{ actionOn }

// Metadata implements action.Action.
func (a *snapshotAction) Metadata(_ context.Context, req tfaction.MetadataRequest, resp *tfaction.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_snapshot"
}

// Schema implements action.Action.
func (a *snapshotAction) Schema(_ context.Context, _ tfaction.SchemaRequest, resp *tfaction.SchemaResponse) {
	attrs := actionArguments(schemaOf(&snapshotResource{}).Attributes)
	for _, name := range []string{"triggers", "id", "account", "extension", "host", "handle", "expires_at", "size_bytes",
		"digest", "created_at"} {
		delete(attrs, name) // what only a state has
	}
	resp.Schema = aschema.Schema{
		MarkdownDescription: "Takes a snapshot of a sandbox and shows its ID. No state holds it: `retention` or `sandboxer snapshot " +
			"delete` ends it, and an `import` block brings it into a `sandboxer_snapshot`.",
		Attributes: attrs,
	}
}

// Invoke implements action.Action.
func (a *snapshotAction) Invoke(ctx context.Context, req tfaction.InvokeRequest, resp *tfaction.InvokeResponse) {
	e := a.changing(&resp.Diagnostics)
	var m struct {
		SandboxID types.String `tfsdk:"sandbox_id"`
		Name      types.String `tfsdk:"name"`
		Kind      types.String `tfsdk:"kind"`
		Live      types.Bool   `tfsdk:"live"`
		AllowEnd  types.Bool   `tfsdk:"allow_end"`
		Retention types.String `tfsdk:"retention"`
	}
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	rec, err := receiptBy(ctx, e, m.SandboxID, a.cfg.account)
	var taken engine.SnapshotView
	if err == nil {
		taken, err = e.Snapshot(ctx, rec, snapshotModel{Name: m.Name, Kind: m.Kind, Live: m.Live, AllowEnd: m.AllowEnd,
			Retention: m.Retention}.request())
	}
	addNotices(&resp.Diagnostics, taken.Notices)
	if err != nil {
		addError(ctx, &resp.Diagnostics, notTaken(m.SandboxID.ValueString(), taken), err)
		return
	}
	resp.SendProgress(tfaction.InvokeProgressEvent{Message: fmt.Sprintf("snapshot %s (%s, %d bytes)", taken.ID, taken.Kind, taken.SizeBytes)})
}
