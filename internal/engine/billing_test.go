package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Without a wallet nobody has to think of one; once there was credit, it pays.
func TestWhoPaysAndWhichLimitsCount(t *testing.T) {
	t.Parallel()
	onBoth(t, atHome(), func(t *testing.T, b *bench) {
		b.budget("all", 20*dollar, true)
		n := 0
		made := func(profile, billing string, memo string, held int64) {
			t.Helper()
			n++
			before := b.theBudget("all").Reserved
			s := b.create(engine.Request{Profile: profile, Name: fmt.Sprint("n", n), Billing: billing})
			all, err := b.book().Held(t.Context(), s.ID)
			if err != nil || len(all) != 1 || all[0].Amount != held || all[0].Debit != "acme:"+memo+":USD" {
				t.Errorf("%s %s: %+v, %v", profile, billing, all, err)
			}
			if r := b.theBudget("all").Reserved; r != before+held {
				t.Errorf("%s %s: the budget holds %d, before %d", profile, billing, r, before)
			}
			t.Cleanup(func() {
				b.end(s)
			})
		}
		made("profile.mine", "", "byok_memo", dollar)
		made("profile.mine", "byok", "byok_memo", dollar)
		made("profile.own", "", "infra_memo", 2*dollar)
		b.refused(b.Engine, engine.Request{Name: "x", Billing: "platform"}, extensions.KindExhausted,
			"needs 1.00 USD for a ttl of 1h, 0.00 available (limit: wallet of acme)")
		b.grant(dollar)
		made("profile.mine", "", "wallet", dollar)
		b.refused(b.Engine, engine.Request{Name: "x"}, extensions.KindExhausted, "0.00 available (limit: wallet of acme)",
			"sandboxer ledger grant")
		made("profile.mine", "byok", "byok_memo", dollar)
		b.budget("all", 7*dollar, true)
		for profile, need := range map[string]string{"profile.own": "2.00", "profile.mine": "1.00"} {
			b.budget("all", 6*dollar+dollar/4, true)
			b.refused(b.Engine, engine.Request{Profile: profile, Name: "x", Billing: "byok"}, extensions.KindExhausted,
				"needs "+need+" USD for a ttl of 1h, 0.25 available (limit: budget all of acme/web)")
		}
	})
}

func TestWhatHasNoKnownPrice(t *testing.T) {
	t.Parallel()
	onBoth(t, map[string]string{
		"profiles/profile.free.yaml": "id: profile.free\nversion: \"1.0.0\"\nextension: ext.local\n" + open,
	}, func(t *testing.T, b *bench) {
		dim := engine.Request{Profile: "profile.dim", Name: "one"}
		end := func(s engine.Sandbox) {
			t.Helper()
			b.end(s)
		}
		end(b.create(dim)) // nobody set a limit
		b.budget("soft", dollar, false)
		end(b.create(dim))
		asked := dim
		asked.Billing = "platform"
		b.refused(b.Engine, asked, extensions.KindUnsupported, "its price is unknown (viability.credit)", "byok")
		b.budget("hard", dollar, true)
		for _, billing := range []string{"", "byok"} {
			asked.Billing = billing
			const want = "ext.dim cannot be used: its price is unknown, so it cannot be kept below a hard limit (limit: budget hard of acme/web)"
			b.refused(b.Engine, asked, extensions.KindExhausted, want, "add a price book")
			if _, err := b.Plan(t.Context(), asked); !strings.Contains(told(err), want) {
				t.Errorf("the plan says %s", told(err))
			}
		}
		end(b.create(engine.Request{Profile: "profile.free", Name: "mine"})) // of one's own
		b.budget("hard", dollar, false)
		b.grant(dollar)
		b.refused(b.Engine, dim, extensions.KindUnsupported, "viability.credit")
		if _, err := b.Plan(t.Context(), dim); !extensions.IsKind(err, extensions.KindUnsupported) ||
			!strings.Contains(told(err), "its price is unknown (viability.credit)") {
			t.Errorf("the plan says %s", told(err))
		}
		q, err := b.Quote(t.Context(), dim, engine.QuoteOptions{})
		if err != nil || !strings.Contains(fmt.Sprint(q.Notices), "viability.credit") {
			t.Errorf("a quote only tells: %+v, %v", q.Notices, err)
		}
		asked.Billing = "byok"
		end(b.create(asked))
	})
}

