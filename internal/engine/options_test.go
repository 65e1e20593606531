package engine_test

import (
	"slices"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// Options for an extension that is not there reach nobody, which is told in plan,
// quote and create, with the name that may have been meant.
func TestOptionsOfAnUnknownExtensionAreTold(t *testing.T) {
	t.Parallel()
	e := newBench(t, onFiles(map[string]string{"profiles/typo.yaml": "id: profile.typo\nversion: \"1.0.0\"\nextends: profile.stub\n" +
		"options: { ext.saas-stob: { nonsense: 1 } }\n"}))
	const want = "options names ext.saas-stob, which does not exist; the nearest is ext.saas-stub"
	tells := func(where string, notices []engine.Notice) {
		t.Helper()
		if !slices.ContainsFunc(notices, func(n engine.Notice) bool { return n.Summary == want }) {
			t.Errorf("%s: %+v", where, notices)
		}
	}
	req := engine.Request{Profile: "profile.typo", Name: "one"}
	p, err := e.Plan(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	tells("plan", p.Notices)
	q, err := e.Quote(t.Context(), req, engine.QuoteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tells("quote", q.Notices)
	s, err := e.Create(t.Context(), req, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(s.Route.Notices, want) {
		t.Errorf("the route: %+v", s.Route)
	}
	if _, err := e.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil {
		t.Error(err)
	}
}
