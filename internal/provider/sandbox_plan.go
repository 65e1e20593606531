package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// planning is one call of ModifyPlan. It runs in plan and again in apply,
// where nothing may come out differently: every value it sets is a function
// of known arguments and the catalog's bytes.
type planning struct {
	r            *sandboxResource
	req          resource.ModifyPlanRequest
	resp         *resource.ModifyPlanResponse
	config, plan sandboxModel
	state        *sandboxModel
}

// ModifyPlan implements resource.ResourceWithModifyPlan.
func (r *sandboxResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	p := planning{r: r, req: req, resp: resp}
	if !req.State.Raw.IsNull() {
		p.state = &sandboxModel{}
		resp.Diagnostics.Append(req.State.Get(ctx, p.state)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if req.Plan.Raw.IsNull() {
		if p.state.protected(ctx, req.Private) {
			addProtected(&resp.Diagnostics, *p.state, "destroyed")
		}
		r.leaves(*p.state)
		return
	}
	if thisRun().destroys {
		return
	}
	resp.Diagnostics.Append(req.Config.Get(ctx, &p.config)...)
	resp.Diagnostics.Append(req.Plan.Get(ctx, &p.plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	switch p.refuseUnbuilt(ctx); {
	case resp.Diagnostics.HasError():
		return
	case p.state == nil:
		p.create(ctx)
	default:
		p.change(ctx)
	}
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &p.plan)...)
	}
}

// create plans a new sandbox, which is also the second half of a replacement.
func (p *planning) create(ctx context.Context) {
	if p.r.cfg == nil {
		return
	}
	if p.r.cfg.account != "" {
		p.plan.Account = types.StringValue(p.r.cfg.account)
	}
	p.resp.Diagnostics.Append(markReplaces(ctx, p.resp.Private, true)...)
	planned, ok := p.ask(ctx, true)
	if !ok {
		return
	}
	p.takeEstimate(ctx, planned)
	p.plan.ProfileVersion = optional(planned.Version)
	if p.config.Scope.IsNull() {
		p.plan.Scope = optional(planned.Scope)
	}
	if planned.Pinned && p.plan.OnConflict.ValueString() == "error" { // an adopted one may live elsewhere
		p.plan.Extension, p.plan.Host = optional(planned.Extension), optional(planned.Host)
	}
}

// leaves notes that a sandbox is about to end by this plan.
func (r *sandboxResource) leaves(m sandboxModel) {
	if r.cfg != nil {
		r.cfg.fates.leaves(engine.ID(m.ID.ValueString()))
	}
}

// change plans an existing sandbox: replaced, changed in place, or nothing.
func (p *planning) change(ctx context.Context) {
	p.keepComputed()
	if sameDuration(p.plan.TTL, p.state.TTL) {
		p.plan.TTL = p.state.TTL
	}
	moved := hostsMoved(ctx, p.state.Host.ValueString(), p.state.Hosts, p.plan.Hosts)
	replaced := p.replacedArguments(moved)
	ended := p.ended()
	if len(replaced) == 0 && !ended {
		// What would keep it from being made again keeps nobody from changing
		// the one that lives: checkUpdate judges that.
		planned, ok := p.ask(ctx, false)
		if !ok && !p.resp.Diagnostics.HasError() {
			planned.Version = p.version(ctx)
		}
		switch {
		case p.resp.Diagnostics.HasError():
			return
		case p.newVersion(planned):
			p.plan.ProfileVersion = types.StringValue(planned.Version)
			replaced = append(replaced, "profile_version")
		default:
			p.changeInPlace(ctx, planned)
			return
		}
	}
	if ended {
		p.plan.State = types.StringUnknown()
		replaced = append(replaced, "state")
	}
	if p.state.protected(ctx, p.req.Private) {
		addProtected(&p.resp.Diagnostics, *p.state, "replaced (because of "+join(replaced)+")")
		return
	}
	p.r.leaves(*p.state)
	for _, name := range replaced {
		p.resp.RequiresReplace.Append(path.Root(name))
	}
}

// newVersion reports that the same profile is newer in the catalog.
func (p *planning) newVersion(planned engine.Planned) bool {
	return !p.state.ProfileVersion.IsNull() && planned.Version != "" && planned.Version != p.state.ProfileVersion.ValueString()
}

// keepComputed undoes the framework's marking of computed attributes as
// unknown: a change of one argument changes nothing else.
func (p *planning) keepComputed() {
	pl, st := &p.plan, p.state
	if p.config.Name.IsNull() {
		pl.Name = st.Name
	}
	if p.config.Scope.IsNull() {
		pl.Scope = st.Scope
	}
	pl.ID, pl.Account, pl.ProfileVersion, pl.State, pl.Extension, pl.Host, pl.Handle = st.ID, st.Account, st.ProfileVersion, st.State, st.Extension, st.Host, st.Handle
	pl.CreatedAt, pl.ExpiresAt, pl.Expiry, pl.Reachability, pl.Estimate, pl.Route = st.CreatedAt, st.ExpiresAt, st.Expiry, st.Reachability, st.Estimate, st.Route
}

// ended tells about a sandbox that has to be made anew although nothing in
// the configuration changed.
func (p *planning) ended() bool {
	switch s := p.state.State.ValueString(); s {
	case stateExpired:
		if p.plan.OnExpiry.ValueString() == "keep" {
			return false
		}
		p.resp.Diagnostics.AddWarning("Sandbox "+p.state.label()+" has expired",
			fmt.Sprintf("It ended at %s and is planned to be replaced.\n\nWhat to do: apply to get a new one, set on_expiry = \"keep\" to leave it as it is, or destroy it. A longer ttl makes the next one live longer.",
				orText(p.state.ExpiresAt.ValueString(), "the end of its ttl")))
		return true
	case stateFailed, stateDestroying:
		if _, told := p.r.cfg.told.Load(p.state.ID.ValueString()); told {
			return true
		}
		p.resp.Diagnostics.AddWarning("Sandbox "+p.state.label()+" is "+s,
			"It cannot be used any more and is planned to be replaced; what is left of it is cleaned up first.")
		return true
	}
	return false
}

// changeInPlace plans what changes with an argument that does not replace.
func (p *planning) changeInPlace(ctx context.Context, planned engine.Planned) {
	if p.r.cfg != nil {
		addNotices(&p.resp.Diagnostics, p.r.cfg.fates.stays(engine.ID(p.state.ID.ValueString())))
		p.r.cfg.tellAccount(&p.resp.Diagnostics, "Sandbox "+p.state.label(), p.state.Account.ValueString())
	}
	ttl := !p.plan.TTL.Equal(p.state.TTL)
	if ttl {
		p.plan.ExpiresAt, p.plan.Estimate = types.StringUnknown(), estimateUnknown()
		if planned = p.ofLife(ctx, planned); planned.Estimate.CatalogDigest != "" { // also where it could not be made again
			p.takeEstimate(ctx, planned)
		}
	}
	if !p.plan.Hosts.Equal(p.state.Hosts) {
		p.plan.Host, p.plan.Handle = types.StringUnknown(), types.StringUnknown()
	}
	mode := !p.plan.DesiredMode.Equal(p.state.DesiredMode)
	if mode {
		p.plan.Reachability = types.ObjectUnknown(attrTypes(reachabilityFields))
	}
	p.checkUpdate(ctx, ttl, mode)
}
