package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Later ends of one plan count together, and beside what is made anew; planned
// again, one counts once.
func TestLaterEndsOfOnePlanCountTogether(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		b.grant(6 * dollar)
		one, two := b.create(engine.Request{Name: "one", TTL: "1h"}), b.create(engine.Request{Name: "two", TTL: "1h"})
		extend := func(plan *engine.Together, s engine.Sandbox, ttl string) error {
			req := engine.Request{Profile: "profile.mine", Name: s.Name, TTL: "1h"}
			later := req
			later.TTL, later.Together = ttl, plan
			_, err := b.PlanUpdate(t.Context(), s.Receipt, req, later)
			return err
		}
		var plan engine.Together
		if err := errors.Join(extend(&plan, one, "4h"), extend(&plan, one, "4h"), extend(nil, two, "4h")); err != nil {
			t.Fatal(told(err))
		}
		err := extend(&plan, two, "4h")
		for _, want := range []string{"3.99", "for others in this plan", "limit: wallet of acme", "a ttl of at most 2h fits"} {
			if !extensions.IsKind(err, extensions.KindExhausted) || !strings.Contains(told(err), want) {
				t.Errorf("told %q, want %q", told(err), want)
			}
		}
		if err := extend(&plan, two, "90m"); err != nil {
			t.Errorf("what fits: %s", told(err))
		}
		fresh := engine.Request{Profile: "profile.mine", Name: "three", TTL: "1h", Together: &plan}
		if _, err := b.Plan(t.Context(), fresh); !strings.Contains(told(err), "a ttl of at most 30m fits") {
			t.Errorf("beside a new one: %s", told(err))
		}
		fresh.TTL = "20m"
		if _, err := b.Plan(t.Context(), fresh); err != nil {
			t.Errorf("a short one: %s", told(err))
		}
		b.pays("a plan", 4*dollar, 2*dollar, 0)
	})
}

// Resources of one plan that hold one sandbox set aside what one costs: for the longest life that one of them asks for.
func TestASharedSandboxOfOnePlanCountsOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		b.grant(5 * dollar)
		var plan engine.Together
		planned := func(req engine.Request) error {
			req.Profile, req.Together = "profile.mine", &plan
			_, err := b.Plan(t.Context(), req)
			return err
		}
		for _, ttl := range []string{"1h", "3h", "1h", "2h"} {
			if err := planned(held(ttl)); err != nil {
				t.Fatalf("a holder for %s: %s", ttl, told(err))
			}
		}
		if err := planned(engine.Request{Name: "other", TTL: "3h"}); !extensions.IsKind(err, extensions.KindExhausted) ||
			!strings.Contains(told(err), "after 3.00") {
			t.Errorf("another one: %s", told(err))
		}
		if err := planned(engine.Request{Name: "other", TTL: "2h"}); err != nil {
			t.Errorf("another one that fits: %s", told(err))
		}
		if err := planned(engine.Request{Scope: "shared", ShareKey: "others", TTL: "1h"}); !extensions.IsKind(err, extensions.KindExhausted) {
			t.Errorf("another share_key: %s", told(err))
		}
		one := b.create(held("1h"))
		plan = engine.Together{}
		was, later := held("1h"), held("4h")
		was.Profile, later.Profile, later.Together = "profile.mine", "profile.mine", &plan
		if _, err := b.PlanUpdate(t.Context(), one.Receipt, was, later); err != nil {
			t.Errorf("a later end: %s", told(err))
		}
		if err := planned(held("4h")); err != nil {
			t.Errorf("and one more holder: %s", told(err))
		}
		b.end(one)
	})
}

// What one plan makes later in one workspace and new in another comes out of one
// wallet and the budgets of the org, and not out of each other's budgets.
func TestAPlanCountsTheWorkspacesOfAnOrgTogether(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		account string // of the new one
		limit   func(b *bench)
		says    []string // nil: it is affordable
	}{
		"a wallet": {"acme/api", func(b *bench) { b.grant(5 * dollar) },
			[]string{"needs 3.00", "(limit: wallet of acme) after 3.99", "for others in this plan"}},
		"an org's budget": {"acme/api", func(b *bench) { b.limit("acme", 5*dollar) },
			[]string{"(limit: budget cap of acme) after 3.99", "for others in this plan"}},
		"the one's budget": {"acme/web", func(b *bench) { b.limit("acme/web", 5*dollar) },
			[]string{"(limit: budget cap of acme/web) after 3.99"}},
		"another's budget": {"acme/api", func(b *bench) { b.limit("acme/web", 5*dollar) }, nil},
		"its own budget":   {"acme/api", func(b *bench) { b.limit("acme/api", 3*dollar) }, nil},
		"another org's":    {"rich/api", func(b *bench) { b.grant(5 * dollar) }, nil},
		"too small its own": {"acme/api", func(b *bench) { b.limit("acme/api", 2*dollar) },
			[]string{"2.00 available (limit: budget cap of acme/api)"}},
		"room for all of it": {"acme/api", func(b *bench) { b.grant(7 * dollar) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, nil, func(t *testing.T, b *bench) {
				c.limit(b)
				s := b.create(engine.Request{Name: "one", TTL: "1h"})
				e := b.reopen(as(c.account))
				var plan engine.Together
				req := engine.Request{Profile: "profile.mine", Name: "one", TTL: "1h"}
				later := req
				later.TTL, later.Together = "4h", &plan
				if _, err := e.PlanUpdate(t.Context(), s.Receipt, req, later); err != nil {
					t.Fatal(told(err))
				}
				_, err := e.Plan(t.Context(), engine.Request{Profile: "profile.mine", Name: "two", TTL: "3h", Together: &plan})
				for _, want := range c.says {
					if !extensions.IsKind(err, extensions.KindExhausted) || !strings.Contains(told(err), want) {
						t.Errorf("told %q, want %q", told(err), want)
					}
				}
				if c.says == nil && err != nil {
					t.Error(told(err))
				}
				b.end(s)
			})
		})
	}
}

