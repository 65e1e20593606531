package provider

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

var update = flag.Bool("update", false, "write tools/newer-schemas.json")

// newerSchemas has what Terraform before 1.14 leaves out of `terraform providers schema -json`, in the same form: the
// pages of the documentation are made from both.
const newerSchemas = "../../tools/newer-schemas.json"

func TestTheSchemasForNewerTerraformAreWrittenDown(t *testing.T) {
	t.Parallel()
	all, err := New("test", testExtensions()).server().GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	actions, lists := map[string]any{}, map[string]any{}
	for name, a := range all.ActionSchemas {
		actions[name] = schemaJSON(t, a.Schema)
	}
	for name, s := range all.ListResourceSchemas {
		lists[name] = schemaJSON(t, s)
	}
	if len(actions) != 3 || len(lists) != 1 {
		t.Fatalf("actions %v, lists %v", actions, lists)
	}
	want, err := json.MarshalIndent(map[string]any{"action_schemas": actions, "list_resource_schemas": lists}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(newerSchemas, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(newerSchemas); err != nil || !bytes.Equal(have, want) {
		t.Errorf("%s is out of date (%v): run `go test ./internal/provider -run %s -update`, then `make generate`", newerSchemas, err, t.Name())
	}
}

// schemaJSON shows a schema as Terraform does.
func schemaJSON(t *testing.T, s *tfprotov6.Schema) map[string]any {
	t.Helper()
	attrs := map[string]any{}
	for _, a := range s.Block.Attributes {
		typ, err := a.Type.MarshalJSON() //nolint:staticcheck // the form of the protocol, which Terraform prints
		if err != nil {
			t.Fatal(err)
		}
		shown := map[string]any{"type": json.RawMessage(typ), "description": a.Description, "description_kind": "markdown"}
		for name, set := range map[string]bool{"required": a.Required, "optional": a.Optional, "computed": a.Computed,
			"sensitive": a.Sensitive, "write_only": a.WriteOnly} {
			if set {
				shown[name] = true
			}
		}
		attrs[a.Name] = shown
	}
	return map[string]any{"version": s.Version, "block": map[string]any{"attributes": attrs, "description": s.Block.Description,
		"description_kind": "markdown"}}
}

// An older Terraform cannot read these examples: what they set is held against the schemas.
func TestTheExamplesForNewerTerraformSetWhatExists(t *testing.T) {
	t.Parallel()
	all, err := New("test", testExtensions()).server().GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	actions := map[string]*tfprotov6.Schema{}
	for name, a := range all.ActionSchemas {
		actions[name] = a.Schema
	}
	for _, of := range []struct {
		folder, block string
		schemas       map[string]*tfprotov6.Schema
	}{
		{"actions", "action", actions}, {"list-resources", "list", all.ListResourceSchemas},
		{"ephemeral-resources", "ephemeral", all.EphemeralResourceSchemas},
	} {
		for name, schema := range of.schemas {
			files, err := filepath.Glob(filepath.Join(examples, of.folder, name, "*"))
			if err != nil || len(files) != 1 {
				t.Errorf("examples/%s/%s has %v (%v)", of.folder, name, files, err)
				continue
			}
			src, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			f, diags := hclsyntax.ParseConfig(src, files[0], hcl.InitialPos)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			set := settings(f.Body.(*hclsyntax.Body), of.block, name)
			if len(set) == 0 {
				t.Errorf("%s: nothing is set in a block %s %q", files[0], of.block, name)
			}
			for _, s := range set {
				if !slices.ContainsFunc(schema.Block.Attributes, func(a *tfprotov6.SchemaAttribute) bool { return a.Name == s }) {
					t.Errorf("%s sets %s, which %s %s does not have", files[0], s, of.block, name)
				}
			}
		}
	}
}

// settings returns the arguments of the block of a kind and a type, those in its `config` if it has one.
func settings(body *hclsyntax.Body, kind, name string) (set []string) {
	for _, b := range body.Blocks {
		if b.Type != kind || b.Labels[0] != name {
			continue
		}
		at := b.Body
		for _, inner := range at.Blocks {
			if inner.Type == "config" {
				at = inner.Body
			}
		}
		for arg := range at.Attributes {
			set = append(set, arg)
		}
	}
	return set
}
