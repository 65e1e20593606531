package provider

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

type sandboxResource struct{ withEngine }

var (
	_ resource.ResourceWithConfigure      = (*sandboxResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*sandboxResource)(nil)
	_ resource.ResourceWithImportState    = (*sandboxResource)(nil)
	_ resource.ResourceWithIdentity       = (*sandboxResource)(nil)
	_ resource.ResourceWithValidateConfig = (*sandboxResource)(nil)
)

var defaultTimeouts = map[string]time.Duration{"create": 20 * time.Minute, "read": 5 * time.Minute, "update": 10 * time.Minute,
	"delete": 15 * time.Minute}

func (m sandboxModel) within(ctx context.Context, op string) (context.Context, context.CancelFunc) {
	d := defaultTimeouts[op]
	if s := m.timeouts()[op]; s != "" {
		if v, err := parseDuration(s); err == nil {
			d = v
		}
	}
	return context.WithTimeout(ctx, d)
}

// progress logs the engine's progress. Terraform shows no progress from providers, but its log does.
func progress(ctx context.Context) engine.Notify {
	return func(n engine.Notice) { tflog.Info(ctx, n.Summary, map[string]any{"detail": n.Detail}) }
}

// Create implements resource.Resource. It writes the state as soon as the ledger holds the intent, and again
// with whatever the engine returns, so that a later error leaves a resource that destroy can clean up.
func (r *sandboxResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	e := r.changing(&resp.Diagnostics)
	var plan, config sandboxModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	request, diags := plan.request(ctx)
	resp.Diagnostics.Append(diags...)
	plainSecrets, diags := stringMap(ctx, config.SecretsWO)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	request.Secrets, request.Extension = secrets(plainSecrets), config.Extension.ValueString()

	save := func(sb engine.Sandbox, unfinished bool) {
		if sb.ID == "" {
			return
		}
		m := plan
		resp.Diagnostics.Append(m.fill(ctx, sb)...)
		m.DesiredMode = plan.DesiredMode // the next read tells another mode
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
		resp.Diagnostics.Append(resp.Identity.Set(ctx, m.identity())...)
		resp.Diagnostics.Append(saveReceipt(ctx, resp.Private, sb.Receipt)...)
		resp.Diagnostics.Append(markIncomplete(ctx, resp.Private, unfinished)...)
		resp.Diagnostics.Append(markReplaces(ctx, resp.Private, false)...)
	}
	opCtx, cancel := plan.within(ctx, "create")
	defer cancel()
	var begun engine.Sandbox
	sb, err := e.Create(opCtx, request, func(sb engine.Sandbox) { begun = sb; save(sb, true) }, progress(ctx))
	if plan.Estimate.IsUnknown() {
		sb.Estimate = quoted(ctx, e, request)
	}
	if err == nil {
		save(sb, false)
		addNotices(&resp.Diagnostics, sb.Notices)
		return
	}
	switch {
	case errors.Is(err, engine.ErrOtherMode):
		// Terraform replaces what a failed create leaves, and this sandbox is whole. As a warning, its next plan sets
		// the mode, and fails if that fails again.
		save(sb, false)
		addNotices(&resp.Diagnostics, sb.Notices)
		addWarning(opCtx, &resp.Diagnostics, "Sandbox "+subject(request)+" was created, but it is not "+request.DesiredMode, err)
		return
	case sb.ID == "" || sb.State == stateDestroyed:
		resp.State.RemoveResource(ctx) // nothing is left
	default:
		if sb.State == "" || sb.State == stateReady {
			sb.State = stateFailed
		}
		save(sb, true)
	}
	own := begun.ID
	if own == "" {
		own = sb.ID
	}
	addCreateError(opCtx, &resp.Diagnostics, fieldPath(err, emptyPath, planArguments...), own, request, err)
}

// quoted returns the estimate if the plan could not know it: the place came from the ledger.
func quoted(ctx context.Context, e *engine.Engine, request engine.Request) engine.Estimate {
	planned, err := e.Plan(ctx, request)
	if err != nil {
		tflog.Debug(ctx, "no estimate", map[string]any{"error": err.Error()})
	}
	return planned.Estimate
}

