package provider

import (
	"context"
	"fmt"
	"math/big"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

type sandboxModel struct {
	Profile          types.String  `tfsdk:"profile"`
	Name             types.String  `tfsdk:"name"`
	NamePrefix       types.String  `tfsdk:"name_prefix"`
	Hosts            types.List    `tfsdk:"hosts"`
	Inputs           types.Dynamic `tfsdk:"inputs"`
	Env              types.Map     `tfsdk:"env"`
	SecretsWO        types.Map     `tfsdk:"secrets_wo"`
	SecretsWOVersion types.Number  `tfsdk:"secrets_wo_version"`
	Scope            types.String  `tfsdk:"scope"`
	ShareKey         types.String  `tfsdk:"share_key"`
	Image            types.String  `tfsdk:"image"`
	Resources        types.Object  `tfsdk:"resources"`
	Triggers         types.Map     `tfsdk:"triggers"`
	FromSnapshot     types.String  `tfsdk:"from_snapshot"`
	FromSandbox      types.String  `tfsdk:"from_sandbox"`

	TTL                  types.String `tfsdk:"ttl"`
	DesiredMode          types.String `tfsdk:"desired_mode"`
	ReplaceMode          types.String `tfsdk:"replace_mode"`
	OnConflict           types.String `tfsdk:"on_conflict"`
	OnExpiry             types.String `tfsdk:"on_expiry"`
	OnUnreachableDestroy types.String `tfsdk:"on_unreachable_destroy"`
	Billing              types.String `tfsdk:"billing"`
	MaxCost              types.String `tfsdk:"max_cost"`
	DeletionProtection   types.Bool   `tfsdk:"deletion_protection"`
	Consumer             types.Object `tfsdk:"consumer"`
	Timeouts             types.Object `tfsdk:"timeouts"`

	ID             types.String `tfsdk:"id"`
	Account        types.String `tfsdk:"account"`
	ProfileVersion types.String `tfsdk:"profile_version"`
	State          types.String `tfsdk:"state"`
	Extension      types.String `tfsdk:"extension"`
	Host           types.String `tfsdk:"host"`
	Handle         types.String `tfsdk:"handle"`
	CreatedAt      types.String `tfsdk:"created_at"`
	ExpiresAt      types.String `tfsdk:"expires_at"`
	Expiry         types.String `tfsdk:"expiry"`
	Reachability   types.Object `tfsdk:"reachability"`
	Estimate       types.Object `tfsdk:"estimate"`
	Route          types.Object `tfsdk:"route"`
}

var consumerTypes = map[string]attr.Type{
	"actor": types.StringType, "harness": types.StringType, "run_id": types.StringType, "session_id": types.StringType,
	"job_id": types.StringType,
}

type consumerModel struct {
	Actor     types.String `tfsdk:"actor"`
	Harness   types.String `tfsdk:"harness"`
	RunID     types.String `tfsdk:"run_id"`
	SessionID types.String `tfsdk:"session_id"`
	JobID     types.String `tfsdk:"job_id"`
}

var timeoutTypes = map[string]attr.Type{"create": types.StringType, "read": types.StringType, "update": types.StringType,
	"delete": types.StringType}

var (
	resourceTypes = map[string]attr.Type{"cpu": types.NumberType, "memory_mb": types.NumberType, "disk_mb": types.NumberType,
		"pids": types.NumberType, "gpu": types.ObjectType{AttrTypes: gpuTypes}}
	gpuTypes = map[string]attr.Type{"model": types.StringType, "count": types.NumberType}
)

// sizes returns the limits that replace the profile's; nil for none.
func (m sandboxModel) sizes() *engine.Sizes {
	if m.Resources.IsNull() || m.Resources.IsUnknown() {
		return nil
	}
	n := func(name string) types.Number {
		v, _ := m.Resources.Attributes()[name].(types.Number)
		return v
	}
	s := engine.Sizes{MemoryMB: int64Of(n("memory_mb")), DiskMB: int64Of(n("disk_mb")), Pids: int64Of(n("pids"))}
	if cpu := n("cpu"); !cpu.IsNull() && !cpu.IsUnknown() {
		s.CPU = cpu.ValueBigFloat().Text('f', -1)
	}
	if gpu, ok := m.Resources.Attributes()["gpu"].(types.Object); ok {
		model, _ := gpu.Attributes()["model"].(types.String)
		count, _ := gpu.Attributes()["count"].(types.Number)
		s.GPU = extensions.GPU{Model: model.ValueString(), Count: int64Of(count)}
	}
	return &s
}

func sizesValue(s *engine.Sizes) (types.Object, diag.Diagnostics) {
	if s == nil {
		return types.ObjectNull(resourceTypes), nil
	}
	cpu := types.NumberNull()
	if f, _, err := big.ParseFloat(s.CPU, 10, 512, big.ToNearestEven); s.CPU != "" && err == nil {
		cpu = types.NumberValue(f)
	}
	gpu := types.ObjectNull(gpuTypes)
	if s.GPU != (extensions.GPU{}) {
		var diags diag.Diagnostics
		gpu, diags = types.ObjectValue(gpuTypes, map[string]attr.Value{"model": optional(s.GPU.Model), "count": optionalInt(s.GPU.Count)})
		if diags.HasError() {
			return types.ObjectNull(resourceTypes), diags
		}
	}
	return types.ObjectValue(resourceTypes, map[string]attr.Value{"cpu": cpu, "memory_mb": optionalInt(s.MemoryMB),
		"disk_mb": optionalInt(s.DiskMB), "pids": optionalInt(s.Pids), "gpu": gpu})
}

var keepUnknown = basetypes.ObjectAsOptions{UnhandledNullAsEmpty: true, UnhandledUnknownAsEmpty: true}

// request maps the arguments and omits unknown ones; a caller in a plan checks decides first.
func (m sandboxModel) request(ctx context.Context) (engine.Request, diag.Diagnostics) {
	req := engine.Request{
		Profile: m.Profile.ValueString(), Name: m.Name.ValueString(), NamePrefix: m.NamePrefix.ValueString(),
		TTL: m.TTL.ValueString(), Scope: m.Scope.ValueString(), ShareKey: m.ShareKey.ValueString(), Billing: m.Billing.ValueString(),
		SecretsVersion: int64Of(m.SecretsWOVersion),
		MaxCost:        m.MaxCost.ValueString(), OnConflict: m.OnConflict.ValueString(), OnExpiry: m.OnExpiry.ValueString(),
		OnUnreachableDestroy: m.OnUnreachableDestroy.ValueString(), FromSnapshot: m.FromSnapshot.ValueString(),
		FromSandbox: m.FromSandbox.ValueString(), Image: m.Image.ValueString(), Resources: m.sizes(),
		DesiredMode: m.DesiredMode.ValueString(), ReplaceMode: m.ReplaceMode.ValueString(), DeletionProtection: m.DeletionProtection.ValueBool(),
	}
	if !m.NamePrefix.IsNull() {
		req.Name = "" // the name in the plan or state is the generated one
	}
	var diags, ds diag.Diagnostics
	req.Env, ds = stringMap(ctx, m.Env)
	diags.Append(ds...)
	req.Triggers, ds = stringMap(ctx, m.Triggers)
	diags.Append(ds...)
	var hosts []types.String
	if !m.Hosts.IsNull() && !m.Hosts.IsUnknown() {
		diags.Append(m.Hosts.ElementsAs(ctx, &hosts, false)...)
	}
	for _, h := range hosts {
		if h.ValueString() != "" {
			req.Hosts = append(req.Hosts, h.ValueString())
		}
	}
	if fullyKnown(ctx, m.Inputs) {
		inputs, err := inputsOf(m.Inputs)
		if err != nil {
			diags.AddAttributeError(path.Root("inputs"), "Invalid inputs", sentence(err.Error()))
		}
		req.Inputs = inputs
	}
	var c consumerModel
	if !m.Consumer.IsNull() && !m.Consumer.IsUnknown() {
		diags.Append(m.Consumer.As(ctx, &c, keepUnknown)...)
	}
	req.Consumer = engine.Consumer{Actor: c.Actor.ValueString(), Harness: c.Harness.ValueString(), RunID: c.RunID.ValueString(),
		SessionID: c.SessionID.ValueString(), JobID: c.JobID.ValueString()}
	req.Timeouts = m.timeouts()
	return req, diags
}

func (m sandboxModel) timeouts() map[string]string {
	out := map[string]string{}
	for k, v := range m.Timeouts.Attributes() {
		if s, ok := v.(types.String); ok && s.ValueString() != "" {
			out[k] = s.ValueString()
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// decides reports whether every argument that affects place and price is known.
func (m sandboxModel) decides(ctx context.Context) bool {
	values := []attr.Value{m.Profile, m.TTL, m.Hosts, m.Inputs, m.FromSnapshot, m.FromSandbox, m.DesiredMode, m.Billing,
		m.Scope, m.ShareKey, m.Extension, m.Image, m.Resources}
	if !m.FromSandbox.IsNull() {
		values = append(values, m.Env) // a fork has its source's
	}
	for _, v := range values {
		if !fullyKnown(ctx, v) {
			return false
		}
	}
	return true
}

// restore fills the arguments from the ledger's copy of the request: all an import can know without
// configuration.
func (m *sandboxModel) restore(ctx context.Context, req engine.Request) (diags diag.Diagnostics) {
	m.Profile, m.NamePrefix, m.TTL = optional(req.Profile), optional(req.NamePrefix), optional(req.TTL)
	m.Scope, m.MaxCost, m.DesiredMode = optional(req.Scope), optional(req.MaxCost), optional(req.DesiredMode)
	m.ShareKey, m.ReplaceMode, m.Image = optional(req.ShareKey), optional(req.ReplaceMode), optional(req.Image)
	m.FromSnapshot, m.FromSandbox = optional(req.FromSnapshot), optional(req.FromSandbox)
	m.OnConflict, m.OnExpiry = withDefault(req.OnConflict, "error"), withDefault(req.OnExpiry, "replace")
	m.OnUnreachableDestroy, m.Billing = withDefault(req.OnUnreachableDestroy, "fail"), optional(req.Billing)
	m.DeletionProtection = types.BoolValue(req.DeletionProtection)
	m.SecretsWO, m.SecretsWOVersion = types.MapNull(types.StringType), optionalInt(req.SecretsVersion)
	var ds diag.Diagnostics
	m.Resources, ds = sizesValue(req.Resources)
	diags.Append(ds...)
	m.Env, ds = mapValue(ctx, req.Env)
	diags.Append(ds...)
	m.Triggers, ds = mapValue(ctx, req.Triggers)
	diags.Append(ds...)
	m.Hosts, ds = listValue(ctx, req.Hosts)
	diags.Append(ds...)
	var err error
	if m.Inputs, err = inputsValue(req.Inputs); err != nil {
		diags.AddAttributeError(path.Root("inputs"), "Inputs could not be restored", sentence(err.Error()))
	}
	m.Consumer = types.ObjectNull(consumerTypes)
	if c := req.Consumer; c != (engine.Consumer{}) {
		m.Consumer, ds = types.ObjectValueFrom(ctx, consumerTypes, consumerModel{Actor: optional(c.Actor), Harness: optional(c.Harness),
			RunID: optional(c.RunID), SessionID: optional(c.SessionID), JobID: optional(c.JobID)})
		diags.Append(ds...)
	}
	m.Timeouts = types.ObjectNull(timeoutTypes)
	if len(req.Timeouts) > 0 {
		vals := map[string]attr.Value{}
		for k := range timeoutTypes {
			vals[k] = optional(req.Timeouts[k])
		}
		m.Timeouts, ds = types.ObjectValue(timeoutTypes, vals)
		diags.Append(ds...)
	}
	return diags
}

func withDefault(s, def string) types.String {
	if s == "" {
		s = def
	}
	return types.StringValue(s)
}

// fill sets every computed attribute that is still unknown from the engine's answer. Planned values stay as
// planned.
func (m *sandboxModel) fill(ctx context.Context, sb engine.Sandbox) (diags diag.Diagnostics) {
	for _, f := range []struct {
		to *types.String
		v  types.String
	}{
		{&m.Name, optional(sb.Name)}, {&m.Scope, optional(sb.Request.Scope)}, {&m.ID, optional(string(sb.ID))},
		{&m.Account, optional(sb.Account)}, {&m.ProfileVersion, optional(sb.Version)}, {&m.State, optional(sb.State)},
		{&m.Extension, optional(sb.Extension)}, {&m.Host, optional(sb.Host)}, {&m.Handle, handleValue(sb.Handle, string(sb.ID))},
		{&m.CreatedAt, stamp(sb.CreatedAt)}, {&m.ExpiresAt, stamp(sb.ExpiresAt)}, {&m.Expiry, optional(sb.Expiry)},
	} {
		if f.to.IsUnknown() {
			*f.to = f.v
		}
	}
	for _, f := range []struct {
		to   *types.Object
		make func() (types.Object, diag.Diagnostics)
	}{
		{&m.Reachability, func() (types.Object, diag.Diagnostics) { return reachabilityValue(ctx, sb.Reach) }},
		{&m.Estimate, func() (types.Object, diag.Diagnostics) { return estimateOrNull(ctx, sb.Estimate) }},
		{&m.Route, func() (types.Object, diag.Diagnostics) { return routeValue(ctx, sb.Route) }},
	} {
		if f.to.IsUnknown() {
			v, ds := f.make()
			diags.Append(ds...)
			*f.to = v
		}
	}
	return diags
}

// refresh makes unknown what sb reports anew, so that fill takes it; what sb does not know stays. keep holds
// what only a create or import knows.
func (m *sandboxModel) refresh(sb engine.Sandbox) {
	u := types.StringUnknown()
	m.State, m.Reachability = u, types.ObjectUnknown(attrTypes(reachabilityFields))
	for _, f := range []struct {
		to   *types.String
		have bool
	}{
		{&m.Extension, sb.Extension != ""}, {&m.Host, sb.Host != ""}, {&m.Handle, sb.Handle != ""}, {&m.Expiry, sb.Expiry != ""},
		{&m.CreatedAt, !sb.CreatedAt.IsZero()}, {&m.ExpiresAt, !sb.ExpiresAt.IsZero()},
		{&m.Name, m.Name.IsNull()}, {&m.Account, m.Account.IsNull()}, {&m.ProfileVersion, m.ProfileVersion.IsNull()},
	} {
		if f.have {
			*f.to = u
		}
	}
	if m.Estimate.IsNull() && sb.Estimate.CatalogDigest != "" {
		m.Estimate = estimateUnknown()
	}
	if m.Route.IsNull() && sb.Route.Chosen != "" {
		m.Route = types.ObjectUnknown(attrTypes(routeFields))
	}
	if !m.DesiredMode.IsNull() && sb.Mode != "" {
		m.DesiredMode = types.StringValue(sb.Mode)
	}
}

// label names the sandbox in messages.
func (m sandboxModel) label() string {
	if n := m.Name.ValueString(); n != "" && n != m.ID.ValueString() {
		return fmt.Sprintf("%q (%s)", n, m.ID.ValueString())
	}
	return m.ID.ValueString()
}
