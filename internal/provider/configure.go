package provider

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// configured is one provider block after Configure. Its engine is nil while
// an argument of the block is unknown, which only happens in plans.
type configured struct {
	engine  *engine.Engine
	account string // "" while unknown
	// fates is what this walk knows of the sandboxes there are.
	fates fates
	// together counts what the sandboxes of this plan are going to set aside.
	together engine.Together
	// applying: something is made, changed or ended by now, so this is no plan
	// any more, and the ledger alone knows what is set aside.
	applying atomic.Bool
	// told holds the ids of sandboxes whose failure this walk has warned of.
	told sync.Map
	// hosts holds the names of those that the state has: what is made anew under
	// one of them is no second registration.
	hosts sync.Map
}

// plan is what the sandboxes of this plan count in; nil once it is none any more.
func (c *configured) plan() *engine.Together {
	if c.applying.Load() {
		return nil
	}
	return &c.together
}

// tellAccount warns of what was made for another account than the provider's:
// it stays there, and its money is counted there.
func (c *configured) tellAccount(diags *diag.Diagnostics, what, account string) {
	if c.account == "" || account == "" || account == c.account {
		return
	}
	diags.AddWarning("What was made for account "+account+" stays with it", // one summary for all: Terraform shows it once
		what+" was made for account "+account+", and the provider's account is "+c.account+". It is listed there and counts against the credit, the budgets and the ceilings of that account until it ends."+
			"\n\nWhat to do: to have it in "+c.account+", make it anew with `terraform apply -replace=ADDRESS`; else nothing, or set the provider's account back.")
}

// engines are what this process has to close.
type engines struct {
	mu   sync.Mutex
	open []*engine.Engine
}

func (e *engines) add(one *engine.Engine) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open = append(e.open, one)
}

// Close releases every engine the process configured. Sandboxes live on.
func (p *Provider) Close() error {
	p.engines.mu.Lock()
	defer p.engines.mu.Unlock()
	var errs []error
	for _, e := range p.engines.open {
		errs = append(errs, e.Close())
	}
	p.engines.open = nil
	return errors.Join(errs...)
}

// Configure implements provider.Provider. It reads the catalog and opens
// nothing else: Terraform configures a provider at every walk, and a broken
// catalog is told once here instead of once per resource.
func (p *Provider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var m providerModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	c := &configured{}
	resp.ResourceData, resp.DataSourceData = c, c
	if !m.Account.IsUnknown() {
		c.account = m.Account.ValueString()
		if c.account == "" {
			c.account = engine.DefaultAccount
		}
	}
	opts, known, diags := m.options(ctx)
	resp.Diagnostics.Append(diags...)
	if diags.HasError() || !known {
		return
	}
	opts.Extensions = p.extensions
	opts.Log = slog.New(newLogHandler(ctx))
	e, err := engine.New(opts)
	if err != nil {
		addErrorAt(ctx, &resp.Diagnostics, fieldPath(err, path.Empty(), "catalog", "ledger", "account", "state_dir", "credentials"), "The provider could not be configured", err)
		return
	}
	addNotices(&resp.Diagnostics, e.Warnings())
	p.engines.add(e)
	c.engine = e
}

// options maps the block; known is false while any argument is unknown.
func (m providerModel) options(ctx context.Context) (opts engine.Options, known bool, diags diag.Diagnostics) {
	for _, v := range []interface{ IsUnknown() bool }{m.Ledger, m.Account, m.StateDir} {
		if v.IsUnknown() {
			return opts, false, nil
		}
	}
	if !fullyKnown(ctx, m.Catalog) || !fullyKnown(ctx, m.Credentials) {
		return opts, false, nil
	}
	opts.Ledger, opts.Account, opts.StateDir = m.Ledger.ValueString(), m.Account.ValueString(), m.StateDir.ValueString()
	if !m.Catalog.IsNull() {
		diags.Append(m.Catalog.ElementsAs(ctx, &opts.Catalog, false)...)
	}
	plain := map[string]map[string]string{}
	if !m.Credentials.IsNull() {
		diags.Append(m.Credentials.ElementsAs(ctx, &plain, false)...)
	}
	opts.Credentials = map[string]map[string]engine.Secret{}
	for ext, fields := range plain {
		opts.Credentials[ext] = secrets(fields)
	}
	return opts, true, diags
}

// takeConfigured is every resource's and data source's Configure. The data is
// nil while Terraform only validates.
func takeConfigured(data any, diags *diag.Diagnostics) *configured {
	if data == nil {
		return nil
	}
	c, ok := data.(*configured)
	if !ok {
		diags.AddError("Unexpected provider data", "This is a defect of the provider; please report it.")
	}
	return c
}

type withEngine struct{ cfg *configured }

// Configure implements resource.ResourceWithConfigure.
func (w *withEngine) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	w.cfg = takeConfigured(req.ProviderData, &resp.Diagnostics)
}

// ready returns the engine, or nil while the provider's own configuration is
// not known yet.
func (w *withEngine) ready() *engine.Engine {
	if w.cfg == nil {
		return nil
	}
	return w.cfg.engine
}

// must returns the engine for an operation that cannot do without.
func (w *withEngine) must(diags *diag.Diagnostics) *engine.Engine {
	e := w.ready()
	if e == nil {
		diags.AddError("The provider is not configured yet",
			"An argument of the provider block is not known at this point, so nothing can be read or changed.\n\n"+
				"What to do: give the provider block values that are known before the apply, or apply in two steps with -target.")
	}
	return e
}

// Configure implements datasource.DataSourceWithConfigure.
func (d *quoteDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.cfg = takeConfigured(req.ProviderData, &resp.Diagnostics)
}
