package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

type accountDataSource struct{ withEngine }

var _ datasource.DataSourceWithConfigure = (*accountDataSource)(nil)

var walletFields = []computedField{
	{name: "currency", typ: types.StringType, doc: "ISO 4217 code."},
	{name: "granted", typ: types.StringType, doc: "All credit ever put in, in `currency`, as all amounts here."},
	{name: "spent", typ: types.StringType, doc: "What was used and paid."},
	{name: "reserved", typ: types.StringType, doc: "Set aside for sandboxes that live, by their worst case."},
	{name: "available", typ: types.StringType, doc: "What can still be set aside: granted, less spent and reserved."},
	{name: "receivable", typ: types.StringType, doc: "Owed: used beyond what the wallet had. A wallet is never below zero, and no usage is lost."},
	{name: "unpriced_lives", typ: types.Int64Type, doc: "Of how many lives the wallet pays something at a price that nobody told: what that comes to is in none of these amounts."},
}

var budgetFields = []computedField{
	{name: "account", typ: types.StringType, doc: "Whose: `org/workspace`, or `org` for all of its workspaces together."},
	{name: "name", typ: types.StringType, doc: "Name of the budget."},
	{name: "currency", typ: types.StringType, doc: "ISO 4217 code."},
	{name: "limit", typ: types.StringType, doc: "What may be spent and reserved in a period, in `currency`, as all amounts here."},
	{name: "hard", typ: types.BoolType, doc: "Whether passing it is refused, or only told."},
	{name: "period", typ: types.StringType, doc: "`day`, `week` or `month`, in UTC; null for one that never begins anew."},
	{name: "spent", typ: types.StringType, doc: "Spent in the period."},
	{name: "over", typ: types.StringType, doc: "Of that, what was more than had been reserved."},
	{name: "reserved", typ: types.StringType, doc: "Set aside for sandboxes that live."},
	{name: "left", typ: types.StringType, doc: "What is left below the limit; negative above it."},
	{name: "since", typ: types.StringType, doc: "When the period began, RFC 3339; null for one that never begins anew."},
	{name: "resets_at", typ: types.StringType, doc: "When the next period begins, RFC 3339; null for one that never begins anew."},
	{name: "unpriced_lives", typ: types.Int64Type, doc: "Of how many lives, of the period and now, something is charged for at a price that nobody told: what that comes to is in none of these amounts."},
}

var ceilingFields = []computedField{
	{name: "source", typ: types.StringType, doc: "Whose it is: a policy's id, or the default for places that send a bill."},
	{name: "scope", typ: types.StringType, doc: "Whose sandboxes count: `org/workspace`, or all of an `org`."},
	{name: "currency", typ: types.StringType, doc: "ISO 4217 code, where it bounds what is spent and set aside; null where it bounds how many sandboxes are made."},
	{name: "metered", typ: types.BoolType, doc: "Whether only sandboxes at places that send a bill count."},
	{name: "limit", typ: types.StringType, doc: "How many sandboxes, or how much in `currency`."},
	{name: "used", typ: types.StringType, doc: "What counts against it now, in what `limit` counts."},
	{name: "per", typ: types.StringType, doc: "How long it looks back, a duration such as `10m`."},
	{name: "full", typ: types.BoolType, doc: "Whether nothing more is let through now."},
	{name: "next", typ: types.StringType, doc: "When there is room again, RFC 3339; null where there is, and where something has to end for that."},
}

var accountFields = []computedField{
	{name: "account", typ: types.StringType, doc: "The provider's account, `org/workspace`."},
	{name: "org", typ: types.StringType, doc: "The organization, whose wallets these are."},
	{name: "workspace", typ: types.StringType, doc: "The workspace."},
	{name: "live_sandboxes", typ: types.Int64Type, doc: "How many sandboxes of the account are not destroyed."},
	{name: "wallets", list: walletFields, doc: "Prepaid credit, one entry for each currency; empty before the first `sandboxer ledger grant`."},
	{name: "budgets", list: budgetFields, doc: "The budgets that bound the account: its own and its organization's."},
	{name: "ceilings", list: ceilingFields, doc: "What ends loops: how many sandboxes may be made, or how much spent, in so long."},
}

type accountModel struct {
	Account   types.String   `tfsdk:"account"`
	Org       types.String   `tfsdk:"org"`
	Workspace types.String   `tfsdk:"workspace"`
	Live      types.Int64    `tfsdk:"live_sandboxes"`
	Wallets   []walletModel  `tfsdk:"wallets"`
	Budgets   []budgetModel  `tfsdk:"budgets"`
	Ceilings  []ceilingModel `tfsdk:"ceilings"`
}

