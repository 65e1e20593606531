package provider

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// noServer fails what is left to the framework.
type noServer struct{ tfprotov6.ProviderServer }

var errLeft = errors.New("this was left to the framework")

func (noServer) PlanResourceChange(context.Context, *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	return nil, errLeft
}

func (noServer) ReadResource(context.Context, *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return nil, errLeft
}

// What answers quickly for a sandbox that did not change answers as the
// framework does, and leaves to it what did change.
func TestAnUnchangedSandboxIsReadAndPlannedAsTheFrameworkWould(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ctx := context.Background()
	made, err := b.engine().Create(ctx, engine.Request{Profile: "profile.stub", Name: "one", TTL: "1h"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := b.server()
	quick := s.ProviderServer.(quickServer)
	whole := quick.ProviderServer
	alone := quickServer{noServer{}, quick.p}
	got, err := s.ImportResourceState(ctx, &tfprotov6.ImportResourceStateRequest{TypeName: sandboxType, ID: string(made.ID)})
	if err != nil || len(got.ImportedResources) != 1 {
		t.Fatalf("%v %+v", err, got)
	}
	first, err := whole.ReadResource(ctx, &tfprotov6.ReadResourceRequest{TypeName: sandboxType, CurrentState: got.ImportedResources[0].State,
		Private: got.ImportedResources[0].Private})
	if err != nil || len(first.Diagnostics) > 0 {
		t.Fatalf("%v %+v", err, first.Diagnostics)
	}
	is := s.types[sandboxType]
	whatIs, err := first.NewState.Unmarshal(is)
	if err != nil {
		t.Fatal(err)
	}
	with := func(change map[string]tftypes.Value) *tfprotov6.DynamicValue {
		attrs := map[string]tftypes.Value{}
		if err := whatIs.As(&attrs); err != nil {
			t.Fatal(err)
		}
		attrs = maps.Clone(attrs) // As shares it
		maps.Copy(attrs, change)
		return dynamic(t, tftypes.NewValue(is, attrs))
	}
	text := func(s string) tftypes.Value { return tftypes.NewValue(tftypes.String, s) }
	config := map[string]tftypes.Value{} // computed ones are null, also those that an argument may set
	for name, a := range sandboxSchema().Attributes {
		if a.IsComputed() {
			config[name] = tftypes.NewValue(is.AttributeTypes[name], nil)
		}
	}
	for name, c := range map[string]struct {
		state map[string]tftypes.Value
		quick bool
	}{
		"unchanged":             {quick: true},
		"another account":       {state: map[string]tftypes.Value{"account": text("acme/api")}, quick: true},
		"expired":               {state: map[string]tftypes.Value{"state": text(stateExpired)}},
		"failed":                {state: map[string]tftypes.Value{"state": text(stateFailed)}},
		"an older version":      {state: map[string]tftypes.Value{"profile_version": text("0.9.0")}},
		"a default given up":    {state: map[string]tftypes.Value{"on_conflict": text("adopt")}},
		"protection given up":   {state: map[string]tftypes.Value{"deletion_protection": tftypes.NewValue(tftypes.Bool, true)}},
		"a profile that is not": {state: map[string]tftypes.Value{"profile": text("profile.none")}, quick: true},
	} {
		state := with(c.state)
		given := maps.Clone(config)
		if p, ok := c.state["profile"]; ok {
			given["profile"] = p
		}
		req := &tfprotov6.PlanResourceChangeRequest{TypeName: sandboxType, PriorState: state, ProposedNewState: state, Config: with(given),
			PriorPrivate: first.Private, PriorIdentity: first.NewIdentity}
		want, err := whole.PlanResourceChange(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		asked := quick
		if c.quick {
			asked = alone
		}
		if plan, err := asked.PlanResourceChange(ctx, req); err != nil || !cmp.Equal(want, plan) {
			t.Errorf("%s, planned: %v\n%s", name, err, cmp.Diff(want, plan))
		}
	}
	read := func(name string, asked quickServer) {
		t.Helper()
		req := &tfprotov6.ReadResourceRequest{TypeName: sandboxType, CurrentState: first.NewState, Private: first.Private,
			CurrentIdentity: first.NewIdentity}
		for _, req.CurrentIdentity = range []*tfprotov6.ResourceIdentityData{first.NewIdentity, nil} {
			want, err := whole.ReadResource(ctx, req)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := asked.ReadResource(ctx, req); err != nil || !cmp.Equal(want, got) {
				t.Errorf("%s, read: %v\n%s", name, err, cmp.Diff(want, got))
			}
		}
	}
	read("unchanged", alone)
	if _, err := b.engine().ExtendTTL(ctx, made.Receipt, 2*time.Hour); err != nil {
		t.Fatal(err)
	}
	read("a later end", quick)
	if _, err := b.engine().Destroy(ctx, made.Receipt, engine.DestroyOptions{}); err != nil {
		t.Fatal(err)
	}
	read("destroyed", quick)
}
