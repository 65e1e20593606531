package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

const sandboxType = "sandboxer_sandbox"

// quickServer is the framework's server except for reading and planning an unchanged sandbox. Most sandboxes
// in most plans are unchanged; to find that out, the framework walks all values once per attribute, which was
// most of a plan's cost.
type quickServer struct {
	tfprotov6.ProviderServer
	p *Provider
}

func (p *Provider) server() tfprotov6.ProviderServer {
	return quickServer{providerserver.NewProtocol6(p)(), p}
}

// ReadResource implements tfprotov6.ProviderServer.
func (s quickServer) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	cfg, m, private := s.p.sandbox(ctx, req.TypeName, req.CurrentState, req.Private)
	if cfg == nil {
		return s.ProviderServer.ReadResource(ctx, req)
	}
	rec, diags := m.receipt(ctx, private)
	opCtx, cancel := m.within(ctx, "read")
	defer cancel()
	seen := seen{ctx: opCtx}
	seen.sandbox, seen.err = cfg.engine.Get(opCtx, rec)
	identity, err := identityData(m, req.CurrentIdentity)
	if err != nil || len(diags) > 0 || !seen.unchanged(ctx, m, private) {
		return s.ProviderServer.ReadResource(context.WithValue(ctx, seenKey{}, seen), req)
	}
	cfg.fates.ours(seen.sandbox.ID)
	return &tfprotov6.ReadResourceResponse{NewState: req.CurrentState, Private: req.Private, NewIdentity: identity}, nil
}

// seen is the result of looking at a sandbox, and the context that bounded it.
type seen struct {
	ctx     context.Context
	sandbox engine.Sandbox
	err     error
}

// seenKey is the context key that spares Read a second look.
type seenKey struct{}

// unchanged reports whether a sandbox lives, matches its state and has nothing to report.
func (s seen) unchanged(ctx context.Context, m sandboxModel, private privateKeys) bool {
	if s.err != nil || s.sandbox.State != stateReady || len(s.sandbox.Notices) > 0 {
		return false
	}
	after := m
	after.refresh(s.sandbox)
	diags := after.fill(ctx, s.sandbox)
	receipt, err := receiptText(s.sandbox.Receipt)
	return len(diags) == 0 && err == nil && reflect.DeepEqual(after, m) && bytes.Equal(receipt, private[keyReceipt])
}

var identityType = tftypes.Object{AttributeTypes: map[string]tftypes.Type{"account": tftypes.String, "name": tftypes.String}}

// identityData returns the identity in the state, else that of m.
func identityData(m sandboxModel, had *tfprotov6.ResourceIdentityData) (*tfprotov6.ResourceIdentityData, error) {
	if had != nil {
		return had, nil
	}
	v, err := tfprotov6.NewDynamicValue(identityType, tftypes.NewValue(identityType, map[string]tftypes.Value{
		"account": tftypes.NewValue(tftypes.String, m.Account.ValueString()), "name": tftypes.NewValue(tftypes.String, m.Name.ValueString())}))
	return &tfprotov6.ResourceIdentityData{IdentityData: &v}, err
}

// PlanResourceChange implements tfprotov6.ProviderServer.
func (s quickServer) PlanResourceChange(ctx context.Context,
	req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	if bytes.Equal(req.PriorState.MsgPack, req.ProposedNewState.MsgPack) && !s.p.run().destroys {
		if cfg, m, private := s.p.sandbox(ctx, req.TypeName, req.PriorState, req.PriorPrivate); cfg != nil && m.byDefault() {
			if told, stays := cfg.stays(ctx, m, private); stays {
				return &tfprotov6.PlanResourceChangeResponse{PlannedState: req.PriorState, PlannedPrivate: req.PriorPrivate,
					PlannedIdentity: req.PriorIdentity, Diagnostics: told}, nil
			}
		}
	}
	return s.ProviderServer.PlanResourceChange(ctx, req)
}

// stays plans a sandbox as ModifyPlan does, with a configuration equal to the state. It reports whether the
// sandbox stays as it is, with warnings. Everything else goes to the framework, which asks ModifyPlan again.
func (c *configured) stays(ctx context.Context, m sandboxModel, private privateKeys) ([]*tfprotov6.Diagnostic, bool) {
	var resp resource.ModifyPlanResponse
	plan := planning{r: &sandboxResource{withEngine{c}}, resp: &resp, private: private, config: m, plan: m, state: &m}
	plan.change(ctx)
	if resp.Diagnostics.HasError() || len(resp.RequiresReplace) > 0 || !reflect.DeepEqual(plan.plan, m) {
		return nil, false
	}
	var told []*tfprotov6.Diagnostic
	for _, d := range resp.Diagnostics {
		told = append(told, &tfprotov6.Diagnostic{Severity: tfprotov6.DiagnosticSeverityWarning, Summary: d.Summary(), Detail: d.Detail()})
	}
	return told, true
}

// sandbox reads a state. It returns no configuration for another resource, for a state it cannot read, and
// before the provider block is known.
func (p *Provider) sandbox(ctx context.Context, typeName string, state *tfprotov6.DynamicValue,
	private []byte) (cfg *configured, m sandboxModel, kept privateKeys) {
	cfg = p.now.Load()
	if typeName != sandboxType || cfg == nil || cfg.engine == nil {
		return nil, m, nil
	}
	as := sandboxSchema()
	raw, err := state.Unmarshal(as.Type().TerraformType(ctx))
	if err != nil || raw.IsNull() || json.Unmarshal(private, &kept) != nil {
		return nil, m, nil
	}
	known := tfsdk.State{Raw: raw, Schema: as}
	if diags := known.Get(ctx, &m); diags.HasError() {
		return nil, m, nil
	}
	return cfg, m, kept
}

// byDefault reports whether every argument with a default has it: then it does not matter whether the
// configuration sets them.
func (m sandboxModel) byDefault() bool {
	return m.OnConflict.ValueString() == "error" && m.OnExpiry.ValueString() == "replace" && m.OnUnreachableDestroy.ValueString() == "fail" &&
		!m.DeletionProtection.IsNull() && !m.DeletionProtection.ValueBool()
}

var sandboxSchema = sync.OnceValue(func() schema.Schema {
	var resp resource.SchemaResponse
	(&sandboxResource{}).Schema(context.Background(), resource.SchemaRequest{}, &resp)
	return resp.Schema
})

// privateKeys is private state as the framework writes it.
type privateKeys map[string][]byte

// GetKey implements privateReader.
func (k privateKeys) GetKey(_ context.Context, key string) ([]byte, diag.Diagnostics) {
	return k[key], nil
}
