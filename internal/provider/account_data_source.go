package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

type accountDataSource struct{ dataSource }

var walletFields = []computedField{
	{name: "currency", typ: types.StringType, doc: "ISO 4217 code."},
	{name: "granted", typ: types.StringType, doc: "Credit granted so far, in `currency`, like all amounts here."},
	{name: "spent", typ: types.StringType, doc: "Credit spent."},
	{name: "reserved", typ: types.StringType, doc: "Credit on hold for live sandboxes: the most they can cost."},
	{name: "available", typ: types.StringType, doc: "Credit left for new sandboxes: granted minus spent and reserved."},
	{name: "receivable", typ: types.StringType,
		doc: "Debt: usage beyond the wallet's credit. A wallet never goes below zero, and no usage is lost."},
	{name: "unpriced_lives", typ: types.Int64Type,
		doc: "Number of sandbox lives that the wallet pays for at an unknown price. No amount here includes them."},
}

var budgetFields = []computedField{
	{name: "account", typ: types.StringType, doc: "Owner: `org/workspace`, or `org` for all of its workspaces together."},
	{name: "name", typ: types.StringType, doc: "Name of the budget."},
	{name: "currency", typ: types.StringType, doc: "ISO 4217 code."},
	{name: "limit", typ: types.StringType, doc: "Most that may be spent and reserved in a period, in `currency`, like all amounts here."},
	{name: "hard", typ: types.BoolType, doc: "`true` refuses sandboxes that would exceed the limit, `false` only warns."},
	{name: "period", typ: types.StringType, doc: "`day`, `week` or `month`, in UTC. Null for a budget that never resets."},
	{name: "spent", typ: types.StringType, doc: "Spent in the period."},
	{name: "over", typ: types.StringType, doc: "Part of `spent` that exceeded its reservation."},
	{name: "reserved", typ: types.StringType, doc: "On hold for live sandboxes."},
	{name: "left", typ: types.StringType, doc: "Rest of the limit; negative above it."},
	{name: "since", typ: types.StringType, doc: "Start of the period, RFC 3339. Null for a budget that never resets."},
	{name: "resets_at", typ: types.StringType, doc: "Start of the next period, RFC 3339. Null for a budget that never resets."},
	{name: "unpriced_lives", typ: types.Int64Type,
		doc: "Number of lives, ended in the period or running, with a charge at an unknown price. No amount here includes those charges."},
}

var ceilingFields = []computedField{
	{name: "source", typ: types.StringType, doc: "Source: a policy's ID, or the default for metered places."},
	{name: "scope", typ: types.StringType, doc: "Scope: the sandboxes of `org/workspace`, or of a whole `org`."},
	{name: "currency", typ: types.StringType,
		doc: "ISO 4217 code if the ceiling limits money spent and reserved. Null if it limits the number of sandboxes created."},
	{name: "metered", typ: types.BoolType, doc: "Whether only sandboxes at places that bill count."},
	{name: "limit", typ: types.StringType, doc: "Number of sandboxes, or an amount in `currency`."},
	{name: "used", typ: types.StringType, doc: "Current use, in the unit of `limit`."},
	{name: "per", typ: types.StringType, doc: "Length of the window that ends now, such as `10m`."},
	{name: "full", typ: types.BoolType, doc: "Whether it refuses new sandboxes now."},
	{name: "next", typ: types.StringType, doc: "Time when it has room again, RFC 3339. Null if it has room now, or only once a sandbox ends."},
}

var accountFields = []computedField{
	{name: "account", typ: types.StringType, doc: "The provider's account, `org/workspace`."},
	{name: "org", typ: types.StringType, doc: "Organization that owns the wallets."},
	{name: "workspace", typ: types.StringType, doc: "Workspace."},
	{name: "live_sandboxes", typ: types.Int64Type, doc: "Number of the account's sandboxes that are not destroyed."},
	{name: "wallets", list: walletFields, doc: "Prepaid credit, one entry per currency. Empty before the first `sandboxer ledger grant`."},
	{name: "budgets", list: budgetFields, doc: "Budgets that limit the account: its own and its organization's."},
	{name: "ceilings", list: ceilingFields, doc: "Limits on the number of sandboxes created, or the money spent, within a time window. They " +
		"stop runaway loops."},
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
		MarkdownDescription: "Returns the current credit, holds, budgets and ceilings of the provider's account from the ledger. " +
			"It writes nothing. A missing ledger reads as an empty account. Amounts are decimal strings. " +
			"Set credit and budgets with `sandboxer ledger grant` and `sandboxer ledger budget`.",
		Attributes: dataComputed(accountFields),
	}
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
		m.Wallets = append(m.Wallets, walletModel{Currency: w.Currency, Granted: w.Granted, Spent: w.Spent, Reserved: w.Reserved,
			Available: w.Available, Receivable: w.Owed, Unpriced: w.Unpriced})
	}
	for _, b := range v.Budgets {
		m.Budgets = append(m.Budgets, budgetModel{Account: b.Account, Name: b.Name, Currency: b.Currency, Limit: b.Limit, Hard: b.Hard,
			Period: optional(b.Period),
			Spent:  b.Spent, Over: b.Over, Reserved: b.Reserved, Left: b.Left, Since: stamp(b.Since), ResetsAt: stamp(b.ResetsAt),
			Unpriced: b.Unpriced})
	}
	for _, c := range v.Ceilings {
		m.Ceilings = append(m.Ceilings, ceilingModel{Source: c.Source, Scope: c.Scope, Currency: optional(c.Currency), Metered: c.Metered,
			Limit: c.Limit, Used: c.Used, Per: c.Per,
			Full: c.Full, Next: stamp(c.Next)})
	}
	return m
}
