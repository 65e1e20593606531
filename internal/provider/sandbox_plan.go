package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// planArguments are those an engine's error may point to.
var planArguments = []string{"profile", "name", "name_prefix", "hosts", "inputs", "env", "secrets_wo", "scope", "ttl", "max_cost",
	"from_snapshot", "from_sandbox", "desired_mode", "billing", "on_conflict", "on_expiry", "on_unreachable_destroy", "consumer"}

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
	if destroys() {
		return
	}
	resp.Diagnostics.Append(req.Config.Get(ctx, &p.config)...)
	resp.Diagnostics.Append(req.Plan.Get(ctx, &p.plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if p.state == nil {
		p.create(ctx)
	} else {
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

// ask resolves, routes and prices the plan's arguments; false when they are
// not known yet or when an error was told. binding tells whether something is
// to be made now: if not, problems are only warnings.
func (p *planning) ask(ctx context.Context, binding bool) (engine.Planned, bool) {
	e := p.r.ready()
	if e == nil || !p.config.decides(ctx) {
		return engine.Planned{}, false
	}
	request, diags := p.request(ctx)
	p.resp.Diagnostics.Append(diags...)
	if diags.HasError() {
		return engine.Planned{}, false
	}
	request.Leaving = p.leaving()
	if binding && p.state == nil {
		request.Together = p.r.cfg.plan()
	}
	planned, err := e.Plan(ctx, request)
	if err == nil {
		if binding {
			addNotices(&p.resp.Diagnostics, planned.Notices)
			p.tellTaken(planned)
			if refused := explainRefusals(planned.Estimate, false); refused != "" {
				// Terraform shows warnings of one summary once, so it names the cause and not the sandbox.
				p.resp.Diagnostics.AddWarning("Not every place can run "+request.Profile,
					"It runs at "+firstPlaces(planned.Estimate)+". Why not elsewhere:\n"+refused)
			}
		}
		return planned, true
	}
	if !binding {
		addWarning(&p.resp.Diagnostics, "Sandbox "+p.state.label()+" lives, but could not be made again as it is configured", err)
		return planned, planned.Version != ""
	}
	summary, detail := describe("Sandbox "+subject(request)+" cannot be made as it is configured", err)
	if refused := explainRefusals(planned.Estimate, true); refused != "" && engine.LimitOf(err) == "" && !strings.Contains(detail, "(viability.") && !strings.Contains(detail, "(permission.") && !strings.Contains(detail, "(intent.") {
		detail += "\n\nThe places that were considered:\n" + refused
	}
	p.resp.Diagnostics.AddAttributeError(fieldPath(err, path.Root("profile"), planArguments...), summary, detail)
	return planned, false
}

// leaving are the sandboxes that end before what is planned here begins: those
// that this plan ends, and, of one that lives, itself.
func (p *planning) leaving() (ids []engine.ID) {
	if p.state != nil {
		ids = append(ids, engine.ID(p.state.ID.ValueString()))
	}
	p.r.cfg.leaving.Range(func(id, _ any) bool {
		ids = append(ids, engine.ID(id.(string)))
		return true
	})
	return ids
}

// tellTaken warns of a name that somebody has now, unless it is a sandbox
// that this plan ends.
func (p *planning) tellTaken(planned engine.Planned) {
	if planned.NameTaken == nil || p.state != nil {
		return
	}
	if _, leaves := p.r.cfg.leaving.Load(string(planned.NameHolder)); !leaves {
		addNotices(&p.resp.Diagnostics, []engine.Notice{*planned.NameTaken})
	}
}

// leaves notes that a sandbox is about to end by this plan.
func (r *sandboxResource) leaves(m sandboxModel) {
	if r.cfg != nil {
		r.cfg.leaving.Store(m.ID.ValueString(), true)
	}
}

// request is made of the configuration: computed arguments may be unknown in
// the plan. Secrets are given with their names; their values are not known
// here or not needed.
func (p *planning) request(ctx context.Context) (engine.Request, diagnosticsList) {
	m := p.config
	m.TTL = p.plan.TTL
	request, diags := m.request(ctx)
	names, ds := stringMap(ctx, p.config.SecretsWO)
	diags.Append(ds...)
	request.Secrets = secrets(names)
	return request, diags
}

func (p *planning) takeEstimate(ctx context.Context, planned engine.Planned) {
	if !planned.EstimateKnown {
		if numbers := explainNumbers(planned.Estimate); numbers != "" {
			p.resp.Diagnostics.AddWarning("Not part of the plan, as of now: "+summaryOf(planned.Estimate),
				"The estimate depends on what the ledger records (hosts by name, where a snapshot is kept), and that may change before the apply. As of now:\n"+numbers)
		}
		return
	}
	v, ds := estimateValue(ctx, planned.Estimate)
	p.resp.Diagnostics.Append(ds...)
	p.plan.Estimate = v
}

// change plans an existing sandbox: replaced, changed in place, or nothing.
func (p *planning) change(ctx context.Context) {
	p.keepComputed()
	if sameDuration(p.plan.TTL, p.state.TTL) {
		p.plan.TTL = p.state.TTL
	}
	moved := hostsMoved(ctx, p.state.Host.ValueString(), p.state.Hosts, p.plan.Hosts)
	replaced := p.replacedArguments(moved)
	inPlace := p.plan.changesInPlace(*p.state)
	ended := p.ended()
	if len(replaced) == 0 && !ended {
		planned, ok := p.ask(ctx, inPlace)
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
			p.changeInPlace(ctx, planned, ok)
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

// version resolves the profile's version where the rest cannot be asked yet:
// a replacement must show in the first plan, not only in the one of apply.
func (p *planning) version(ctx context.Context) string {
	e := p.r.ready()
	request, diags := p.request(ctx)
	if e == nil || diags.HasError() || p.config.Profile.IsUnknown() {
		return ""
	}
	planned, err := e.Plan(ctx, request)
	if err != nil {
		tflog.Debug(ctx, "the profile's version was resolved without a place", map[string]any{"error": err.Error()})
	}
	return planned.Version
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
func (p *planning) changeInPlace(ctx context.Context, planned engine.Planned, asked bool) {
	ttl := !p.plan.TTL.Equal(p.state.TTL)
	if ttl {
		p.plan.ExpiresAt, p.plan.Estimate = types.StringUnknown(), estimateUnknown()
		if asked {
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

// checkUpdate asks the engine whether the change is possible. Without one it
// still tells that the profile was edited.
func (p *planning) checkUpdate(ctx context.Context, ttl, mode bool) {
	e := p.r.ready()
	if e == nil || !p.config.decides(ctx) {
		return
	}
	rec, diags := p.state.receipt(ctx, p.req.Private)
	p.resp.Diagnostics.Append(diags...)
	old, diags := p.state.request(ctx)
	p.resp.Diagnostics.Append(diags...)
	now, diags := p.plan.request(ctx)
	p.resp.Diagnostics.Append(diags...)
	if p.resp.Diagnostics.HasError() {
		return
	}
	now.Together = p.r.cfg.plan()
	ns, err := e.PlanUpdate(ctx, rec, old, now)
	addNotices(&p.resp.Diagnostics, ns)
	if err != nil && (ttl || mode) {
		field := path.Root("ttl")
		if !ttl {
			field = path.Root("desired_mode")
		}
		addErrorAt(&p.resp.Diagnostics, fieldPath(err, field, planArguments...), "Sandbox "+p.state.label()+" cannot be changed like this", err)
	}
}
