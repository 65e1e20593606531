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

// configured is one provider block after Configure. Its engine is nil while an argument of the block is
// unknown, which happens only in plans.
type configured struct {
	engine  *engine.Engine
	account string // "" while unknown
	run     func() run
	// fates is what this walk knows of existing sandboxes.
	fates fates
	// together counts what the sandboxes of this plan will hold.
	together engine.Together
	// applying is set once something is created, changed or destroyed. The walk is then no plan, and only the
	// ledger knows the holds.
	applying atomic.Bool
	// told holds the ids of sandboxes whose failure this walk has already reported.
	told sync.Map
	// ended says, by the id of an expired sandbox that this walk has read, why it ended.
	ended sync.Map
	// connections holds what ephemeral resources opened, by the key in their private data.
	connections sync.Map
	// hosts holds the names of the hosts in the state: re-creating one of them is not a second registration.
	hosts sync.Map
}

// plan returns what the sandboxes of this plan count in; nil once the walk applies.
func (c *configured) plan() *engine.Together {
	if c.applying.Load() {
		return nil
	}
	return &c.together
}

// tellAccount warns about a resource made for another account than the provider's: it stays there, and that
// account pays.
func (c *configured) tellAccount(diags *diag.Diagnostics, what, account string) {
	if c.account == "" || account == "" || account == c.account {
		return
	}
	diags.AddWarning("Resources of account "+account+" stay in it", // one summary for all, so that Terraform shows it once
		what+" belongs to account "+account+"; the provider's account is "+c.account+". It is listed in "+account+" and uses that account's "+
			"credit, budgets and ceilings until it ends."+
			"\n\nWhat to do: to move it to "+c.account+", replace it with `terraform apply -replace=ADDRESS`. Otherwise do nothing, or set the "+
			"provider's account back.")
}

// engines are those this process has to close.
type engines struct {
	mu   sync.Mutex
	open []*configured
}

func (e *engines) add(one *configured) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open = append(e.open, one)
}

// close ends what was opened over the engine, and the engine itself.
func (c *configured) close() (err error) {
	c.connections.Range(func(_, open any) bool {
		err = errors.Join(err, open.(*connection).close())
		return true
	})
	return errors.Join(err, c.engine.Close())
}

// Close releases every engine the process configured. Sandboxes live on.
func (p *Provider) Close() error {
	p.engines.mu.Lock()
	defer p.engines.mu.Unlock()
	var errs []error
	for _, e := range p.engines.open {
		errs = append(errs, e.close())
	}
	p.engines.open = nil
	return errors.Join(errs...)
}

// Configure implements provider.Provider. It reads the catalog and opens nothing else: Terraform configures a
// provider on every walk, and one error reports a broken catalog once instead of once per resource.
func (p *Provider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var m providerModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	c := &configured{run: p.run}
	resp.ResourceData, resp.DataSourceData, resp.EphemeralResourceData, resp.ActionData, resp.ListResourceData = c, c, c, c, c
	p.now.Store(c)
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
		addErrorAt(ctx, &resp.Diagnostics, fieldPath(err, path.Empty(), "catalog", "ledger", "account", "state_dir", "credentials"),
			"The provider could not be configured", err)
		return
	}
	addNotices(&resp.Diagnostics, e.Warnings())
	c.engine = e
	p.engines.add(c)
}

// options maps the block; known is false while any argument is unknown.
func (m providerModel) options(ctx context.Context) (opts engine.Options, known bool, diags diag.Diagnostics) {
	for _, v := range []interface{ IsUnknown() bool }{m.Ledger, m.Account, m.StateDir} {
		if v.IsUnknown() {
			return opts, false, nil
		}
	}
	if !fullyKnown(ctx, m.Catalog) || !fullyKnown(ctx, m.Credentials) || !fullyKnown(ctx, m.AllowedCommands) {
		return opts, false, nil
	}
	opts.Ledger, opts.Account, opts.StateDir = m.Ledger.ValueString(), m.Account.ValueString(), m.StateDir.ValueString()
	if !m.Catalog.IsNull() {
		diags.Append(m.Catalog.ElementsAs(ctx, &opts.Catalog, false)...)
	}
	if !m.AllowedCommands.IsNull() {
		diags.Append(m.AllowedCommands.ElementsAs(ctx, &opts.AllowedCommands, false)...)
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

// takeConfigured is Configure for every resource and data source. The data is nil while Terraform only
// validates.
func takeConfigured(data any, diags *diag.Diagnostics) *configured {
	if data == nil {
		return nil
	}
	c, ok := data.(*configured)
	if !ok {
		diags.AddError("Unexpected provider data", "This is a bug in the provider. Please report it.")
	}
	return c
}

type withEngine struct{ cfg *configured }

// Configure implements resource.ResourceWithConfigure.
func (w *withEngine) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	w.cfg = takeConfigured(req.ProviderData, &resp.Diagnostics)
}

// ready returns the engine, or nil while the provider's own configuration is unknown.
func (w *withEngine) ready() *engine.Engine {
	if w.cfg == nil {
		return nil
	}
	return w.cfg.engine
}

// must returns the engine for an operation that needs it, or reports why there is none.
func (w *withEngine) must(diags *diag.Diagnostics) *engine.Engine {
	e := w.ready()
	if e == nil {
		diags.AddError("The provider is not configured yet",
			"An argument of the provider block is still unknown, so the provider can neither read nor change anything.\n\n"+
				"What to do: set the provider's arguments to values known before the apply, or apply in two steps with -target.")
	}
	return e
}

// changing is must for operations that create, change or destroy: from then on this walk is no plan.
func (w *withEngine) changing(diags *diag.Diagnostics) *engine.Engine {
	if w.cfg != nil {
		w.cfg.applying.Store(true)
	}
	return w.must(diags)
}

// dataSource is withEngine for a data source.
type dataSource struct{ withEngine }

var _ datasource.DataSourceWithConfigure = (*profileDataSource)(nil)

// Configure implements datasource.DataSourceWithConfigure.
func (d *dataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.cfg = takeConfigured(req.ProviderData, &resp.Diagnostics)
}
