package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// A policy is part of the catalog: a plan refuses what a create refuses, in
// the same words, and nothing is written or made.
func TestAPolicyDeniesInPlanAndCreate(t *testing.T) {
	t.Parallel()
	const only = "id: policy.acme\naccount: acme\nextensions: { allowed: [ext.saas-stub], forbidden: [ext.local] }\n"
	for _, c := range []struct{ account, policy, want string }{
		{"acme/web", only, "policy.acme forbids ext.local (permission.extension)"},
		{"other/web", only, "no policy covers account other/web"},
		{"other/web", "id: policy.acme\naccount: acme\nextension: {}\n", `acme.yaml:3:1: unknown key "extension"`},
	} {
		e := newBench(t, as(c.account), onFiles(map[string]string{"policies/acme.yaml": c.policy}))
		req := engine.Request{Profile: "profile.quickstart"}
		planned, err := e.Plan(context.Background(), req)
		if !extensions.IsKind(err, extensions.KindUnsupported) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("plan: %v, want %s", err, c.want)
		}
		found := false
		for _, ec := range planned.Estimate.Candidates {
			found = found || ec.Extension == "ext.local" && !ec.Eligible && ec.Refusals[0].Stage == "permission" && ec.Refusals[0].Remedy != ""
		}
		if !found {
			t.Errorf("the estimate does not refuse it: %+v", planned.Estimate.Candidates)
		}
		s, cerr := e.Create(context.Background(), req, nil, nil)
		if cerr == nil || cerr.Error() != err.Error() || s.ID != "" {
			t.Errorf("create: %v", cerr)
		}
		if rows, err := e.List(context.Background(), true); err != nil || len(rows) != 0 {
			t.Errorf("%+v, %v", rows, err)
		}
	}
}

func TestAPolicyLetsWhatItAllows(t *testing.T) {
	t.Parallel()
	e := newBench(t, onFiles(map[string]string{
		"policies/acme.yaml": "id: policy.acme\naccount: acme/web\nextensions: { allowed: [ext.local] }\n"}))
	if p, err := e.Plan(context.Background(), engine.Request{Profile: "profile.quickstart"}); err != nil || p.Extension != "ext.local" {
		t.Errorf("%+v, %v", p, err)
	}
}
