package provider

import (
	"context"
	"reflect"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// planning is one call of ModifyPlan. It runs in plan and again in apply, where every value must come out the
// same: each is a function of known arguments and the catalog's bytes.
type planning struct {
	r            *sandboxResource
	resp         *resource.ModifyPlanResponse
	private      privateReader
	config, plan sandboxModel
	state        *sandboxModel // nil for a new sandbox
	changed      bool          // whether the plan differs from the state
}

// ModifyPlan implements resource.ResourceWithModifyPlan.
func (r *sandboxResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	p := planning{r: r, resp: resp, private: req.Private, changed: !req.Plan.Raw.Equal(req.State.Raw)}
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
	if r.cfg != nil && r.cfg.run().destroys {
		return
	}
	if !p.changed { // one reading serves all three
		p.config, p.plan = *p.state, *p.state
	} else {
		resp.Diagnostics.Append(req.Config.Get(ctx, &p.config)...)
		resp.Diagnostics.Append(req.Plan.Get(ctx, &p.plan)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	proposed := p.plan
	if p.state == nil {
		p.create(ctx)
	} else {
		p.change(ctx)
	}
	if !resp.Diagnostics.HasError() && !reflect.DeepEqual(p.plan, proposed) {
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &p.plan)...)
	}
}

// create plans a new sandbox, which is also the second half of a replacement.
func (p *planning) create(ctx context.Context) {
	p.plan.FromSnapshot, p.plan.FromSandbox = p.config.FromSnapshot, p.config.FromSandbox
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
	if p.config.Extension.IsNull() && planned.Pinned && p.plan.OnConflict.ValueString() == "error" { // an adopted one may live elsewhere
		p.plan.Extension, p.plan.Host = optional(planned.Extension), optional(planned.Host)
	}
}

// leaves notes that this plan is about to end a sandbox.
func (r *sandboxResource) leaves(m sandboxModel) {
	if r.cfg != nil {
		r.cfg.fates.leaves(engine.ID(m.ID.ValueString()))
	}
}

// change plans an existing sandbox: a replacement, a change in place, or nothing.
func (p *planning) change(ctx context.Context) {
	p.keepComputed()
	if sameDuration(p.plan.TTL, p.state.TTL) {
		p.plan.TTL = p.state.TTL
	}
	moved := hostsMoved(ctx, p.state.Host.ValueString(), p.state.Hosts, p.plan.Hosts)
	replaced := p.replacedArguments(moved)
	ended := p.ended()
	if len(replaced) == 0 && !ended {
		var planned engine.Planned
		if p.changed {
			// What would prevent re-creating the sandbox does not prevent changing the live one: checkUpdate
			// judges that.
			planned, _ = p.ask(ctx, p.plan.recreates(*p.state))
		}
		if planned.Version == "" && !p.resp.Diagnostics.HasError() {
			planned.Version = p.version(ctx, !p.changed)
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
	if p.state.protected(ctx, p.private) {
		addProtected(&p.resp.Diagnostics, *p.state, "replaced (because of "+join(replaced)+")")
		return
	}
	p.r.leaves(*p.state)
	for _, name := range replaced {
		p.resp.RequiresReplace.Append(path.Root(name))
	}
}

// newVersion reports whether the catalog has a newer version of the same profile.
func (p *planning) newVersion(planned engine.Planned) bool {
	return !p.state.ProfileVersion.IsNull() && planned.Version != "" && planned.Version != p.state.ProfileVersion.ValueString()
}

// keepComputed undoes the framework's marking of computed attributes as unknown: a change of one argument
// changes nothing else.
func (p *planning) keepComputed() {
	pl, st := &p.plan, p.state
	if p.config.Name.IsNull() {
		pl.Name = st.Name
	}
	if p.config.Scope.IsNull() {
		pl.Scope = st.Scope
	}
	if p.config.FromSnapshot.IsNull() {
		pl.FromSnapshot = st.FromSnapshot
	}
	if p.config.FromSandbox.IsNull() {
		pl.FromSandbox = st.FromSandbox
	}
	pl.ID, pl.Account, pl.ProfileVersion, pl.State, pl.Host, pl.Handle = st.ID, st.Account, st.ProfileVersion, st.State, st.Host, st.Handle
	if p.config.Extension.IsNull() {
		pl.Extension = st.Extension
	}
	pl.CreatedAt, pl.ExpiresAt, pl.Expiry, pl.Reachability, pl.Estimate, pl.Route = st.CreatedAt,
		st.ExpiresAt, st.Expiry, st.Reachability, st.Estimate, st.Route
}

// ended reports whether a sandbox must be re-created although the configuration is unchanged.
func (p *planning) ended() bool {
	switch s := p.state.State.ValueString(); s {
	case stateExpired:
		if p.plan.OnExpiry.ValueString() == "keep" {
			return false
		}
		why, longer := "It ended at "+orText(p.state.ExpiresAt.ValueString(), "the end of its ttl"),
			" A longer ttl makes the next one live longer."
		if time.Now().Before(parseStamp(p.state.ExpiresAt)) { // before its deadline, only its own program or idleness ends it so
			why, longer = "Its entrypoint ended with exit code 0, or it was idle for too long (ttl.idle_reap)", ""
			if known, ok := p.r.cfg.ended.Load(p.state.ID.ValueString()); ok {
				why = "It ended before its deadline: " + known.(string)
			}
		}
		p.resp.Diagnostics.AddWarning("Sandbox "+p.state.label()+" has expired",
			why+". The plan replaces it.\n\nWhat to do: apply to get a new one, set on_expiry = \"keep\" to leave it as it is, or destroy it."+
				longer)
		return true
	case stateFailed, stateDestroying:
		if _, told := p.r.cfg.told.Load(p.state.ID.ValueString()); told {
			return true
		}
		p.resp.Diagnostics.AddWarning("Sandbox "+p.state.label()+" is "+s,
			"It can no longer be used. The plan cleans up its remains and replaces it.")
		return true
	}
	return false
}

// changeInPlace plans a change of arguments that do not replace the sandbox.
func (p *planning) changeInPlace(ctx context.Context, planned engine.Planned) {
	if p.r.cfg != nil {
		addNotices(&p.resp.Diagnostics, p.r.cfg.fates.stays(engine.ID(p.state.ID.ValueString())))
		p.r.cfg.tellAccount(&p.resp.Diagnostics, "Sandbox "+p.state.label(), p.state.Account.ValueString())
	}
	ttl := !p.plan.TTL.Equal(p.state.TTL)
	if ttl {
		p.plan.ExpiresAt, p.plan.Estimate = types.StringUnknown(), estimateUnknown()
		if planned = p.ofLife(ctx, planned); planned.Estimate.CatalogDigest != "" { // even if it could not be created again
			p.takeEstimate(ctx, planned)
		}
	}
	if !p.plan.Hosts.Equal(p.state.Hosts) {
		p.plan.Host, p.plan.Handle = types.StringUnknown(), types.StringUnknown()
	}
	mode := !p.plan.DesiredMode.Equal(p.state.DesiredMode)
	if mode {
		p.plan.Reachability, p.plan.Expiry = types.ObjectUnknown(attrTypes(reachabilityFields)), types.StringUnknown()
	}
	again := p.plan.recreates(*p.state)
	if again {
		p.again(ctx, planned)
	}
	p.checkUpdate(ctx, ttl, mode, again)
}

// again plans a sandbox that is made again under its id.
func (p *planning) again(ctx context.Context, planned engine.Planned) {
	if p.state.protected(ctx, p.private) {
		addProtected(&p.resp.Diagnostics, *p.state, "re-created (because of triggers)")
		return
	}
	pl := &p.plan
	pl.Handle, pl.ExpiresAt = types.StringUnknown(), types.StringUnknown()
	pl.Reachability = types.ObjectUnknown(attrTypes(reachabilityFields))
	if !planned.Pinned { // it may be made elsewhere
		pl.Extension, pl.Host, pl.Expiry = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
		pl.Route = types.ObjectUnknown(attrTypes(routeFields))
	}
}