type ceilingModel struct {
	Source   string       `tfsdk:"source"`
	Scope    string       `tfsdk:"scope"`
	Currency types.String `tfsdk:"currency"`
	Metered  bool         `tfsdk:"metered"`
	Limit    string       `tfsdk:"limit"`
	Used     string       `tfsdk:"used"`
	Per      string       `tfsdk:"per"`
	Full     bool         `tfsdk:"full"`
	Next     types.String `tfsdk:"next"`
}

type walletModel struct {
	Currency   string `tfsdk:"currency"`
	Granted    string `tfsdk:"granted"`
	Spent      string `tfsdk:"spent"`
	Reserved   string `tfsdk:"reserved"`
	Available  string `tfsdk:"available"`
	Receivable string `tfsdk:"receivable"`
	Unpriced   int64  `tfsdk:"unpriced_lives"`
}

type budgetModel struct {
	Account  string       `tfsdk:"account"`
	Name     string       `tfsdk:"name"`
	Currency string       `tfsdk:"currency"`
	Limit    string       `tfsdk:"limit"`
	Hard     bool         `tfsdk:"hard"`
	Period   types.String `tfsdk:"period"`
	Spent    string       `tfsdk:"spent"`
	Over     string       `tfsdk:"over"`
	Reserved string       `tfsdk:"reserved"`
	Left     string       `tfsdk:"left"`
	Since    types.String `tfsdk:"since"`
	ResetsAt types.String `tfsdk:"resets_at"`
	Unpriced int64        `tfsdk:"unpriced_lives"`
}

// Metadata implements datasource.DataSource.
func (d *accountDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_account"
}

// Schema implements datasource.DataSource.
func (d *accountDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Tells what the provider's account has and what limits it: credit, holds, budgets and ceilings, as the ledger has them now. " +
			"It writes nothing, and a missing ledger reads as an empty account. Amounts are decimal strings. " +
			"People set credit and budgets with `sandboxer ledger grant` and `sandboxer ledger budget`.",
		Attributes: dataComputed(accountFields),
	}
}

// Configure implements datasource.DataSourceWithConfigure.
func (d *accountDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.cfg = takeConfigured(req.ProviderData, &resp.Diagnostics)
}

// Read implements datasource.DataSource.
func (d *accountDataSource) Read(ctx context.Context, _ datasource.ReadRequest, resp *datasource.ReadResponse) {
	e := d.must(&resp.Diagnostics)
	if e == nil {
		return
	}
	v, err := e.AccountView(ctx)
	if err != nil {
		cannotTell(ctx, &resp.Diagnostics, "The account cannot be read", err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, newAccount(v))...)
}

func cannotTell(ctx context.Context, diags *diag.Diagnostics, what string, err error) {
	summary, detail := describe(ctx, what, err)
	diags.AddError(summary, detail)
}

func newAccount(v engine.AccountView) *accountModel {
	m := &accountModel{Account: types.StringValue(v.Account), Org: types.StringValue(v.Org), Workspace: types.StringValue(v.Workspace),
		Live: types.Int64Value(v.Live), Wallets: []walletModel{}, Budgets: []budgetModel{}, Ceilings: []ceilingModel{}}
	for _, w := range v.Wallets {
		m.Wallets = append(m.Wallets, walletModel{Currency: w.Currency, Granted: w.Granted, Spent: w.Spent, Reserved: w.Reserved, Available: w.Available, Receivable: w.Owed, Unpriced: w.Unpriced})
	}
	for _, b := range v.Budgets {
		m.Budgets = append(m.Budgets, budgetModel{Account: b.Account, Name: b.Name, Currency: b.Currency, Limit: b.Limit, Hard: b.Hard, Period: optional(b.Period),
			Spent: b.Spent, Over: b.Over, Reserved: b.Reserved, Left: b.Left, Since: stamp(b.Since), ResetsAt: stamp(b.ResetsAt), Unpriced: b.Unpriced})
	}
	for _, c := range v.Ceilings {
		m.Ceilings = append(m.Ceilings, ceilingModel{Source: c.Source, Scope: c.Scope, Currency: optional(c.Currency), Metered: c.Metered, Limit: c.Limit, Used: c.Used, Per: c.Per,
			Full: c.Full, Next: stamp(c.Next)})
	}
	return m
}
