package provider

import (
	"context"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Whatever is typed after `terraform import ADDR` is answered in our own words,
// with the form that is expected.
func TestEveryWrongImportIsToldInOurOwnWords(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	s := b.server()
	ids, err := s.GetResourceIdentitySchemas(context.Background(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, req *tfprotov6.ImportResourceStateRequest, want ...string) {
		t.Helper()
		imp, err := s.ImportResourceState(context.Background(), req)
		if err != nil || len(imp.Diagnostics) != 1 || imp.Diagnostics[0].Severity != tfprotov6.DiagnosticSeverityError {
			t.Errorf("%s %s: %v %+v", req.TypeName, what, err, imp.Diagnostics)
			return
		}
		told := imp.Diagnostics[0].Summary + "\n" + imp.Diagnostics[0].Detail
		for _, part := range append(want, "What to do: ") {
			if !strings.Contains(told, part) {
				t.Errorf("%s %s does not say %q:\n%s", req.TypeName, what, part, told)
			}
		}
		for _, wrong := range []string{"provider developer", "%!", "null value"} {
			if strings.Contains(told, wrong) {
				t.Errorf("%s %s says %q:\n%s", req.TypeName, what, wrong, told)
			}
		}
	}
	for id, want := range map[string]string{"": "is empty", "  ": "is empty", "x": "This is not a sandbox",
		" sbx-aaaaaaaaaaaaaaaaaaaa": "This is not a sandbox", "acme/one": "not an org/workspace/name",
		"acme/web/": "not an org/workspace/name", "/web/one": "not an org/workspace/name", "a/b/c/d": "not an org/workspace/name",
		"acme/web/a\nb": "not an org/workspace/name", "/": "not an org/workspace/name",
		"snp-aaaaaaaaaaaaaaaaaaaa": "This is not a sandbox", "sbx-aaaaaaaaaaaaaaaaaaaa": "cannot be imported",
		"acme/web/nobody": "cannot be imported"} {
		refused(id, &tfprotov6.ImportResourceStateRequest{TypeName: "sandboxer_sandbox", ID: id}, want)
	}
	for id, want := range map[string]string{"": "is empty", " ": "is empty", "a\nb": "This is not a host", "-x": "This is not a host",
		"nowhere": "cannot be imported"} {
		refused(id, &tfprotov6.ImportResourceStateRequest{TypeName: "sandboxer_host", ID: id}, want)
	}
	for id, want := range map[string]string{"": "is empty", " ": "is empty", "x": "This is not a snapshot",
		"sbx-aaaaaaaaaaaaaaaaaaaa": "This is not a snapshot", "snp-aaaaaaaaaaaaaaaaaaaa": "cannot be imported"} {
		refused(id, &tfprotov6.ImportResourceStateRequest{TypeName: "sandboxer_snapshot", ID: id}, want)
	}
	for _, who := range [][2]string{{"", ""}, {"acme/web", ""}, {"acme", "one"}, {"acme/web", "a b"}, {"acme/web/x", "one"}} {
		identity := tftypes.NewValue(ids.IdentitySchemas["sandboxer_sandbox"].ValueType(), map[string]tftypes.Value{
			"account": tftypes.NewValue(tftypes.String, who[0]), "name": tftypes.NewValue(tftypes.String, who[1])})
		refused(who[0]+" "+who[1], &tfprotov6.ImportResourceStateRequest{TypeName: "sandboxer_sandbox",
			Identity: &tfprotov6.ResourceIdentityData{IdentityData: dynamic(t, identity)}}, "not an org/workspace/name")
	}
}
