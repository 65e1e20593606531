package extensions_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// either takes one token, or three values together, and a proxy's password on top.
func either() extensions.Descriptor {
	return extensions.Descriptor{
		Credentials:      []extensions.CredentialField{{Name: "oidc"}, {Name: "token"}, {Name: "team"}, {Name: "project"}, {Name: "proxy"}},
		CredentialsAnyOf: [][]string{{"oidc"}, {"token", "team", "project"}},
	}
}

func values(names string) map[string]extensions.Secret {
	out := map[string]extensions.Secret{}
	for _, n := range strings.Fields(names) {
		out[n] = extensions.NewSecret(n)
	}
	return out
}

func TestOneWholeSetOfCredentialsIsPicked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ given, usual, use, missing string }{
		"one is enough":               {"oidc", "", "oidc", ""},
		"or the three":                {"token team project", "", "project team token", ""},
		"what belongs to no set":      {"oidc proxy", "", "oidc proxy", ""},
		"the environment's":           {"", "oidc", "oidc", ""},
		"the first of two":            {"", "oidc token team project", "oidc", ""},
		"completed by it":             {"token", "team project", "project team token", ""},
		"never one identity's half":   {"token team project", "oidc", "project team token", ""},
		"nor instead of it":           {"token", "oidc", "", "team,project"},
		"nothing":                     {"", "", "", "oidc|token,team,project"},
		"a part":                      {"", "team", "", "oidc|token,project"},
		"mixed by their user":         {"oidc token team project", "", "", "oidc|token,team,project"},
		"nothing but what is besides": {"proxy", "", "proxy", "oidc|token,team,project"},
	} {
		use, missing := either().Pick(values(c.given), values(c.usual))
		var ways []string
		for _, way := range missing {
			var names []string
			for _, f := range way {
				names = append(names, f.Name)
			}
			ways = append(ways, strings.Join(names, ","))
		}
		if got := strings.Join(slices.Sorted(maps.Keys(use)), " "); got != c.use || strings.Join(ways, "|") != c.missing {
			t.Errorf("%s: use %q, want %q; missing %q, want %q", name, got, c.use, strings.Join(ways, "|"), c.missing)
		}
	}
	if use, missing := (extensions.Descriptor{}).Pick(nil, nil); len(use)+len(missing) != 0 {
		t.Errorf("without any: %v, %v", use, missing)
	}
	d := extensions.Descriptor{Credentials: []extensions.CredentialField{{Name: "a", Required: true}, {Name: "b", Required: true}}}
	if _, missing := d.Pick(values("a"), nil); len(missing) != 1 || len(missing[0]) != 1 || missing[0][0].Name != "b" {
		t.Errorf("required ones: %v", missing)
	}
	if got := either().Alternatives(); got != "oidc, or token with team and project" {
		t.Errorf("they are called %q", got)
	}
}
