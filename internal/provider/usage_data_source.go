package provider

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

type usageDataSource struct{ dataSource }

var usageSumFields = []computedField{
	{name: "status", typ: types.StringType, doc: "`settled` for lives that ended in the period, `running` for live ones, which are " +
		"priced as if they ended now and belong to no period."},
	{name: "currency", typ: types.StringType,
		doc: "ISO 4217 code. Amounts in different currencies are never added. Null without a known price."},
	{name: "lives", typ: types.Int64Type,
		doc: "Number of lives; a re-created sandbox has several. Grouped by component: the lives charged for it."},
	{name: "estimated_ends", typ: types.Int64Type, doc: "How many of them ended at an unknown time."},
	{name: "running_seconds", typ: types.Int64Type, doc: "Total running time."},
	{name: "paused_seconds", typ: types.Int64Type, doc: "Total paused time."},
	{name: "unpriced_lives", typ: types.Int64Type, doc: "How many of them have a charge at an unknown price."},
	{name: "billed", typ: types.StringType, doc: "Charged to the wallet or owed, in `currency`. Null if part of it is unknown."},
	{name: "billed_at_least", typ: types.StringType, doc: "Known part of `billed`. Null if none is known."},
	{name: "own_key", typ: types.StringType,
		doc: "What vendors bill to the owner of the key, in `currency`. Recorded only: no credit is used. Null if part of it is unknown."},
	{name: "own_key_at_least", typ: types.StringType, doc: "Known part of `own_key`. Null if none is known."},
	{name: "own_place", typ: types.StringType,
		doc: "Cost of your own hosts, in `currency`. Recorded only: no credit is used. Null if part of it is unknown."},
	{name: "own_place_at_least", typ: types.StringType, doc: "Known part of `own_place`. Null if none is known."},
}

var usageRowFields = append([]computedField{
	{name: "account", typ: types.StringType, doc: "`org/workspace`, with `by = [\"account\"]`."},
	{name: "profile", typ: types.StringType, doc: "ID of the profile, with `by = [\"profile\"]`."},
	{name: "extension", typ: types.StringType, doc: "Extension, such as `ext.local`, with `by = [\"extension\"]`."},
	{name: "host", typ: types.StringType, doc: "Name of the host, with `by = [\"host\"]`; null for a vendor's account."},
	{name: "actor", typ: types.StringType, doc: "The consumer's actor, with `by = [\"actor\"]` or `[\"consumer\"]`."},
	{name: "harness", typ: types.StringType, doc: "The consumer's harness, with `by = [\"harness\"]` or `[\"consumer\"]`."},
	{name: "run_id", typ: types.StringType, doc: "The consumer's run, with `by = [\"run\"]` or `[\"consumer\"]`."},
	{name: "sandbox_id", typ: types.StringType, doc: "ID of the sandbox, with `by = [\"sandbox\"]`."},
	{name: "name", typ: types.StringType, doc: "Name of the sandbox, with `by = [\"sandbox\"]`."},
	{name: "day", typ: types.StringType, doc: "Day of the end, in UTC, such as `2026-01-31`, with `by = [\"day\"]`."},
	{name: "component", typ: types.StringType, doc: "Priced component, such as `vcpu`, with `by = [\"component\"]`."},
	{name: "consumed", typ: types.StringType, doc: "Quantity of the component, in `consumed_unit`, with `by = [\"component\"]`."},
	{name: "consumed_unit", typ: types.StringType, doc: "Unit of its price, such as `vcpu-second`."},
}, usageSumFields...)

type usageModel struct {
	WholeOrg  types.Bool   `tfsdk:"whole_org"`
	From      types.String `tfsdk:"from"`
	To        types.String `tfsdk:"to"`
	By        []string     `tfsdk:"by"`
	SandboxID types.String `tfsdk:"sandbox_id"`
	Profile   types.String `tfsdk:"profile"`
	Extension types.String `tfsdk:"extension"`
	Host      types.String `tfsdk:"host"`
	Component types.String `tfsdk:"component"`
	Actor     types.String `tfsdk:"actor"`
	Harness   types.String `tfsdk:"harness"`
	RunID     types.String `tfsdk:"run_id"`

	Account types.String    `tfsdk:"account"`
	Rows    []usageRowModel `tfsdk:"rows"`
	Totals  []usageSumModel `tfsdk:"totals"`
}

