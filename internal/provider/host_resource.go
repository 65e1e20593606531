package provider

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

type hostResource struct{ withEngine }

var (
	_ resource.ResourceWithConfigure      = (*hostResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*hostResource)(nil)
	_ resource.ResourceWithImportState    = (*hostResource)(nil)
	_ resource.ResourceWithValidateConfig = (*hostResource)(nil)
)

// ValidateConfig implements resource.ResourceWithValidateConfig.
func (r *hostResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m hostModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() || m.Local.IsUnknown() || m.SSH.IsUnknown() {
		return
	}
	switch local, ssh := m.Local.ValueBool(), !m.SSH.IsNull(); {
	case local && ssh:
		resp.Diagnostics.AddAttributeError(path.Root("local"), "local conflicts with ssh",
			"local = true registers this machine, ssh another one. Remove one of the two.")
	case !local && !ssh:
		resp.Diagnostics.AddAttributeError(path.Root("local"), "The host needs local or ssh",
			"Set local = true for this machine, or ssh = { address = \"…\", … } for another.")
	case ssh:
		checkSSH(ctx, m.SSH, &resp.Diagnostics)
	}
}

// ModifyPlan implements resource.ResourceWithModifyPlan. The ref is a function of the arguments, so that
// sandboxes on a new or changed host can be planned.
func (r *hostResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return
	}
	var plan hostModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	e := r.ready()
	if !plan.known(ctx) || e == nil && plan.named(ctx) {
		plan.Ref = types.StringUnknown()
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
		return
	}
	h, diags := plan.host(ctx, e)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	if e != nil {
		if err := e.CheckHost(h); err != nil {
			addErrorAt(ctx, &resp.Diagnostics, fieldPath(err, hostField(plan), hostArguments...), "Host "+quoteName(h.Name)+" cannot be used", err)
			return
		}
	}
	plan.Ref = types.StringValue(h.Ref())
	if e != nil && req.State.Raw.IsNull() {
		if err := e.HostTaken(ctx, h); err != nil {
			addWarning(ctx, &resp.Diagnostics, "Host "+quoteName(h.Name)+" could not be registered now", err)
		} else if _, had := r.cfg.hosts.Load(h.Name); !had {
			if err := e.HostShared(ctx, h); err != nil {
				addWarning(ctx, &resp.Diagnostics, sharedHost(h.Name), err)
			}
		}
	}
	if !req.State.Raw.IsNull() {
		var state hostModel
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
		if r.cfg != nil {
			r.cfg.hosts.Store(state.Name.ValueString(), true)
		}
		if !plan.Ref.Equal(state.Ref) || r.forgotten(ctx, h.Name) {
			plan.Facts = types.ObjectUnknown(attrTypes(factFields))
		} else {
			plan.Facts = state.Facts
		}
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

func sharedHost(name string) string {
	return "Host " + quoteName(name) + " is registered twice"
}

// forgotten reports that this machine's ledger does not know the host, so that the next apply registers it
// again.
func (r *hostResource) forgotten(ctx context.Context, name string) bool {
	e := r.ready()
	if e == nil {
		return false
	}
	_, err := e.LookupHost(ctx, name)
	return extensions.IsKind(err, extensions.KindNotFound)
}

func hostField(m hostModel) path.Path {
	if !m.SSH.IsNull() {
		return path.Root("ssh")
	}
	return path.Root("name")
}

// register is Create and Update: the engine validates, probes and records the host. former is the ref in the
// state.
func (r *hostResource) register(ctx context.Context, plan hostModel, former string, diags *diag.Diagnostics) (hostModel, bool) {
	e := r.must(diags)
	h, ds := plan.host(ctx, e)
	diags.Append(ds...)
	if diags.HasError() {
		return plan, false
	}
	view, err := e.RegisterHost(ctx, h, former)
	if err != nil {
		addErrorAt(ctx, diags, fieldPath(err, hostField(plan), hostArguments...), "Host "+quoteName(h.Name)+" could not be registered", err)
		return plan, false
	}
	if h.SSH != nil && len(view.Facts.Isolation) == 0 {
		diags.AddWarning("Host "+quoteName(h.Name)+" cannot run sandboxes yet",
			"The host is registered, but the probe found:\n\n- "+strings.Join(view.Facts.Notes, "\n- ")+
				"\n\nWhat to do: fix this, then apply. `sandboxer host check "+h.Name+"` probes the host again.")
	}
	if view.Shared != nil {
		addWarning(ctx, diags, sharedHost(h.Name), view.Shared)
	}
	plan.Ref = types.StringValue(view.Ref)
	plan.Facts, ds = factsValue(ctx, view.Facts)
	diags.Append(ds...)
	return plan, !diags.HasError()
}

// Create implements resource.Resource.
func (r *hostResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan hostModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if m, ok := r.register(ctx, plan, "", &resp.Diagnostics); ok {
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	}
}

// Update implements resource.Resource. A change that only Terraform needs (force_destroy) calls no host:
// users set it above all when the host is gone.
func (r *hostResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state hostModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	promised := plan.Facts
	if !promised.IsUnknown() && plan.Ref.Equal(state.Ref) {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
		return
	}
	m, ok := r.register(ctx, plan, state.Ref.ValueString(), &resp.Diagnostics)
	if !ok {
		return
	}
	if !promised.IsUnknown() {
		m.Facts = promised // the next read reports changes
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// Read implements resource.Resource. It never drops a host because the ledger lacks it or it does not answer.
func (r *hostResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state hostModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	e := r.ready()
	if resp.Diagnostics.HasError() || e == nil {
		return
	}
	h, err := extensions.ParseHostRef(state.Ref.ValueString())
	if err != nil {
		addError(ctx, &resp.Diagnostics, "The ref of host "+quoteName(state.Name.ValueString())+" in the state cannot be read", err)
		return
	}
	r.cfg.hosts.Store(h.Name, true)
	if err := e.HostTaken(ctx, h); err != nil {
		addWarning(ctx, &resp.Diagnostics, "Host "+quoteName(h.Name)+" is a different host in the ledger", err)
	}
	view, err := e.GetHost(ctx, h)
	if err != nil {
		addWarning(ctx, &resp.Diagnostics, "Host "+quoteName(h.Name)+" could not be probed; the state keeps its known facts", err)
		return
	}
	var diags diag.Diagnostics
	state.Facts, diags = factsValue(ctx, view.Facts)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// Delete implements resource.Resource.
func (r *hostResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state hostModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	e := r.must(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	err := e.ForgetHost(ctx, state.Name.ValueString(), state.Ref.ValueString(), state.ForceDestroy.ValueBool())
	if err == nil || extensions.IsKind(err, extensions.KindNotFound) {
		return
	}
	summary, detail := describe(ctx, "Host "+quoteName(state.Name.ValueString())+" was not removed", err)
	if extensions.IsKind(err, extensions.KindConflict) {
		detail += "\n\n" + applyFirst("force_destroy = true")
	}
	resp.Diagnostics.AddError(summary, detail)
}

// ImportState implements resource.ResourceWithImportState: by name, from the ledger.
func (r *hostResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	e := r.must(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if err := engine.CheckName(req.ID); err != nil {
		notImportable(&resp.Diagnostics, "host", req.ID, err.Error(), importsHost)
		return
	}
	h, err := e.LookupHost(ctx, req.ID)
	if err != nil {
		addError(ctx, &resp.Diagnostics, "Host "+quoteName(req.ID)+" cannot be imported", err)
		return
	}
	m, diags := restoreHost(ctx, h)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}
