package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func unconfigured() map[string]plan.Seen {
	return map[string]plan.Seen{"ext.far": {Unconfigured: true,
		Missing: [][]extensions.CredentialField{{{Name: "api_key", Env: "FAR_KEY", Required: true}}}}}
}

// A vendor that nobody configured is not met: not chosen, not refused, not told of.
func TestAnUnconfiguredVendorAddsNoLine(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{mine, mine + "route: { fallback: [ext.far] }\noptions: { ext.far: {} }\n"} {
		cat := world(t, profile)
		for _, create := range []bool{false, true} {
			d, _ := decide(t, cat, ask(t, cat, plan.Request{}), plan.Evidence{At: unconfigured(), Create: create,
				Hosts: []extensions.Host{{Name: "one", SSH: &extensions.SSH{Address: "192.0.2.1", User: "u"}}}})
			shown, err := json.Marshal(map[string]any{"route": d.Route, "estimate": d.Estimate, "notices": d.Notices})
			if err != nil || strings.Contains(string(shown), "ext.far") {
				t.Errorf("create %t: %v: %s", create, err, shown)
			}
			if c := d.Choice.Chosen; c == nil || c.Binding != "ext.near" {
				t.Errorf("create %t: chosen %v: %v", create, c, d.Refused())
			}
		}
	}
}

// A pin is its user's word; what it lacks is told, and refused once it is needed.
func TestAPinnedVendorNeedsNoConfigurationButItsCredentials(t *testing.T) {
	t.Parallel()
	for name, profile := range map[string]string{"pin": mine + "extension: ext.far\n",
		"explicit": mine + "route: { strategy: explicit, fallback: [ext.far] }\n"} {
		cat := world(t, profile)
		d, _ := decide(t, cat, ask(t, cat, plan.Request{}), plan.Evidence{At: map[string]plan.Seen{"ext.far": {Unconfigured: true}}, Create: true})
		if c := d.Choice.Chosen; c == nil || c.Binding != "ext.far" {
			t.Errorf("%s: chosen %v: %v", name, c, d.Refused())
		}
		d, _ = decide(t, cat, ask(t, cat, plan.Request{}), plan.Evidence{At: unconfigured(), Create: true})
		if err := d.Refused(); !extensions.IsKind(err, extensions.KindUnsupported) || !strings.Contains(err.Error(), `credentials["ext.far"].api_key`) {
			t.Errorf("%s: %v", name, err)
		}
		d, _ = decide(t, cat, ask(t, cat, plan.Request{}), plan.Evidence{At: unconfigured()})
		if d.Refused() != nil || len(d.Notices) != 1 || !strings.Contains(d.Notices[0].Detail, "FAR_KEY") {
			t.Errorf("%s: a plan: %v, %+v", name, d.Refused(), d.Notices)
		}
	}
}

func TestAlternativeCredentialsAreAllNamed(t *testing.T) {
	t.Parallel()
	cat := world(t, mine)
	for i := range cat.Bindings {
		if d := &cat.Bindings[i].Descriptor; d.RunsAt(extensions.PlaceAccount) {
			d.Credentials = []extensions.CredentialField{{Name: "oidc", Env: "FAR_OIDC"}, {Name: "token", Env: "FAR_TOKEN"}, {Name: "team"}}
			d.CredentialsAnyOf = [][]string{{"oidc"}, {"token", "team"}}
			_, missing := d.Pick(nil, nil)
			dec, _ := decide(t, cat, ask(t, cat, plan.Request{}), plan.Evidence{At: map[string]plan.Seen{"ext.far": {Missing: missing}}, Create: true})
			err := dec.Refused()
			if err == nil {
				t.Fatal("not refused")
			}
			for _, want := range []string{"it takes oidc, or token with team",
				`credentials["ext.far"].oidc in the provider block or the environment variable FAR_OIDC`,
				`; or set credentials["ext.far"].token`, `and credentials["ext.far"].team in the provider block.`} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in: %v", want, err)
				}
			}
		}
	}
}

func TestOnlyUnconfiguredVendorsSayHowToConfigureOne(t *testing.T) {
	t.Parallel()
	cat := world(t, mine)
	seen := unconfigured()
	cat.Bindings = cat.Bindings[:0:0]
	for _, b := range world(t, mine).Bindings {
		if b.ID == "ext.far" {
			cat.Bindings = append(cat.Bindings, b)
		}
	}
	d, _ := decide(t, cat, ask(t, cat, plan.Request{}), plan.Evidence{At: seen})
	err := d.Refused()
	for _, want := range []string{`credentials["ext.far"]`, "enabled: true"} {
		if !strings.Contains(extensions.RemedyOf(err), want) {
			t.Errorf("%v: no %q in %q", err, want, extensions.RemedyOf(err))
		}
	}
}
