package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// A place that cannot be priced is refused with where its price stands; what
// others cost is known all the same.
func TestAPlaceThatCannotBePricedIsRefusedAlone(t *testing.T) {
	t.Parallel()
	const odd = "id: ext.odd\nhandler: saas-stub\n"
	const sized = "resources: { cpu: 1, memory_mb: 512 }\n"
	for name, c := range map[string]struct{ binding, components, says string }{
		"a number that does not fit": {odd, "  - { component: memory, unit: gib-second, price: \"9000000\" }\n", "odd.yaml"},
		"a fee of another currency": {odd + "billing: byok\nfee: { per_hour: \"1 EUR\" }\n",
			"  - { component: sandbox, unit: sandbox-hour, price: \"1\" }\n", "is in EUR and its price in USD"},
		"a cost that does not fit": {odd + "cost: { per_hour: \"9300000 USD\" }\n", "", "the cost of the catalog or the host"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"extensions/odd.yaml": c.binding, "profiles/odd.yaml": profile("profile.odd", "extension: ext.odd\n"+sized),
				"profiles/both.yaml": profile("profile.both", "extension: ext.saas-stub\nroute: { fallback: [ext.odd] }\n"+sized)}
			if c.components != "" {
				files["prices/odd.yaml"] = prices("ext.odd", c.components)
			}
			e := newBench(t, onFiles(files))
			if p, err := e.Plan(t.Context(), engine.Request{Profile: "profile.stub"}); err != nil || p.Extension != "ext.saas-stub" {
				t.Errorf("pinned elsewhere: %s, %s", p.Extension, told(err))
			}
			p, err := e.Plan(t.Context(), engine.Request{Profile: "profile.both"})
			i := slices.IndexFunc(p.Estimate.Candidates, func(c engine.EstimateCandidate) bool { return c.Extension == "ext.odd" })
			if err != nil || i < 0 {
				t.Fatalf("a fallback: %+v, %s", p.Estimate, told(err))
			}
			got := p.Estimate.Candidates[i]
			if len(got.Refusals) != 1 || got.Refusals[0].Rule != "viability.price" || got.Refusals[0].Remedy == "" ||
				!strings.Contains(got.Refusals[0].Reason, c.says) ||
				got.Hourly != "" || got.Maximum != "" || got.Reserve != "" || got.Confidence != "unknown" {
				t.Errorf("%+v", got)
			}
			if s, err := e.Create(t.Context(), engine.Request{Profile: "profile.both", Name: "one"}, nil, nil); err != nil ||
				strings.Join(refusedBy(s, "ext.odd"), " ") != "viability.price" {
				t.Errorf("made: %+v, %s", s.Route, told(err))
			} else if _, err := e.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil {
				t.Error(told(err))
			}
			if _, err := e.Plan(t.Context(), engine.Request{Profile: "profile.odd"}); !extensions.IsKind(err, extensions.KindUnsupported) ||
				!strings.Contains(told(err), "the profile pins ext.odd") || !strings.Contains(told(err), "(viability.price)") ||
				!strings.Contains(told(err), c.says) {
				t.Errorf("pinned there: %s", told(err))
			}
		})
	}
}
