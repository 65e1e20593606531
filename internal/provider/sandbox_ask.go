package provider

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// What a plan asks the engine. None of it changes anything: an answer becomes a planned value only if the
// apply gets the same one.

// planArguments are those an engine's error may point to.
var planArguments = []string{"profile", "name", "name_prefix", "hosts", "inputs", "env", "secrets_wo", "scope", "share_key",
	"ttl", "max_cost", "from_snapshot", "from_sandbox", "desired_mode", "replace_mode", "triggers", "extension", "image",
	"resources", "billing", "on_conflict", "on_expiry", "on_unreachable_destroy", "consumer"}

// ask resolves, routes and prices the plan's arguments; false if they are not known yet or something is in
// the way. binding tells whether something is to be created now: if not, problems are only warnings.
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
		request.Account = p.state.Account.ValueString()    // it stays with the life
		request.FromSnapshot, request.FromSandbox = "", "" // history
	}
	request.Former, _, _ = privateReceipt(ctx, p.private) // of the one that lives or is replaced
	if binding && p.state == nil {
		request.Together = p.r.cfg.plan()
	}
	planned, err := e.Plan(ctx, request)
	if err == nil {
		if binding {
			addNotices(&p.resp.Diagnostics, planned.Notices)
			p.tellTaken(planned)
			if refused := explainRefusals(planned.Estimate, false); refused != "" {
				// Terraform shows one warning per summary, so the summary names the cause and not the
				// sandbox.
				p.resp.Diagnostics.AddWarning("Not every place can run "+request.Profile,
					"It runs at "+firstPlaces(planned.Estimate)+". Why not elsewhere:\n"+refused)
			}
		}
		return planned, true
	}
	if !binding {
		addWarning(ctx, &p.resp.Diagnostics, "Sandbox "+p.state.label()+" is live, but its configuration cannot create it again", err)
		return planned, planned.Version != ""
	}
	summary, detail := describe(ctx, "Sandbox "+subject(request)+" cannot be created as configured", err)
	if refused := explainRefusals(planned.Estimate, true); refused != "" && engine.LimitOf(err) == "" &&
		!strings.Contains(detail, "(viability.") && !strings.Contains(detail, "(permission.") && !strings.Contains(detail, "(intent.") {
		detail += "\n\nPlaces considered:\n" + refused
	}
	p.resp.Diagnostics.AddAttributeError(fieldPath(err, path.Root("profile"), planArguments...), summary, detail)
	return planned, false
}

// leaving lists the sandboxes that end before what is planned here begins: those this plan ends and, if it
// replaces a live one, that one.
func (p *planning) leaving() (ids []engine.ID) {
	if p.state != nil {
		ids = append(ids, engine.ID(p.state.ID.ValueString()))
	}
	return append(ids, p.r.cfg.fates.leaving()...)
}

// tellTaken warns about a name whose holder this plan does not end.
func (p *planning) tellTaken(planned engine.Planned) {
	if planned.NameTaken != nil && p.state == nil {
		run := p.r.cfg.run()
		run.applies = run.applies || p.r.cfg.applying.Load()
		addNotices(&p.resp.Diagnostics, p.r.cfg.fates.wants(planned.NameHolder, *planned.NameTaken, run))
	}
}

// request is built from the configuration, since computed arguments may be unknown in the plan. It gives
// secrets by name; their values are unknown here or not needed.
func (p *planning) request(ctx context.Context) (engine.Request, diagnosticsList) {
	m := p.config
	m.TTL = p.plan.TTL
	request, diags := m.request(ctx)
	names, ds := stringMap(ctx, p.config.SecretsWO)
	diags.Append(ds...)
	request.Secrets, request.Extension = secrets(names), p.config.Extension.ValueString()
	return request, diags
}

func (p *planning) takeEstimate(ctx context.Context, planned engine.Planned) {
	if !planned.EstimateKnown {
		if numbers := explainNumbers(planned.Estimate); numbers != "" && !p.r.cfg.applying.Load() { // then the state has it soon
			p.resp.Diagnostics.AddWarning("The price is known after the apply; as of now: "+summaryOf(planned.Estimate),
				"The estimate depends on records of the ledger (hosts by name, the place of a snapshot or of a sandbox to fork) "+
					"that may change before the apply. As of now:\n"+numbers)
		}
		return
	}
	v, ds := estimateValue(ctx, planned.Estimate)
	p.resp.Diagnostics.Append(ds...)
	p.plan.Estimate = v
}

// ofLife fits a plan's estimate to the live sandbox: its end moves, its place and prices stay.
func (p *planning) ofLife(ctx context.Context, planned engine.Planned) engine.Planned {
	e := p.r.ready()
	if e == nil || planned.TTL == 0 {
		return planned
	}
	rec, _ := p.state.receipt(ctx, p.private) // checkUpdate reports what is wrong with it
	if own, ok := e.EstimateLife(rec, planned.TTL); ok {
		planned.Estimate, planned.EstimateKnown = own, true
	}
	return planned
}

// version returns the profile's version in the catalog; "" if it has none or cannot be asked yet. A
// replacement must show in the first plan, not only in the plan of the apply. tell warns about a profile that
// is gone.
func (p *planning) version(ctx context.Context, tell bool) string {
	e := p.r.ready()
	if e == nil || p.config.Profile.IsUnknown() {
		return ""
	}
	version, err := e.ProfileVersion(p.config.Profile.ValueString())
	if err != nil && tell {
		addWarning(ctx, &p.resp.Diagnostics, "Sandbox "+p.state.label()+" is live, but its configuration cannot create it again", err)
	}
	return version
}

// checkUpdate asks the engine whether the change is possible. Without a change it still reports that the
// profile was edited.
func (p *planning) checkUpdate(ctx context.Context, ttl, mode, again bool) {
	e := p.r.ready()
	if e == nil || !p.config.decides(ctx) {
		return
	}
	rec, diags := p.state.receipt(ctx, p.private)
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
	if err != nil && (ttl || mode || again) {
		field := path.Root("triggers")
		switch {
		case ttl:
			field = path.Root("ttl")
		case mode:
			field = path.Root("desired_mode")
		}
		addErrorAt(ctx, &p.resp.Diagnostics, fieldPath(err, field, planArguments...), "Sandbox "+p.state.label()+" cannot be changed like this",
			err)
	}
}