type usageSumModel struct {
	Status          string       `tfsdk:"status"`
	Currency        types.String `tfsdk:"currency"`
	Lives           int64        `tfsdk:"lives"`
	EstimatedEnds   int64        `tfsdk:"estimated_ends"`
	UnpricedLives   int64        `tfsdk:"unpriced_lives"`
	RunningSeconds  int64        `tfsdk:"running_seconds"`
	PausedSeconds   int64        `tfsdk:"paused_seconds"`
	Billed          types.String `tfsdk:"billed"`
	BilledAtLeast   types.String `tfsdk:"billed_at_least"`
	OwnKey          types.String `tfsdk:"own_key"`
	OwnKeyAtLeast   types.String `tfsdk:"own_key_at_least"`
	OwnPlace        types.String `tfsdk:"own_place"`
	OwnPlaceAtLeast types.String `tfsdk:"own_place_at_least"`
}

type usageRowModel struct {
	Account      types.String `tfsdk:"account"`
	Profile      types.String `tfsdk:"profile"`
	Extension    types.String `tfsdk:"extension"`
	Host         types.String `tfsdk:"host"`
	Actor        types.String `tfsdk:"actor"`
	Harness      types.String `tfsdk:"harness"`
	RunID        types.String `tfsdk:"run_id"`
	SandboxID    types.String `tfsdk:"sandbox_id"`
	Name         types.String `tfsdk:"name"`
	Day          types.String `tfsdk:"day"`
	Component    types.String `tfsdk:"component"`
	Consumed     types.String `tfsdk:"consumed"`
	ConsumedUnit types.String `tfsdk:"consumed_unit"`
	usageSumModel
}

// Metadata implements datasource.DataSource.
func (d *usageDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_usage"
}

// Schema implements datasource.DataSource.
func (d *usageDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	text := func(doc string, rules ...validator.String) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, MarkdownDescription: doc, Validators: rules}
	}
	attrs := dataComputed([]computedField{
		{name: "account", typ: types.StringType, doc: "The provider's account, or its organization."},
		{name: "rows", list: usageRowFields, doc: "Lines of usage, `settled` ones first. Without `by`, one per status and currency."},
		{name: "totals", list: usageSumFields, doc: "Sum of all lines, per status and currency."},
	})
	const times = "A day (`2026-01-31`), a month (`2026-01`), an RFC 3339 time, all in UTC, or how long ago (`7d`)."
	attrs["whole_org"] = schema.BoolAttribute{Optional: true,
		MarkdownDescription: "Includes all workspaces of the account's organization. Defaults to `false`."}
	attrs["from"] = text("Start of the period, by the end of each sandbox. "+times+" Defaults to the beginning of this month.", usageTime())
	attrs["to"] = text("End of the period, like `from`. Defaults to now.", usageTime())
	attrs["by"] = schema.ListAttribute{ElementType: types.StringType, Optional: true,
		Validators: []validator.List{eachString(oneOf(engine.UsageDimensions()...))},
		MarkdownDescription: "Groups the lines by `" + strings.Join(engine.UsageDimensions(), "`, `") +
			"`. `consumer` is actor, harness and run together."}
	attrs["sandbox_id"] = text("Only this sandbox, by ID.")
	attrs["profile"] = text("Only this profile, by ID, in any version.")
	attrs["extension"] = text("Only this extension, such as `ext.local`.")
	attrs["host"] = text("Only this host, by name.")
	attrs["component"] = text("Only this component, such as `vcpu`, including its charges while paused.")
	attrs["actor"] = text("Only this consumer's actor.")
	attrs["harness"] = text("Only this consumer's harness.")
	attrs["run_id"] = text("Only this consumer's run.")
	resp.Schema = schema.Schema{
		MarkdownDescription: "Returns what was used, where, for whom, and what it cost. Sandboxes that ended in the period are `settled`. Live " +
			"ones are separate lines that grow with each read, " +
			"so set `to` and use the `settled` lines if a value must not change. It writes nothing. A missing ledger has no usage. " +
			"Amounts are decimal strings; null means unknown, never zero. A sum with an unknown part is null, and its `_at_least` has the known " +
			"part. `sandboxer ledger usage` prints the same.",
		Attributes: attrs,
	}
}

