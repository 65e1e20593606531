package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// newer is what Terraform 1.14 calls, without Terraform.
type newer struct {
	*server
	schemas *tfprotov6.GetProviderSchemaResponse
}

func (b *bed) newer() newer {
	b.t.Helper()
	s := b.server()
	schemas, err := s.GetProviderSchema(b.t.(*testing.T).Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		b.t.Fatal(err)
	}
	return newer{s, schemas}
}

// config is a block with these arguments; the others are null.
func (n newer) config(of *tfprotov6.Schema, given map[string]tftypes.Value) *tfprotov6.DynamicValue {
	n.t.Helper()
	is := of.ValueType().(tftypes.Object)
	all := map[string]tftypes.Value{}
	for name, t := range is.AttributeTypes {
		all[name] = tftypes.NewValue(t, nil)
		if v, set := given[name]; set {
			all[name] = v
		}
	}
	return dynamic(n.t, tftypes.NewValue(is, all))
}

// invoke validates, plans and carries out an action as Terraform does. It returns what is shown meanwhile, and the
// errors.
func (n newer) invoke(name string, given map[string]tftypes.Value) (shown []string, failed string) {
	n.t.Helper()
	ctx := n.t.Context()
	config := n.config(n.schemas.ActionSchemas[name].Schema, given)
	srv := n.ProviderServer.(newerServer)
	valid, err := srv.ValidateActionConfig(ctx, &tfprotov6.ValidateActionConfigRequest{ActionType: name, Config: config})
	if err != nil {
		n.t.Fatal(err)
	}
	if failed = told(valid.Diagnostics); failed != "" {
		return nil, failed
	}
	planned, err := srv.PlanAction(ctx, &tfprotov6.PlanActionRequest{ActionType: name, Config: config})
	if err != nil {
		n.t.Fatal(err)
	}
	if failed = told(planned.Diagnostics); failed != "" {
		return nil, failed
	}
	stream, err := srv.InvokeAction(ctx, &tfprotov6.InvokeActionRequest{ActionType: name, Config: config})
	if err != nil {
		n.t.Fatal(err)
	}
	for event := range stream.Events {
		switch e := event.Type.(type) {
		case tfprotov6.ProgressInvokeActionEventType:
			shown = append(shown, e.Message)
		case tfprotov6.CompletedInvokeActionEventType:
			failed += told(e.Diagnostics)
		}
	}
	return shown, failed
}

func told(ds []*tfprotov6.Diagnostic) (text string) {
	for _, d := range ds {
		text += d.Summary + ": " + d.Detail + "\n"
	}
	return text
}

func listOf(s ...string) tftypes.Value {
	var list []tftypes.Value
	for _, w := range s {
		list = append(list, textOf(w))
	}
	return tftypes.NewValue(tftypes.List{ElementType: tftypes.String}, list)
}

func textOf(s string) tftypes.Value { return tftypes.NewValue(tftypes.String, s) }

