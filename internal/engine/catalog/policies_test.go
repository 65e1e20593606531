package catalog_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func policyIDs(p route.Permission) string {
	var ids []string
	for _, policy := range p.Policies {
		ids = append(ids, policy.ID)
	}
	return strings.Join(ids, " ")
}

func TestPoliciesOfEveryScopeAndFolderApply(t *testing.T) {
	t.Parallel()
	first := folder(t, map[string]string{
		"policies/all.yaml":  "id: policy.all\naccount: \"*\"\nextensions: { forbidden: [ext.saas-stub] }\n",
		"policies/acme.yaml": "id: policy.acme\naccount: acme\nextensions: { allowed: [ext.local] }\nrequire_isolation: process\nbilling: []\n",
		"policies/web.yaml":  "id: policy.acme-web\naccount: acme/web\nhosts: { allowed: [] }\nregions: { allowed: [eu], forbidden: [eu-north] }\n",
	})
	second := folder(t, map[string]string{"policies/acme.yaml": "id: policy.acme\naccount: acme\nextensions: { allowed: [ext.local, " +
		"ext.locl] }\n"})
	c, err := catalog.Load([]string{first, second}, handlers(), today)
	if err != nil {
		t.Fatal(err)
	}
	for account, want := range map[string]string{
		"acme/web": "policy.acme policy.acme policy.acme-web policy.all", "acme/ops": "policy.acme policy.acme policy.all",
		"acmes/web": "policy.all", "web/acme": "policy.all",
	} {
		if p := c.Permission(account); policyIDs(p) != want || !p.Required || p.Account != account || p.Unreadable != nil {
			t.Errorf("%s: %s, %+v", account, policyIDs(p), p)
		}
	}
	want := route.AccountPolicy{ID: "policy.acme", Extensions: route.Access{Allowed: []string{"ext.local"}},
		RequireIsolation: extensions.IsolationProcess, Billing: []string{}}
	if got := c.Permission("acme/web").Policies[0]; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if web := c.Permission("acme/web").Policies[2]; web.Hosts.Allowed == nil || len(web.Hosts.Allowed) != 0 || web.Billing != nil ||
		web.Extensions.Allowed != nil {
		t.Errorf("an empty list is not an absent one: %+v", web)
	}
	if told := strings.Join(c.Notices, "\n"); !strings.Contains(told,
		"acme.yaml:1:5: policy.acme applies together with the one of "+filepath.Join(first, "policies",
			"acme.yaml")+": a policy is never replaced") ||
		!strings.Contains(told, `no extension "ext.locl" in this catalog: listing it here has no effect (did you mean "ext.local"?)`) {
		t.Error(told)
	}
}

func TestCeilingsOfEveryScopeHold(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"policies/all.yaml": "id: policy.all\naccount: \"*\"\nceilings: { creates: { max: 0, per: 90s } }\n",
		"policies/acme.yaml": "id: policy.acme\naccount: acme\nceilings: { creates: { max: 60, per: 10m }, spend: { max: \"20.50 USD\", per: " +
			"1d } }\n",
		"policies/web.yaml": "id: policy.acme-web\naccount: acme/web\nceilings: { spend: { max: \"3 EUR\", per: 1h } }\n",
	})
	c, err := catalog.Load([]string{dir}, handlers(), today)
	if err != nil {
		t.Fatal(err)
	}
	acme := []catalog.Ceiling{{Policy: "policy.acme", Scope: "acme", Max: 60, Per: 10 * time.Minute},
		{Policy: "policy.acme", Scope: "acme", Currency: "USD", Max: 20_500_000_000, Per: 24 * time.Hour}}
	web := catalog.Ceiling{Policy: "policy.acme-web", Scope: "acme/web", Currency: "EUR", Max: 3_000_000_000, Per: time.Hour}
	all := func(account string) catalog.Ceiling {
		return catalog.Ceiling{Policy: "policy.all", Scope: account, Per: 90 * time.Second}
	}
	for account, want := range map[string][]catalog.Ceiling{
		"acme/web": append(slices.Clone(acme), web, all("acme/web")), "acme/ops": append(slices.Clone(acme), all("acme/ops")),
		"acmes/web": {all("acmes/web")},
	} {
		if got := c.Ceilings(account); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", account, got, want)
		}
	}
}

