package provider

import (
	"context"
	"reflect"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// States as the engine names them.
const (
	stateReady      = "ready"
	stateExpired    = "expired"
	stateFailed     = "failed"
	stateDestroying = "destroying"
	stateDestroyed  = "destroyed"
)

// Read implements resource.Resource. A sandbox proved absent leaves the state; one that cannot be asked stays
// in it, with an error.
func (r *sandboxResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state sandboxModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, state.identity())...)
	e := r.ready()
	if e == nil {
		return // the provider block is not known yet: the state stays
	}
	rec, diags := state.receipt(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	look, looked := ctx.Value(seenKey{}).(seen)
	if !looked {
		opCtx, cancel := state.within(ctx, "read")
		defer cancel()
		look.ctx = opCtx
		look.sandbox, look.err = e.Get(opCtx, rec)
	}
	opCtx, sb, err := look.ctx, look.sandbox, look.err
	if err == nil && sb.State == stateDestroyed {
		err = extensions.Errorf(extensions.KindNotFound, "another run destroyed it (%s)", orText(sb.Reason, "no reason recorded"))
	}
	switch extensions.KindOf(err) {
	case "":
	case extensions.KindNotFound:
		r.cfg.fates.gone(engine.ID(state.ID.ValueString()))
		tellLost(&resp.Diagnostics, state, err)
		resp.State.RemoveResource(ctx)
		return
	case extensions.KindConflict:
		resp.Diagnostics.AddWarning("Sandbox "+state.label()+" now belongs to another state",
			sentence(err.Error())+"\n\nThis state no longer has it; the sandbox lives on. To take it back, set on_conflict = \"adopt\" on the "+
				"resource and apply.")
		resp.State.RemoveResource(ctx)
		return
	default:
		addUnread(opCtx, &resp.Diagnostics, state, err)
		return
	}
	r.cfg.fates.ours(sb.ID)
	if sb.State == stateFailed || sb.State == stateDestroying {
		r.leaves(state) // only its end is planned
	}
	if sb.State == stateFailed && state.State.ValueString() != stateFailed && sb.Reason != "" {
		r.cfg.told.Store(string(sb.ID), true)
		resp.Diagnostics.AddWarning("Sandbox "+state.label()+" has failed", sentence(sb.Reason)+
			"\n\nWhat to do: `sandboxer sandbox logs "+string(sb.ID)+"` shows the output of its processes, if they still exist. The next apply "+
			"replaces it.")
	}
	if sb.State == stateExpired {
		r.cfg.ended.Store(string(sb.ID), sb.Reason)
	}
	before := state
	state.refresh(sb)
	resp.Diagnostics.Append(state.fill(ctx, sb)...)
	if !reflect.DeepEqual(state, before) {
		resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
		resp.Diagnostics.Append(resp.Identity.Set(ctx, state.identity())...)
	}
	resp.Diagnostics.Append(saveReceipt(ctx, resp.Private, sb.Receipt)...)
	addNotices(&resp.Diagnostics, sb.Notices)
}

func orText(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// tellLost warns about a sandbox that is gone before its time.
func tellLost(diags *diag.Diagnostics, m sandboxModel, err error) {
	if end := parseStamp(m.ExpiresAt); !end.IsZero() && !time.Now().Before(end) {
		return
	}
	detail := sentence(err.Error()) + "\n\nThe state no longer has it. The next apply creates a new one."
	if e := m.ExpiresAt.ValueString(); e != "" {
		detail = "Its deadline was " + e + ". " + detail
	}
	if remedy := extensions.RemedyOf(err); remedy != "" {
		detail += "\n\nWhat to do: " + sentence(remedy)
	}
	diags.AddWarning("Sandbox "+m.label()+" was lost", detail)
}

// addUnread says how to proceed when a sandbox cannot be observed.
func addUnread(ctx context.Context, diags *diag.Diagnostics, m sandboxModel, err error) {
	summary, detail := describe(ctx, "Sandbox "+m.label()+" could not be read", err)
	if extensions.IsKind(engine.GivenUp(ctx, err), extensions.KindInterrupted) {
		diags.AddError(summary, detail) // nothing known is in the way
		return
	}
	diags.AddError(summary, detail+"\n\n"+strings.TrimSpace(`
It may still exist, so it stays in the state. To continue without contacting it, use -refresh=false.
To drop it with a destroy, set on_unreachable_destroy = "forget", run `+"`terraform apply -refresh=false`"+`,
then `+"`terraform destroy -refresh=false`"+`.
To drop it from the state without destroying it, replace its resource block with this one, with its address in `+"`from`"+`:

removed {
  from = sandboxer_sandbox.NAME
  lifecycle { destroy = false }
}`))
}

// ImportState implements resource.ResourceWithImportState: by id, by "org/workspace/name", or by identity. It
// restores every argument from the ledger's copy of the request.
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
		resp.Diagnostics.AddError("Sandbox "+string(sb.ID)+" cannot be imported",
			"It was destroyed. Remove the import block; the next apply creates a new one.")
		return
	}
	switch len(sb.Leases) {
	case 0:
	case 1: // its lease is taken over
		sb.Request, sb.Receipt.Lease = sb.Leases[0].Request, sb.Leases[0].ID
	default:
		resp.Diagnostics.AddError("Sandbox "+string(sb.ID)+" cannot be imported",
			"Several resources hold it. Remove the import block: an apply with its share_key joins them.")
		return
	}
	m, diags := restored(ctx, e, sb)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, m.identity())...)
	resp.Diagnostics.Append(saveReceipt(ctx, resp.Private, sb.Receipt)...)
}

// restored returns all that the ledger knows of a sandbox.
func restored(ctx context.Context, e *engine.Engine, sb engine.Sandbox) (m sandboxModel, diags diag.Diagnostics) {
	planned, err := e.Plan(ctx, sb.Request)
	if err != nil || planned.Version != sb.Version { // it lives all the same
		tflog.Debug(ctx, "the sandbox could not be created again as it was", map[string]any{"version": planned.Version})
	} else {
		sb.Estimate = planned.Estimate
	}
	if sb.Request.Scope == "" {
		sb.Request.Scope = planned.Scope
	}
	m = blank()
	diags.Append(m.restore(ctx, sb.Request)...)
	diags.Append(m.fill(ctx, sb)...)
	return m, diags
}

// blank returns a model whose computed attributes are all unknown.
func blank() sandboxModel {
	u := types.StringUnknown()
	return sandboxModel{
		Name: u, ID: u, Account: u, ProfileVersion: u, State: u, Extension: u, Host: u, Handle: u, CreatedAt: u, ExpiresAt: u, Expiry: u,
		Reachability: types.ObjectUnknown(attrTypes(reachabilityFields)), Estimate: estimateUnknown(),
		Route: types.ObjectUnknown(attrTypes(routeFields)),
	}
}