// Ceilings are told of by the plan whose sandboxes would reach them together.
func TestCeilingsCountThePlan(t *testing.T) {
	t.Parallel()
	onBoth(t, map[string]string{
		"policies/acme.yaml": "id: policy.acme\naccount: acme\nceilings: { creates: { max: 3, per: 10m }, spend: { max: \"5 USD\", per: 24h } }\n",
	}, func(t *testing.T, b *bench) {
		s := b.create(engine.Request{Name: "first", TTL: "1h"})
		var plan engine.Together
		said := func(name, ttl string) string {
			t.Helper()
			p, err := b.Plan(t.Context(), engine.Request{Profile: "profile.mine", Name: name, TTL: ttl, Together: &plan})
			if err != nil {
				t.Fatal(told(err))
			}
			return notices(p.Notices)
		}
		if text := said("one", "1h") + said("two", "1h"); strings.Contains(text, "ceiling") {
			t.Errorf("with room: %s", text)
		}
		text := said("three", "3h")
		for _, want := range []string{"1 sandboxes were started for acme in the last 10m, and 2 more are in this plan (limit: 3 per 10m of " +
			"policy.acme)", "apply fewer at once",
			"needs 3.00 USD in addition to 2.00 for others in this plan, and acme has spent or set aside 1.00 in the last 24h " +
				"(limit: 5.00 per 24h of policy.acme)"} {
			if !strings.Contains(text, want) {
				t.Errorf("told %q, want %q", text, want)
			}
		}
		req := engine.Request{Profile: "profile.mine", Name: "first", TTL: "1h"}
		later := req
		later.TTL = "6h"
		ns, err := b.PlanUpdate(t.Context(), s.Receipt, req, later)
		if text := notices(ns); err != nil || !strings.Contains(text, "If it were extended now, it would be refused: needs 4.99") ||
			strings.Contains(text, "begun") {
			t.Errorf("a later end: %s, %v", text, err)
		}
		later.TTL = "5h"
		if ns, err = b.PlanUpdate(t.Context(), s.Receipt, req, later); err != nil || strings.Contains(notices(ns), "ceiling") {
			t.Errorf("a later end that fits: %s, %v", notices(ns), err)
		}
	})
}

// The largest amount means no limit, so it is none.
func TestABudgetOfTheLargestAmountIsRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		for _, soft := range []bool{true, false} {
			_, err := b.SetBudget(t.Context(), engine.BudgetSpec{Name: "x", Limit: "9223372036.854775807 USD", Soft: soft})
			if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(told(err), "mean no limit") ||
				!strings.Contains(told(err), "budget remove") {
				t.Errorf("%s", told(err))
			}
			if v, err := b.SetBudget(t.Context(), engine.BudgetSpec{Name: "y", Limit: "9223372036.854775806 USD", Soft: soft}); err != nil ||
				v.Hard == soft {
				t.Errorf("%+v, %v", v, err)
			}
		}
		if all, err := b.Budgets(t.Context()); err != nil || len(all) != 1 || all[0].Name != "y" {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// A fee with the user's own key has to have a bound, as credit has: what a share
// of an unknown price comes to has none.
func TestAFeeWithoutABoundIsRefused(t *testing.T) {
	t.Parallel()
	const unknown = "  - { component: sandbox, unit: sandbox-hour, price: \"1\" }\n  - { component: memory, unit: gib-hour, confidence: " +
		"unknown }\n"
	for name, c := range map[string]struct {
		fee     string
		refused bool
	}{
		"a share of what nobody knows": {"share: \"0.05\"", true},
		"by the hour":                  {"per_hour: \"0.01 USD\"", false},
		"by the creation":              {"per_creation: \"0.01 USD\"", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, map[string]string{"prices/mine.yaml": prices("ext.fee", unknown),
				"extensions/fee.yaml": "id: ext.fee\nhandler: saas-stub\nconfig: { dir: \"" + t.TempDir() + "\" }\nbilling: byok\nfee: { " + c.fee +
					", billing: byok }\n",
				"profiles/fee.yaml": profile("profile.fee", "extension: ext.fee\n"),
			}, func(t *testing.T, b *bench) {
				b.grant(dollar)
				req := engine.Request{Profile: "profile.fee", Name: "one", Billing: "byok"}
				if c.refused {
					b.refused(b.Engine, req, extensions.KindUnsupported, "viability.credit", "a share of its price, which is unknown", "add a price book")
					return
				}
				b.end(b.create(req))
				if w := b.balance("wallet"); w.DebitsPending != 0 || w.DebitsPosted < 0 || w.DebitsPosted > int64(dollar/50) {
					t.Errorf("%+v", w)
				}
			})
		})
	}
}