func TestWithoutPoliciesNothingIsRequired(t *testing.T) {
	t.Parallel()
	c, err := catalog.Load(nil, handlers(), today)
	if p := c.Permission("acme/web"); err != nil || !reflect.DeepEqual(p, route.Permission{Account: "acme/web"}) {
		t.Errorf("%+v, %v", p, err)
	}
}

// A broken policy stops what is new and nothing else: the catalog can be used.
func TestABrokenPolicyIsToldAndKept(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"id: policy.a\naccount: acme\nregoins: {}\n": `3:1: unknown key "regoins" (did you mean "regions"?)`,
		"id: policy.a\n":                      "account is required",
		"id: a\naccount: acme\n":              `"a" is not an ID: want "policy."`,
		"id: policy.a\naccount: acme/web/x\n": `2:10: "acme/web/x" is not an account`,
		"id: policy.a\naccount: acme\nextensions: { forbidden: [local] }\n": `3:27: "local" is not an ID`,
		"id: policy.a\naccount: acme\nhosts: { allowed: [\"\"] }\n":         "is not a name",
		"id: policy.a\naccount: acme\nrequire_isolation: mikrovm\n":         `"mikrovm" is unknown: want none, process`,
		"id: policy.a\naccount: acme\nbilling: [byok, plattform]\n":         `"plattform" is unknown: want platform, byok (did you mean "platform"?)`,
		"id: policy.a\naccount: acme\nceilings: { creates: { max: 5 } }\n": "ceilings.creates needs max and per, as in { max: " +
			"60, per: 10m }",
		"id: policy.a\naccount: acme\nceilings: { creates: { max: -5, per: 1m } }\n":       "3:29: -5 is negative",
		"id: policy.a\naccount: acme\nceilings: { creates: { max: 5, per: 99d } }\n":       "99d is not positive and at most 31d",
		"id: policy.a\naccount: acme\nceilings: { spend: { max: \"20\", per: 1h } }\n":     "is not an amount of money",
		"id: policy.a\naccount: acme\nceilings: { spend: { per: 1h } }\n":                  `needs max and per, as in { max: "20 USD", per: 10m }`,
		"id: policy.a\naccount: acme\nceilings: { spent: { max: \"20 USD\", per: 1h } }\n": `unknown key "spent" (did you mean "spend"?)`,
		"[":                                 "policies/a.yaml",
		"id: policy.twice\naccount: acme\n": "policy.twice is already defined in",
	} {
		dir := folder(t, map[string]string{"policies/a.yaml": text, "policies/0.yaml": "id: policy.twice\naccount: x\n"})
		c, err := catalog.Load([]string{dir}, handlers(), today)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		p := c.Permission("other/one")
		if len(p.Unreadable) == 0 || !strings.Contains(strings.Join(p.Unreadable, "\n"), want) {
			t.Errorf("%s: got %q, want %s", text, p.Unreadable, want)
		}
		if !strings.Contains(strings.Join(c.Notices, "\n"), "nothing new can be created until you correct this") {
			t.Errorf("%s: not told: %q", text, c.Notices)
		}
		if problems, err := catalog.ValidatePath(dir, handlers(), today); err != nil || len(problems) == 0 || problems[0].Notice {
			t.Errorf("%s: %+v, %v", text, problems, err)
		}
	}
}

func TestAPolicyFileThatCannotBeOpenedDenies(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"policies/keep.txt": ""})
	if err := os.Symlink("../../elsewhere.yaml", filepath.Join(dir, "policies", "acme.yaml")); err != nil {
		t.Skip("no symbolic links here")
	}
	c, err := catalog.Load([]string{dir}, handlers(), today)
	if err != nil {
		t.Fatal(err)
	}
	if p := c.Permission("acme/web"); len(p.Unreadable) != 1 || !strings.Contains(p.Unreadable[0], "acme.yaml: cannot be read") {
		t.Errorf("%+v", p)
	}
}

func TestALonePolicyIsKnownByItsID(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"lone/p.yaml": "id: policy.a\naccount: acme\nhosts: { forbiden: [one] }\n"})
	got, err := catalog.ValidatePath(filepath.Join(dir, "lone", "p.yaml"), handlers(), today)
	if err != nil || len(got) != 1 || got[0].Line != 3 || !strings.Contains(got[0].Msg, "forbidden") {
		t.Errorf("%+v, %v", got, err)
	}
}
