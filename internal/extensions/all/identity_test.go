package all_test

import (
	"encoding/base64"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/all"
)

// Whoever comes in, by a token that lasts for hours or by a new one, sees what its organization, project or workspace has. Where
// nothing names that, an extension does not say that it does.
func TestAnIdentityOutlivesItsToken(t *testing.T) {
	t.Parallel()
	login := func(values map[string]any, pairs ...string) extensions.Config {
		cfg := extensions.Config{Values: values, Credentials: map[string]extensions.Secret{}}
		for i := 0; i < len(pairs); i += 2 {
			cfg.Credentials[pairs[i]] = extensions.NewSecret(pairs[i+1])
		}
		return cfg
	}
	oidc := func(project, at string) extensions.Config {
		claims := `{"owner_id":"team_one","project_id":"` + project + `","iat":` + at + `}`
		return login(nil, "oidc_token", "e30."+base64.RawURLEncoding.EncodeToString([]byte(claims))+".c2ln")
	}
	at := func(address, workspace string) map[string]any {
		return map[string]any{"address": address, "workspace": workspace}
	}
	cases := map[string]struct{ same, others []extensions.Config }{
		"vercel": {[]extensions.Config{oidc("prj_one", "1"), oidc("prj_one", "2"),
			login(nil, "token", "t", "team_id", "team_one", "project_id", "prj_one")},
			[]extensions.Config{oidc("prj_two", "1"), login(nil)}},
		"daytona": {[]extensions.Config{login(nil, "jwt_token", "1", "organization_id", "o"),
			login(nil, "jwt_token", "2", "organization_id", "o")},
			[]extensions.Config{login(nil, "jwt_token", "1", "organization_id", "p"), login(nil, "api_key", "k")}},
		"openshell": {[]extensions.Config{login(at("https://a", "w"), "oidc_client_secret", "1"),
			login(at("https://a", "w"), "oidc_client_secret", "2"), login(at("https://a", "w"))},
			[]extensions.Config{login(at("https://b", "w")), login(at("https://a", "v"))}},
	}
	for _, x := range all.Extensions() {
		name := x.Describe().Handler
		c, listed := cases[name]
		i, told := x.(extensions.Identifier)
		if listed != told {
			t.Errorf("%s: it is an Identifier: %t", name, told)
			continue
		}
		if !told {
			continue
		}
		want := i.Identity(c.same[0])
		if want == "" {
			t.Errorf("%s has no identity", name)
		}
		for n, cfg := range c.same {
			if got := i.Identity(cfg); got != want {
				t.Errorf("%s, %d: %q, want %q", name, n, got, want)
			}
		}
		for n, cfg := range c.others {
			if got := i.Identity(cfg); got == want {
				t.Errorf("%s, %d: another one has the identity %q", name, n, got)
			}
		}
	}
}