// Update implements resource.Resource. It changes ttl, mode and hosts in place; it only records the other
// arguments, in the state and in the ledger's copy.
func (r *sandboxResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	e := r.changing(&resp.Diagnostics)
	var plan, state, config sandboxModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	request, diags := plan.request(ctx)
	resp.Diagnostics.Append(diags...)
	again := plan.recreates(state)
	if again {
		plainSecrets, diags := stringMap(ctx, config.SecretsWO)
		resp.Diagnostics.Append(diags...)
		request.Secrets = secrets(plainSecrets)
	}
	rec, diags := state.receipt(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	opCtx, cancel := plan.within(ctx, "update")
	defer cancel()
	sb, err := e.Update(opCtx, rec, request, progress(ctx))
	if mode := plan.DesiredMode; err == nil && !mode.IsNull() && !mode.Equal(state.DesiredMode) {
		sb, err = e.SetMode(opCtx, sb.Receipt, engine.Mode(mode.ValueString()), progress(ctx))
	}
	if err == nil && again {
		createCtx, cancel := plan.within(ctx, "create")
		defer cancel()
		if sb, err = e.Recreate(createCtx, sb.Receipt, request.Secrets, progress(ctx)); err != nil {
			resp.Diagnostics.Append(saveReceipt(ctx, resp.Private, sb.Receipt)...) // the former generation's would be another's
		}
	}
	switch {
	case err != nil && !plan.changesInPlace(state):
		resp.Diagnostics.AddWarning("The change of sandbox "+state.label()+" is only in the state",
			"The ledger keeps its former arguments: "+err.Error()+".\n\nYou need not do anything: a destroy and the next plan use the state. Only "+
				"an import would restore the former arguments.")
		sb = engine.Sandbox{Receipt: rec}
	case err != nil:
		addErrorAt(opCtx, &resp.Diagnostics, fieldPath(err, emptyPath, planArguments...), "Sandbox "+state.label()+" was not changed", err)
		return
	}
	if plan.Estimate.IsUnknown() {
		sb.Estimate = quoted(ctx, e, request)
	}
	resp.Diagnostics.Append(plan.fill(ctx, sb)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, plan.identity())...)
	resp.Diagnostics.Append(saveReceipt(ctx, resp.Private, sb.Receipt)...)
	addNotices(&resp.Diagnostics, sb.Notices)
}

// changesInPlace reports whether the engine must carry out the change. Other changes are only recorded, and
// must work without the ledger that made the sandbox and after its end: above all, lifting the protection.
func (m sandboxModel) changesInPlace(before sandboxModel) bool {
	return !m.TTL.Equal(before.TTL) || !m.DesiredMode.Equal(before.DesiredMode) || !m.Hosts.Equal(before.Hosts) ||
		m.recreates(before)
}

// Delete implements resource.Resource. It works by id alone.
func (r *sandboxResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	e := r.changing(&resp.Diagnostics)
	var state sandboxModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if state.protected(ctx, req.Private) {
		addProtected(&resp.Diagnostics, state, "destroyed")
		return
	}
	rec, diags := state.receipt(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	opCtx, cancel := state.within(ctx, "delete")
	defer cancel()
	report, err := e.Destroy(opCtx, rec, engine.DestroyOptions{Forget: state.OnUnreachableDestroy.ValueString() == "forget",
		Replaced: replaces(ctx, req.Private), Notify: progress(ctx)})
	tellDestroyed(&resp.Diagnostics, state, report)
	if err != nil {
		resp.Diagnostics.Append(markReplaces(ctx, resp.Private, false)...) // the next delete may just end it
		summary, detail := describe(opCtx, "Sandbox "+state.label()+" was not destroyed", err)
		if unreachable(engine.GivenUp(opCtx, err)) {
			detail += "\n\n" + applyFirst(`on_unreachable_destroy = "forget"`)
		}
		resp.Diagnostics.AddError(summary, detail)
	}
}

func tellDestroyed(diags *diag.Diagnostics, m sandboxModel, report engine.DestroyReport) {
	if len(report.Conflicts) > 0 {
		diags.AddWarning("Files of sandbox "+m.label()+" changed on both sides",
			"These files here were not overwritten:\n"+bullets(report.Conflicts))
	}
	if len(report.Residue) > 0 {
		diags.AddWarning("Sandbox "+m.label()+" was destroyed; this was left on purpose", bullets(report.Residue))
	}
	addNotices(diags, report.Notices)
}

func bullets(lines []string) string {
	out := ""
	for _, l := range lines {
		out += "- " + l + "\n"
	}
	return out
}
