package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

const mineProfile = "id: profile.mine\nversion: \"1.0.0\"\nextension: ext.mine\nisolation: { level: container }\n" +
	"network: { default: deny }\nworkspace: { mode: remote-canonical, access: rw }\nttl: { default: 1h, max: 24h }\n"

// A client whose catalog has no policies is held to those of the server's.
func TestAClientIsHeldToTheServersPolicies(t *testing.T) {
	t.Parallel()
	const head = "id: policy.acme\naccount: acme\n"
	byok, credit := mine, mine
	byok.Billing, credit.Billing = "byok", "platform"
	for name, c := range map[string]struct {
		policy string // of the server's catalog
		there  string // more of ext.mine in the server's catalog
		req    engine.Request
		rule   string // "" = it is made
	}{
		"nothing is said":        {req: mine},
		"it is allowed":          {policy: head + "extensions: { allowed: [ext.mine] }\n", req: mine},
		"its extension":          {policy: head + "extensions: { forbidden: [ext.mine] }\n", req: mine, rule: "permission.extension"},
		"an own place":           {policy: head + "extensions: { allowed: [ext.mine] }\n", req: own, rule: "permission.extension"},
		"its host":               {policy: head + "hosts: { allowed: [big] }\n", req: own, rule: "permission.host"},
		"its region":             {policy: head + "regions: { allowed: [eu] }\n", there: "region: us\n", req: mine, rule: "permission.region"},
		"its isolation":          {policy: head + "require_isolation: vm\n", req: mine, rule: "permission.isolation"},
		"its own key":            {policy: head + "billing: [platform]\n", req: byok, rule: "permission.billing"},
		"platform credit":        {policy: head + "billing: [byok]\n", req: mine, rule: "permission.billing"},
		"the platform's binding": {there: "billing: platform\n", req: byok, rule: "viability.billing"},
		"the user's binding":     {there: "billing: byok\n", req: credit, rule: "viability.billing"},
		"no policy is theirs":    {policy: "id: policy.other\naccount: other\n", req: mine, rule: "permission.policy-absent"},
		"one cannot be read":     {policy: head + "extension: {}\n", req: mine, rule: "permission.policy-unreadable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, at := context.Background(), t.TempDir()
			files := map[string]string{"profiles/profile.mine.yaml": mineProfile,
				"extensions/ext.mine.yaml": "id: ext.mine\ntitle: Mine\nhandler: saas-stub\nconfig: { dir: " + at + " }\ncost: { per_hour: \"1.00 USD\" }\n"}
			theirs := folder(t, files)
			files["extensions/ext.mine.yaml"] += c.there
			if c.policy != "" {
				files["policies/acme.yaml"] = c.policy
			}
			o := newOffice(t, folder(t, files))
			token, b := o.token("acme/web"), &bench{t: t, dir: t.TempDir()}
			t.Cleanup(b.removeAll)
			o.catalog = theirs
			e := o.client(b.dir, "acme/web", token)
			s, err := e.Create(ctx, c.req, nil, nil)
			if c.rule == "" {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := e.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil {
					t.Error(err)
				}
				return
			}
			var f *ledger.Forbidden
			if !errors.As(err, &f) || f.Rule != c.rule || f.Account != "acme/web" || extensions.RemedyOf(err) == "" || s.ID != "" {
				t.Errorf("%v (%s), %+v", err, extensions.RemedyOf(err), f)
			}
			rows, err := o.books().List(ctx, ledger.Filter{Live: true})
			objects, verr := vendor.At(at).Objects()
			if err != nil || verr != nil || len(rows) != 0 || len(objects) != 0 {
				t.Errorf("left: %+v, %+v; %v, %v", rows, objects, err, verr)
			}
		})
	}
}
