package engine_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// rented is the stub as a vendor that anybody may be routed to, with a key that it needs.
type rented struct{ extensions.Extension }

func (x rented) Describe() extensions.Descriptor {
	d := x.Extension.Describe()
	d.Handler, d.NamedOnly = "rented", false
	d.Credentials = []extensions.CredentialField{{Name: "api_key", Env: "SANDBOXER_TEST_RENTED_KEY", Required: true, Doc: "The key."}}
	return d
}

// A key in the environment alone never makes a profile spend that does not name the vendor.
func TestAVendorTakesPartOnlyWhenConfigured(t *testing.T) {
	t.Setenv("SANDBOXER_TEST_RENTED_KEY", "of-the-environment")
	key := func(s string) map[string]map[string]engine.Secret {
		return map[string]map[string]engine.Secret{"ext.rented": {"api_key": extensions.NewSecret(s)}}
	}
	for name, c := range map[string]struct {
		binding     string
		credentials map[string]map[string]engine.Secret
		pinned      bool
		takes       bool
	}{
		"the environment alone":        {},
		"a key of the provider block":  {credentials: key("of-the-user"), takes: true},
		"an empty key":                 {credentials: key("")},
		"an entry, key by environment": {credentials: map[string]map[string]engine.Secret{"ext.rented": {}}, takes: true},
		"enabled":                      {binding: "enabled: true\n", takes: true},
		"disabled, with a key":         {binding: "enabled: false\n", credentials: key("of-the-user")},
		"pinned":                       {pinned: true, takes: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			rentals := filepath.Join(dir, "rented")
			profile := "id: profile.p\nversion: \"1.0.0\"\n" + common
			if c.pinned {
				profile += "extension: ext.rented\n"
			}
			e, err := engine.New(engine.Options{Extensions: []extensions.Extension{rented{saasstub.New()}}, StateDir: dir, Account: "acme/web",
				Credentials: c.credentials, Catalog: []string{folder(t, map[string]string{
					"extensions/ext.rented.yaml": "id: ext.rented\ntitle: R\nhandler: rented\nconfig: { dir: \"" + rentals + "\" }\n" + c.binding,
					"profiles/profile.p.yaml":    profile,
				})}})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			ctx := t.Context()
			_, planned := e.Plan(ctx, engine.Request{Profile: "profile.p", Name: "one"})
			s, made := e.Create(ctx, engine.Request{Profile: "profile.p", Name: "one"}, nil, nil)
			objs, err := vendor.At(rentals).Objects()
			if err != nil {
				t.Fatal(err)
			}
			if c.takes != (planned == nil) || c.takes != (made == nil) || c.takes != (len(objs) == 1) {
				t.Fatalf("plan %v, create %v, %d made", planned, made, len(objs))
			}
			if c.takes {
				if _, err := e.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil {
					t.Error(err)
				}
			} else if !strings.Contains(extensions.RemedyOf(made), `credentials["ext.rented"]`) {
				t.Errorf("no word of how to configure it: %v (%s)", made, extensions.RemedyOf(made))
			}
		})
	}
}