// A plan tells what a create would be refused for, changes no estimate by it,
// and writes nothing.
func TestAPlanTellsOfFunds(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		req := engine.Request{Profile: "profile.mine", Name: "one", TTL: "8h"}
		plain, err := b.Plan(t.Context(), req)
		if err != nil {
			t.Fatal(told(err))
		}
		b.budget("month", 5*dollar+dollar/2, true)
		b.budget("soft", 3*dollar, false)
		before := tree(t, b.StateDir)
		e := b.reopen()
		p, err := e.Plan(t.Context(), req)
		const want = "ext.mine needs 8.00 USD for a ttl of 8h, 5.50 available (limit: budget month of acme/web); a ttl of at most 5h30m fits"
		if !extensions.IsKind(err, extensions.KindExhausted) || !strings.Contains(told(err), want) || extensions.FieldOf(err) != "ttl" {
			t.Errorf("%s", told(err))
		}
		if !reflect.DeepEqual(p.Estimate, plain.Estimate) {
			t.Errorf("the estimate is %+v, and was %+v", p.Estimate, plain.Estimate)
		}
		if !strings.Contains(fmt.Sprint(p.Notices), "The budget soft of acme/web would be exceeded") {
			t.Errorf("%+v", p.Notices)
		}
		req.TTL = "5h30m"
		for range 10 { // each alone
			if p, err := e.Plan(t.Context(), req); err != nil || !strings.Contains(fmt.Sprint(p.Notices), "budget soft") {
				t.Errorf("%+v, %v", p.Notices, err)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if after := tree(t, b.StateDir); !reflect.DeepEqual(before, after) {
			t.Errorf("planning wrote: %v, before %v", after, before)
		}
		// What makes room for it counts as free.
		s := b.create(engine.Request{Name: "one", TTL: "5h"})
		if _, err := b.Plan(t.Context(), req); err != nil {
			t.Errorf("in the place of its namesake: %s", told(err))
		}
		req.Name = "two"
		if _, err := b.Plan(t.Context(), req); !strings.Contains(told(err), "0.50 available") {
			t.Errorf("beside it: %s", told(err))
		}
		req.Leaving = []engine.ID{s.ID, s.ID}
		if _, err := b.Plan(t.Context(), req); err != nil {
			t.Errorf("in its place: %s", told(err))
		}
	})
}

// What is affordable one by one and not together is refused in the plan that
// has both, and named with what the others need.
func TestSandboxesOfOnePlanCountTogether(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		b.budget("month", 5*dollar+dollar/2, true)
		old := b.create(engine.Request{Name: "old", TTL: "1h"})
		var all engine.Together
		plan := func(name, ttl string, leaving ...engine.ID) error {
			_, err := b.Plan(t.Context(), engine.Request{Profile: "profile.mine", Name: name, TTL: ttl, Leaving: leaving, Together: &all})
			return err
		}
		for _, name := range []string{"one", "two"} {
			if err := plan(name, "2h"); err != nil {
				t.Fatalf("%s: %s", name, told(err))
			}
		}
		const want = "needs 1.00 USD for a ttl of 1h, 0.50 available (limit: budget month of acme/web) after 4.00 for others in this plan; a " +
			"ttl of at most 30m fits"
		if err := plan("three", "1h"); !extensions.IsKind(err, extensions.KindExhausted) || !strings.Contains(told(err), want) {
			t.Errorf("%s", told(err))
		}
		if err := plan("three", "30m"); err != nil {
			t.Errorf("what is refused counts: %s", told(err))
		}
		if err := plan("four", "1h", old.ID); err != nil {
			t.Errorf("in the place of what leaves: %s", told(err))
		}
		if err := plan("five", "1m", old.ID); err == nil {
			t.Error("what leaves made room twice")
		}
		if _, err := b.Plan(t.Context(), engine.Request{Profile: "profile.mine", Name: "six", TTL: "4h"}); err != nil {
			t.Errorf("another plan: %s", told(err))
		}
	})
}

