package provider

import (
	"context"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// States as the engine shows them.
const (
	stateReady      = "ready"
	stateExpired    = "expired"
	stateFailed     = "failed"
	stateDestroying = "destroying"
	stateDestroyed  = "destroyed"
)

// Read implements resource.Resource. What is proved absent leaves the state;
// what cannot be asked stays in it, with an error.
func (r *sandboxResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state sandboxModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, state.identity())...)
	e := r.ready()
	if e == nil {
		return // the provider block is not known yet: what the state says stays
	}
	rec, diags := state.receipt(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	opCtx, cancel := state.within(ctx, "read")
	defer cancel()
	sb, err := e.Get(opCtx, rec)
	if err == nil && sb.State == stateDestroyed {
		err = extensions.Errorf(extensions.KindNotFound, "it was destroyed by another run (%s)", orText(sb.Reason, "no reason recorded"))
	}
	switch extensions.KindOf(err) {
	case "":
	case extensions.KindNotFound:
		r.cfg.fates.gone(engine.ID(state.ID.ValueString()))
		tellLost(&resp.Diagnostics, state, err)
		resp.State.RemoveResource(ctx)
		return
	case extensions.KindConflict:
		resp.Diagnostics.AddWarning("Sandbox "+state.label()+" belongs to another state now",
			sentence(err.Error())+"\n\nIt was removed from this state and lives on. To have it back, set on_conflict = \"adopt\" on the resource and apply: that takes it over again.")
		resp.State.RemoveResource(ctx)
		return
	default:
		addUnread(opCtx, &resp.Diagnostics, state, err)
		return
	}
	r.cfg.fates.ours(sb.ID)
	if sb.State == stateFailed || sb.State == stateDestroying {
		r.leaves(state) // nothing but an end is planned for it
	}
	if sb.State == stateFailed && state.State.ValueString() != stateFailed && sb.Reason != "" {
		r.cfg.told.Store(string(sb.ID), true)
		resp.Diagnostics.AddWarning("Sandbox "+state.label()+" has failed", sentence(sb.Reason)+
			"\n\nWhat to do: `sandboxer sandbox logs "+string(sb.ID)+"` shows what its processes printed, as far as they are there; the next apply replaces it.")
	}
	state.refresh(sb)
	resp.Diagnostics.Append(state.fill(ctx, sb)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, state.identity())...)
	resp.Diagnostics.Append(saveReceipt(ctx, resp.Private, sb.Receipt)...)
	addNotices(&resp.Diagnostics, sb.Notices)
}

func orText(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// tellLost warns of a sandbox that is gone before its time.
func tellLost(diags *diag.Diagnostics, m sandboxModel, err error) {
	if end := parseStamp(m.ExpiresAt); !end.IsZero() && !time.Now().Before(end) {
		return
	}
	detail := sentence(err.Error()) + "\n\nIt was removed from the state; the next apply makes a new one."
	if e := m.ExpiresAt.ValueString(); e != "" {
		detail = "It would have lived until " + e + ". " + detail
	}
	if remedy := extensions.RemedyOf(err); remedy != "" {
		detail += "\n\nWhat to do: " + sentence(remedy)
	}
	diags.AddWarning("Sandbox "+m.label()+" was lost", detail)
}

// addUnread tells how to go on when a sandbox cannot be observed.
func addUnread(ctx context.Context, diags *diag.Diagnostics, m sandboxModel, err error) {
	summary, detail := describe(ctx, "Sandbox "+m.label()+" could not be read", err)
	if extensions.IsKind(engine.GivenUp(ctx, err), extensions.KindInterrupted) {
		diags.AddError(summary, detail) // nothing is known to be in the way
		return
	}
	diags.AddError(summary, detail+"\n\n"+strings.TrimSpace(`
It may still exist, so it stays in the state. To go on without asking it, use -refresh=false, also to destroy it:
with on_unreachable_destroy = "forget" applied (`+"`terraform apply -refresh=false`"+`), `+"`terraform destroy -refresh=false`"+` drops it.
To drop it from the state without destroying it, replace its resource block with this one (with its address in `+"`from`"+`):

removed {
  from = sandboxer_sandbox.NAME
  lifecycle { destroy = false }
}`))
}

// ImportState implements resource.ResourceWithImportState: by id, by
// "org/workspace/name", or by identity. Every argument is restored from the
// ledger's copy of the request.
func (r *sandboxResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	e := r.must(&resp.Diagnostics)
	id, account, name, diags := importKey(ctx, req)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	sb, err := e.Lookup(ctx, id, account, name)
	if err != nil {
		key := string(id)
		if key == "" {
			key = account + "/" + name
		}
		addError(ctx, &resp.Diagnostics, "Sandbox "+key+" cannot be imported", err)
		return
	}
	if sb.State == stateDestroyed {
		resp.Diagnostics.AddError("Sandbox "+string(sb.ID)+" cannot be imported", "It was destroyed. Remove the import block; the next apply makes a new one.")
		return
	}
	planned, err := e.Plan(ctx, sb.Request)
	if err != nil || planned.Version != sb.Version { // it lives all the same
		tflog.Debug(ctx, "the imported sandbox could not be made again as it was", map[string]any{"version": planned.Version})
	} else {
		sb.Estimate = planned.Estimate
	}
	if sb.Request.Scope == "" {
		sb.Request.Scope = planned.Scope
	}
	m := blank()
	resp.Diagnostics.Append(m.restore(ctx, sb.Request)...)
	resp.Diagnostics.Append(m.fill(ctx, sb)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, m.identity())...)
	resp.Diagnostics.Append(saveReceipt(ctx, resp.Private, sb.Receipt)...)
}

// blank is a model whose computed attributes are all still to be filled.
func blank() sandboxModel {
	u := types.StringUnknown()
	return sandboxModel{
		Name: u, ID: u, Account: u, ProfileVersion: u, State: u, Extension: u, Host: u, Handle: u, CreatedAt: u, ExpiresAt: u, Expiry: u,
		Reachability: types.ObjectUnknown(attrTypes(reachabilityFields)), Estimate: estimateUnknown(), Route: types.ObjectUnknown(attrTypes(routeFields)),
	}
}
