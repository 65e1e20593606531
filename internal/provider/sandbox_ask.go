package provider

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// What a plan asks the engine. None of it changes anything: the answers become
// values of the plan only where they are the same again in the apply.

// planArguments are those an engine's error may point to.
var planArguments = []string{"profile", "name", "name_prefix", "hosts", "inputs", "env", "secrets_wo", "scope", "ttl", "max_cost",
	"from_snapshot", "from_sandbox", "desired_mode", "billing", "on_conflict", "on_expiry", "on_unreachable_destroy", "consumer"}

// ask resolves, routes and prices the plan's arguments; false when they are
// not known yet or something is in the way. binding tells whether something is
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
	if !binding {
		request.Account = p.state.Account.ValueString() // it stays with the life
	}
	request.Former, _, _ = privateReceipt(ctx, p.req.Private) // of the one that lives, or that is replaced
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
		addWarning(ctx, &p.resp.Diagnostics, "Sandbox "+p.state.label()+" lives, but could not be made again as it is configured", err)
		return planned, planned.Version != ""
	}
	summary, detail := describe(ctx, "Sandbox "+subject(request)+" cannot be made as it is configured", err)
	if refused := explainRefusals(planned.Estimate, true); refused != "" && engine.LimitOf(err) == "" && !strings.Contains(detail, "(viability.") && !strings.Contains(detail, "(permission.") && !strings.Contains(detail, "(intent.") {
		detail += "\n\nThe places that were considered:\n" + refused
	}
	p.resp.Diagnostics.AddAttributeError(fieldPath(err, path.Root("profile"), planArguments...), summary, detail)
	return planned, false
}

// refuseUnbuilt refuses the arguments that nothing carries out yet. It is not
// for the configuration alone: that is checked before a destroy too. Which
// sandbox is to be forked may be unknown; none can be.
func (p *planning) refuseUnbuilt(ctx context.Context) {
	c := p.config
	asked := engine.Request{Scope: c.Scope.ValueString(), DesiredMode: c.DesiredMode.ValueString(), FromSandbox: c.FromSandbox.ValueString()}
	if c.FromSandbox.IsUnknown() {
		asked.FromSandbox = "unknown"
	}
	if err := engine.RefuseUnbuilt(asked); err != nil {
		addErrorAt(ctx, &p.resp.Diagnostics, fieldPath(err, path.Root("profile"), planArguments...), "Sandbox cannot be made as it is configured", err)
	}
}

// leaving are the sandboxes that end before what is planned here begins: those
// that this plan ends, and, of one that lives, itself.
func (p *planning) leaving() (ids []engine.ID) {
	if p.state != nil {
		ids = append(ids, engine.ID(p.state.ID.ValueString()))
	}
	return append(ids, p.r.cfg.fates.leaving()...)
}

// tellTaken warns of a name that somebody has who does not go by this plan.
func (p *planning) tellTaken(planned engine.Planned) {
	if planned.NameTaken != nil && p.state == nil {
		run := thisRun()
		run.applies = run.applies || p.r.cfg.applying.Load()
		addNotices(&p.resp.Diagnostics, p.r.cfg.fates.wants(planned.NameHolder, *planned.NameTaken, run))
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

// ofLife makes a plan's estimate that of the sandbox that lives: where its end
// moves, its place and its prices stay.
func (p *planning) ofLife(ctx context.Context, planned engine.Planned) engine.Planned {
	e := p.r.ready()
	if e == nil || planned.TTL == 0 {
		return planned
	}
	rec, _ := p.state.receipt(ctx, p.req.Private) // checkUpdate tells what is wrong with it
	if own, ok := e.EstimateLife(ctx, rec, planned.TTL); ok {
		planned.Estimate, planned.EstimateKnown = own, true
	}
	return planned
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
		addErrorAt(ctx, &p.resp.Diagnostics, fieldPath(err, field, planArguments...), "Sandbox "+p.state.label()+" cannot be changed like this", err)
	}
}