func TestActionsDoWhatTheySay(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.profile("profile.long", "extends: profile.stub\nttl: { default: 1h, max: 6h }\n")
	made, err := b.engine().Create(context.Background(), engine.Request{Profile: "profile.long", Name: "one", TTL: "1h"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	n, id := b.newer(), textOf(string(made.ID))
	secret := tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, map[string]tftypes.Value{"S": textOf("file://" + b.write("token", "hush-hush"))})
	if shown, failed := n.invoke("sandboxer_exec", map[string]tftypes.Value{"sandbox_id": id, "secret_refs": secret,
		"shell": textOf("echo one; echo $S; echo two >&2")}); failed != "" || !slices.Contains(shown, "one") || !slices.Contains(shown, "two") ||
		strings.Contains(strings.Join(shown, " "), "hush") || len(shown) != 3 {
		t.Errorf("exec: %q %s", shown, failed)
	}
	failing := listOf("sh", "-c", "echo why; exit 4")
	if _, failed := n.invoke("sandboxer_exec", map[string]tftypes.Value{"sandbox_id": id, "command": failing}); !says(failed,
		"exit code 4", "why") {
		t.Errorf("exec: %s", failed)
	}
	if _, failed := n.invoke("sandboxer_exec", map[string]tftypes.Value{"sandbox_id": id}); !says(failed, "nothing to run") {
		t.Errorf("exec: %s", failed)
	}
	shown, failed := n.invoke("sandboxer_extend", map[string]tftypes.Value{"sandbox_id": id, "ttl": textOf("3h")})
	if now, err := b.engine().Get(context.Background(), made.Receipt); failed != "" || err != nil || len(shown) != 1 ||
		now.ExpiresAt.Sub(made.CreatedAt).Hours() < 2.9 || !strings.Contains(shown[0], stamp(now.ExpiresAt).ValueString()) {
		t.Errorf("extend: %q %s %v", shown, failed, now.ExpiresAt)
	}
	if _, failed := n.invoke("sandboxer_extend", map[string]tftypes.Value{"sandbox_id": id, "ttl": textOf("9h")}); !says(failed, "was not extended") {
		t.Errorf("beyond the maximum: %q", failed)
	}
	shown, failed = n.invoke("sandboxer_snapshot", map[string]tftypes.Value{"sandbox_id": id, "name": textOf("kept")})
	all, err := b.engine().Snapshots(context.Background(), false)
	if failed != "" || err != nil || len(all) != 1 || all[0].Name != "kept" || !strings.Contains(strings.Join(shown, ""), all[0].ID) {
		t.Errorf("snapshot: %q %s %v %+v", shown, failed, err, all)
	}
	for _, s := range all {
		if _, err := b.engine().DeleteSnapshot(context.Background(), s, false); err != nil {
			t.Error(err)
		}
	}
	if _, failed := n.invoke("sandboxer_snapshot", map[string]tftypes.Value{"sandbox_id": textOf("sbx-aaaaaaaaaaaaaaaaaaaa")}); !says(failed,
		"No snapshot") {
		t.Errorf("of nothing: %q", failed)
	}
}

// query lists as `terraform query` does.
func (n newer) query(given map[string]tftypes.Value, limit int64) (results []tfprotov6.ListResourceResult) {
	n.t.Helper()
	stream, err := n.ProviderServer.(newerServer).ListResource(n.t.Context(), &tfprotov6.ListResourceRequest{
		TypeName: sandboxType, Config: n.config(n.schemas.ListResourceSchemas[sandboxType], given), IncludeResource: true, Limit: limit})
	if err != nil {
		n.t.Fatal(err)
	}
	return slices.Collect(stream.Results)
}

// What a query finds can be imported by the identity that it gives.
func TestAQueryFindsWhatRunsAndWhatIsUnknown(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ctx := context.Background()
	if got := b.newer().query(nil, 100); len(got) > 0 {
		t.Errorf("without a ledger: %+v", got)
	}
	for i := range 3 {
		if _, err := b.engine().Create(ctx, engine.Request{Profile: "profile.stub", Name: fmt.Sprint("n", i), TTL: "1h",
			Consumer: engine.Consumer{RunID: fmt.Sprint("r", i%2)}}, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	n := b.newer()
	if got := n.query(nil, 2); len(got) != 2 {
		t.Errorf("%d of at most 2", len(got))
	}
	got := n.query(map[string]tftypes.Value{"run_id": textOf("r1")}, 100)
	if len(got) != 1 || told(got[0].Diagnostics) != "" || !strings.HasPrefix(got[0].DisplayName, "n1 (sbx-") {
		t.Fatalf("by run: %+v", got)
	}
	imported, err := n.ImportResourceState(ctx, &tfprotov6.ImportResourceStateRequest{TypeName: sandboxType, Identity: got[0].Identity})
	if err != nil || told(imported.Diagnostics) != "" || len(imported.ImportedResources) != 1 {
		t.Fatalf("import: %v %+v", err, imported)
	}
	for _, name := range []string{"id", "name", "ttl", "state", "profile"} {
		if a, b := n.attribute(sandboxType, got[0].Resource, name), n.attribute(sandboxType, imported.ImportedResources[0].State, name); a != b || a == "" {
			t.Errorf("%s is listed as %q and imported as %q", name, a, b)
		}
	}
	// One that only the vendor knows.
	other := b.elsewhere()
	if _, err := other.engine().Create(ctx, engine.Request{Profile: "profile.stub", Name: "theirs", TTL: "1h"}, nil, nil); err != nil {
		t.Fatal(err)
	}
	theirs := other.only()
	all := n.query(map[string]tftypes.Value{"unknown": tftypes.NewValue(tftypes.Bool, true)}, 100)
	if len(all) != 4 || !says(told(all[3].Diagnostics), "1 sandboxes are unknown", string(theirs.ID)) {
		t.Errorf("unknown: %+v", all)
	}
	b.script(vendor.Rule{Op: vendor.OpList, Do: vendor.DoUnreachable})
	if got := n.query(nil, 100); len(got) != 3 || told(got[0].Diagnostics) != "" {
		t.Errorf("it asks a place, unasked: %+v", got)
	}
	b.script()
}