func usageTime() stringRule {
	return stringRule{about: `a day (2026-01-31), a month (2026-01), an RFC 3339 time, or how long ago (7d)`,
		check: func(s string) string { return wrongIf(engine.CheckUsageTime(s)) }}
}

// Read implements datasource.DataSource.
func (d *usageDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m usageModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	e := d.must(&resp.Diagnostics)
	if e == nil || resp.Diagnostics.HasError() {
		return
	}
	r, err := e.Usage(ctx, m.query())
	if err != nil {
		summary, detail := describe(ctx, "Usage cannot be read", err)
		resp.Diagnostics.AddAttributeError(fieldPath(err, path.Empty(), "from", "to", "by"), summary, detail)
		return
	}
	m.take(r)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (m *usageModel) query() engine.UsageQuery {
	return engine.UsageQuery{WholeOrg: m.WholeOrg.ValueBool(), From: m.From.ValueString(), To: m.To.ValueString(), By: m.By,
		Sandbox: engine.ID(m.SandboxID.ValueString()),
		Profile: m.Profile.ValueString(), Extension: m.Extension.ValueString(), Host: m.Host.ValueString(), Component: m.Component.ValueString(),
		Actor: m.Actor.ValueString(), Harness: m.Harness.ValueString(), RunID: m.RunID.ValueString()}
}

func (m *usageModel) take(r engine.UsageReport) {
	m.Account = types.StringValue(r.Account)
	m.Rows, m.Totals = []usageRowModel{}, []usageSumModel{}
	for _, part := range []struct {
		status string
		rows   []engine.UsageRow
	}{{"settled", r.Settled}, {"running", r.Running}} {
		for _, row := range part.rows {
			m.Rows = append(m.Rows, usageRowModel{Account: optional(row.Account), Profile: optional(row.Profile), Extension: optional(row.Extension),
				Host:  optional(row.Host),
				Actor: optional(row.Actor), Harness: optional(row.Harness), RunID: optional(row.RunID), SandboxID: optional(string(row.Sandbox)),
				Name: optional(row.Name),
				Day:  optional(row.Day), Component: optional(row.Component), Consumed: optional(row.Consumed), ConsumedUnit: optional(row.ConsumedUnit),
				usageSumModel: newUsageSum(part.status, row.UsageSums)})
		}
	}
	for _, t := range r.Totals {
		status := "settled"
		if t.Running {
			status = "running"
		}
		m.Totals = append(m.Totals, newUsageSum(status, t.UsageSums))
	}
}

func newUsageSum(status string, s engine.UsageSums) usageSumModel {
	return usageSumModel{Status: status, Currency: optional(s.Currency), Lives: s.Lives, EstimatedEnds: s.Estimated,
		RunningSeconds: s.RunningSeconds,
		UnpricedLives:  s.Unpriced, PausedSeconds: s.PausedSeconds, Billed: optional(s.Billed.Sum), BilledAtLeast: optional(s.Billed.AtLeast),
		OwnKey: optional(s.OwnKey.Sum), OwnKeyAtLeast: optional(s.OwnKey.AtLeast), OwnPlace: optional(s.OwnPlace.Sum),
		OwnPlaceAtLeast: optional(s.OwnPlace.AtLeast)}
}