// Credit counts those that it pays for, and no others.
func TestCreditOfOnePlanCountsTogether(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		b.grant(3 * dollar)
		var all engine.Together
		plan := func(name, billing string) error {
			_, err := b.Plan(t.Context(), engine.Request{Profile: "profile.mine", Name: name, TTL: "2h", Billing: billing, Together: &all})
			return err
		}
		if err := errors.Join(plan("own", "byok"), plan("one", "")); err != nil {
			t.Fatal(told(err))
		}
		const want = "needs 2.00 USD for a ttl of 2h, 1.00 available (limit: wallet of acme) after 2.00 for others in this plan; a ttl of at " +
			"most 1h fits"
		if err := plan("two", "platform"); !strings.Contains(told(err), want) {
			t.Errorf("%s", told(err))
		}
	})
}

func TestCeilingsEndALoop(t *testing.T) {
	t.Parallel()
	onBoth(t, map[string]string{
		"policies/all.yaml":  "id: policy.all\naccount: \"*\"\nceilings: { spend: { max: \"6 USD\", per: 24h } }\n",
		"policies/acme.yaml": "id: policy.acme\naccount: acme\nceilings: { creates: { max: 5, per: 10m }, spend: { max: \"50 USD\", per: 1h } }\n",
	}, func(t *testing.T, b *bench) {
		var won atomic.Int64
		var wg sync.WaitGroup
		other := b.reopen()
		for i := range 12 {
			wg.Go(func() {
				e := b.Engine
				if i%2 == 1 {
					e = other
				}
				_, err := e.Create(t.Context(), engine.Request{Profile: "profile.mine", Name: fmt.Sprint("n", i), TTL: "1h"}, nil, nil)
				switch {
				case err == nil:
					won.Add(1)
				case !extensions.IsKind(err, extensions.KindExhausted) ||
					!strings.Contains(told(err), "5 sandboxes were started for acme in the last 10m (limit: 5 per 10m of policy.acme); the next is "+
						"possible at 20"):
					t.Errorf("a loser is told %s", told(err))
				}
			})
		}
		wg.Wait()
		if won.Load() != 5 || len(b.alive()) != 5 {
			t.Errorf("%d won, %v live", won.Load(), b.alive())
		}
		e := b.later(11 * time.Minute)
		b.refused(e, engine.Request{Name: "x", TTL: "2h"}, extensions.KindExhausted,
			"needs 2.00 USD, and acme/web has spent or set aside 5.00 in the last 24h (limit: 6.00 per 24h of policy.all)")
		s := b.make(e, engine.Request{Name: "x", TTL: "1h"})
		if _, err := e.ExtendTTL(t.Context(), s.Receipt, 2*time.Hour); !extensions.IsKind(err, extensions.KindExhausted) ||
			!strings.Contains(told(err), "has spent or set aside 6.00") {
			t.Errorf("extended: %s", told(err))
		}
	})
}

