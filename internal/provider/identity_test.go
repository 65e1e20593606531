package provider

import (
	"context"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// server speaks the protocol to a configured provider, for what the oldest
// supported Terraform cannot do.
type server struct {
	t *testing.T
	tfprotov6.ProviderServer
	types map[string]tftypes.Object
}

func (b *bed) server() *server {
	b.t.Helper()
	return b.serverWith(nil)
}

// serverWith has credentials of ext.saas-stub in the provider block.
func (b *bed) serverWith(credentials map[string]tftypes.Value) *server {
	b.t.Helper()
	p := New("test", testExtensions())
	b.t.Cleanup(func() { _ = p.Close() })
	srv := p.server()
	ctx := context.Background()
	schema, err := srv.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil || len(schema.Diagnostics) > 0 {
		b.t.Fatalf("schema: %v %v", err, schema.Diagnostics)
	}
	s := &server{t: b.t.(*testing.T), ProviderServer: srv, types: map[string]tftypes.Object{}}
	for name, r := range schema.ResourceSchemas {
		s.types[name] = r.ValueType().(tftypes.Object)
	}
	cfgType := schema.Provider.ValueType().(tftypes.Object)
	cfg := map[string]tftypes.Value{}
	for name, t := range cfgType.AttributeTypes {
		cfg[name] = tftypes.NewValue(t, nil)
	}
	cfg["state_dir"] = tftypes.NewValue(tftypes.String, b.state)
	cfg["account"] = tftypes.NewValue(tftypes.String, "acme/web")
	cfg["catalog"] = tftypes.NewValue(cfgType.AttributeTypes["catalog"], []tftypes.Value{tftypes.NewValue(tftypes.String, b.catalog)})
	if credentials != nil {
		of := cfgType.AttributeTypes["credentials"].(tftypes.Map)
		cfg["credentials"] = tftypes.NewValue(of, map[string]tftypes.Value{"ext.saas-stub": tftypes.NewValue(of.ElementType, credentials)})
	}
	resp, err := srv.ConfigureProvider(ctx, &tfprotov6.ConfigureProviderRequest{TerraformVersion: "1.12.0",
		Config: dynamic(b.t.(*testing.T), tftypes.NewValue(cfgType, cfg))})
	failed := slices.ContainsFunc(resp.Diagnostics,
		func(d *tfprotov6.Diagnostic) bool { return d.Severity == tfprotov6.DiagnosticSeverityError })
	if err != nil || failed {
		b.t.Fatalf("configure: %v %v", err, resp.Diagnostics)
	}
	return s
}

func dynamic(t *testing.T, v tftypes.Value) *tfprotov6.DynamicValue {
	t.Helper()
	d, err := tfprotov6.NewDynamicValue(v.Type(), v)
	if err != nil {
		t.Fatal(err)
	}
	return &d
}

func (s *server) attribute(resourceType string, state *tfprotov6.DynamicValue, name string) string {
	s.t.Helper()
	v, err := state.Unmarshal(s.types[resourceType])
	if err != nil {
		s.t.Fatal(err)
	}
	attrs := map[string]tftypes.Value{}
	var out string
	if err := v.As(&attrs); err != nil {
		s.t.Fatal(err)
	}
	if err := attrs[name].As(&out); err != nil {
		s.t.Fatal(err)
	}
	return out
}

func TestImportByIdentityFindsTheLiveSandboxOfThatName(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ctx := context.Background()
	made, err := b.engine().Create(ctx, engine.Request{Profile: "profile.stub", Name: "known", TTL: "1h"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := b.server()
	ids, err := s.GetResourceIdentitySchemas(ctx, &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil || ids.IdentitySchemas["sandboxer_sandbox"] == nil {
		t.Fatalf("no identity schema: %v", err)
	}
	idType := ids.IdentitySchemas["sandboxer_sandbox"].ValueType()
	identity := tftypes.NewValue(idType, map[string]tftypes.Value{
		"account": tftypes.NewValue(tftypes.String, "acme/web"), "name": tftypes.NewValue(tftypes.String, "known")})
	imp, err := s.ImportResourceState(ctx, &tfprotov6.ImportResourceStateRequest{TypeName: "sandboxer_sandbox",
		Identity: &tfprotov6.ResourceIdentityData{IdentityData: dynamic(t, identity)}})
	if err != nil || len(imp.Diagnostics) > 0 || len(imp.ImportedResources) != 1 {
		t.Fatalf("import: %v %+v", err, imp.Diagnostics)
	}
	got := imp.ImportedResources[0]
	read, err := s.ReadResource(ctx, &tfprotov6.ReadResourceRequest{TypeName: "sandboxer_sandbox", CurrentState: got.State,
		CurrentIdentity: got.Identity, Private: got.Private})
	if err != nil || len(read.Diagnostics) > 0 {
		t.Fatalf("read: %v %+v", err, read.Diagnostics)
	}
	if id := s.attribute("sandboxer_sandbox", read.NewState, "id"); id != string(made.ID) {
		t.Errorf("imported %s, want %s", id, made.ID)
	}
	back, err := read.NewIdentity.IdentityData.Unmarshal(idType)
	if err != nil || !back.Equal(identity) {
		t.Errorf("identity %s (%v), want %s", back, err, identity)
	}
}

func TestImportByAnUnknownIdentitySaysSo(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	s := b.server()
	ids, err := s.GetResourceIdentitySchemas(context.Background(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		t.Fatal(err)
	}
	identity := tftypes.NewValue(ids.IdentitySchemas["sandboxer_sandbox"].ValueType(), map[string]tftypes.Value{
		"account": tftypes.NewValue(tftypes.String, "acme/web"), "name": tftypes.NewValue(tftypes.String, "nobody")})
	imp, err := s.ImportResourceState(context.Background(), &tfprotov6.ImportResourceStateRequest{TypeName: "sandboxer_sandbox",
		Identity: &tfprotov6.ResourceIdentityData{IdentityData: dynamic(t, identity)}})
	if err != nil || len(imp.Diagnostics) != 1 || imp.Diagnostics[0].Severity != tfprotov6.DiagnosticSeverityError {
		t.Errorf("%v %+v", err, imp.Diagnostics)
	}
}