// Where no policy says anything, places that send a bill have a ceiling all the
// same, and places of one's own have none.
func TestTheDefaultCeiling(t *testing.T) {
	t.Parallel()
	takesLong(t)
	onBoth(t, map[string]string{
		"profiles/profile.free.yaml": "id: profile.free\nversion: \"1.0.0\"\nextension: ext.local\n" + open,
	}, func(t *testing.T, b *bench) {
		holder, err := b.book().Holder(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range 500 {
			id, err := extensions.NewID(nil)
			if err != nil {
				t.Fatal(err)
			}
			begin := ledger.Begin{Key: string(id), Holder: holder, ID: id, Account: "acme/web", Name: fmt.Sprint("n", i),
				Request: json.RawMessage("{}"), Metered: i > 0, ExpiresAt: time.Now().Add(time.Hour)}
			if _, err := b.book().Begin(t.Context(), begin); err != nil {
				t.Fatal(err)
			}
		}
		b.create(engine.Request{Name: "last"})
		b.refused(b.Engine, engine.Request{Name: "x"}, extensions.KindExhausted,
			"500 sandboxes were started for acme/web in the last 1h (limit: 500 per 1h of the default for metered places)")
		s := b.create(engine.Request{Profile: "profile.free", Name: "y"})
		b.end(s)
	})
}

// What credit cannot pay for is left out of a create, so its plan holds the next
// place against limits and max_cost, and is not refused for it.
func TestAPlanGoesOnToThePlaceThatCreditCanPay(t *testing.T) {
	t.Parallel()
	onBoth(t, map[string]string{
		"extensions/a.yaml": bound("ext.a", t.TempDir(), ""), "extensions/b.yaml": bound("ext.b", t.TempDir(), "cost: { per_hour: \"1.00 USD\" }\n"),
		"profiles/two.yaml": profile("profile.two", "extension: ext.a\nroute: { fallback: [ext.b] }\n"),
	}, func(t *testing.T, b *bench) {
		req := engine.Request{Profile: "profile.two", Name: "one"}
		if _, err := b.Plan(t.Context(), req); err != nil {
			t.Fatalf("without credit: %s", told(err))
		}
		b.grant(3 * dollar)
		p, err := b.Plan(t.Context(), req)
		if err != nil || !strings.Contains(fmt.Sprint(p.Notices), "ext.a will refuse the create, and ext.b chosen") {
			t.Errorf("%+v, %s", p.Notices, told(err))
		}
		req.TTL = "4h"
		if _, err := b.Plan(t.Context(), req); !extensions.IsKind(err, extensions.KindExhausted) ||
			!strings.Contains(told(err), "ext.b needs 4.00 USD") {
			t.Errorf("more than there is: %s", told(err))
		}
		req.TTL, req.MaxCost = "2h", "1 USD"
		if _, err := b.Plan(t.Context(), req); err == nil || !strings.Contains(told(err), "max_cost") {
			t.Errorf("above max_cost: %s", told(err))
		}
		req.MaxCost = ""
		s := b.create(req)
		if s.Extension != "ext.b" {
			t.Errorf("made at %s", s.Extension)
		}
		b.end(s)
	})
}

// What nobody has measured yet is unknown beside what is charged: the amounts of
// wallet and budget say that they lack it, until the vendor tells it.
func TestAmountsSayWhichLivesTheyLack(t *testing.T) {
	t.Parallel()
	onBoth(t, map[string]string{
		"extensions/out.yaml": "id: ext.out\nhandler: saas-stub\nconfig: { dir: \"" + t.TempDir() + "\" }\n",
		"prices/out.yaml": prices("ext.out",
			"  - { component: sandbox, unit: sandbox-hour, price: \"1\" }\n  - { component: egress, unit: egress-gb, price: \"0.10\" }\n"),
		"profiles/out.yaml": profile("profile.out", "extension: ext.out\n"),
	}, func(t *testing.T, b *bench) {
		b.grant(10 * dollar)
		b.budget("all", 5*dollar, true)
		lacks := func(when string, e *engine.Engine, n int64) {
			t.Helper()
			v, err := e.AccountView(t.Context())
			if err != nil || len(v.Wallets) != 1 || len(v.Budgets) != 1 || v.Wallets[0].Unpriced != n || v.Budgets[0].Unpriced != n {
				t.Errorf("%s: %+v, %s", when, v, told(err))
			}
			if w, _, err := e.GrantCredit(t.Context(), "acme", "1 USD", "the same", ""); err != nil || w.Unpriced != n {
				t.Errorf("%s, of a grant: %+v, %s", when, w, told(err))
			}
			if v, err := e.SetBudget(t.Context(), engine.BudgetSpec{Name: "all", Limit: "5 USD"}); err != nil || v.Unpriced != n {
				t.Errorf("%s, of a budget: %+v, %s", when, v, told(err))
			}
		}
		lacks("before", b.Engine, 0)
		s := b.create(engine.Request{Profile: "profile.out", Name: "one"})
		mine := b.create(engine.Request{Profile: "profile.mine", Name: "two"}) // of a known price
		lacks("while it runs", b.Engine, 1)
		r, err := b.Usage(t.Context(), engine.UsageQuery{Sandbox: s.ID})
		if err != nil || len(r.Totals) != 1 || r.Totals[0].Unpriced != 1 || r.Totals[0].Billed.Sum != "" || r.Totals[0].Billed.AtLeast == "" ||
			r.Totals[0].OwnKey.Sum != "0.00" {
			t.Errorf("while it runs: %+v, %s", r.Totals, told(err))
		}
		b.end(s, mine)
		lacks("once it is measured", b.Engine, 0)
		if r, err = b.Usage(t.Context(), engine.UsageQuery{Sandbox: s.ID}); err != nil || r.Totals[0].Unpriced != 0 ||
			r.Totals[0].Billed.Sum == "" {
			t.Errorf("once it is measured: %+v, %s", r.Totals, told(err))
		}
	})
}
