package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// Whoever adopts a sandbox gets it with the end it has, where a later one is not
// affordable: nothing more is set aside, and it is told.
func TestAdoptingWithoutFundsForALaterEndKeepsTheEnd(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		b.grant(2 * dollar)
		s := b.create(engine.Request{Name: "one", TTL: "1h"})
		taken := b.make(b.reopen(), engine.Request{Name: "one", TTL: "4h", OnConflict: "adopt"})
		if taken.ID != s.ID || taken.Receipt.Generation != s.Receipt.Generation+1 || !taken.ExpiresAt.Equal(s.ExpiresAt) {
			t.Errorf("adopted %s generation %d until %s, was %s until %s", taken.ID, taken.Receipt.Generation, taken.ExpiresAt, s.ID, s.ExpiresAt)
		}
		if said := notices(taken.Notices); !strings.Contains(said, "keeps its deadline") || !strings.Contains(said, "limit: wallet of acme") {
			t.Errorf("told %s", said)
		}
		b.pays("adopted", dollar, dollar, 0)
		longer := b.make(b.reopen(), engine.Request{Name: "one", TTL: "90m", OnConflict: "adopt"})
		if want := s.CreatedAt.Add(90 * time.Minute); !longer.ExpiresAt.Equal(want) || b.held(s.ID) <= dollar {
			t.Errorf("it ends %s, want %s, and %d are held", longer.ExpiresAt, want, b.held(s.ID))
		}
		if _, err := b.Destroy(t.Context(), longer.Receipt, engine.DestroyOptions{}); err != nil || b.held(s.ID) != 0 {
			t.Error(err)
		}
	})
}

// What costs more while paused is set aside as paused, at the create, for a
// later end and for an earlier one.
func TestADearerPauseIsSetAside(t *testing.T) {
	t.Parallel()
	const components = "  - { component: sandbox, unit: sandbox-hour, price: \"1\", paused_price: \"2\" }\n"
	onBoth(t, map[string]string{"prices/mine.yaml": prices("ext.mine", components)}, func(t *testing.T, b *bench) {
		b.grant(10 * dollar)
		s := b.create(engine.Request{Name: "one", TTL: "1h"})
		b.pays("created", 8*dollar, 2*dollar, 0)
		for _, c := range []struct {
			ttl  string
			want int64
		}{{"3h", 6 * dollar}, {"2h", 4 * dollar}} {
			if _, err := b.Update(t.Context(), s.Receipt, engine.Request{Profile: "profile.mine", Name: "one", TTL: c.ttl}, nil); err != nil {
				t.Fatal(told(err))
			}
			if held := b.held(s.ID); held > c.want || held < c.want-dollar/30 {
				t.Errorf("%d is held for %s", held, c.ttl)
			}
		}
		if _, err := b.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil || b.held(s.ID) != 0 {
			t.Error(err)
		}
	})
}

// A plan tells of ceilings that would refuse, and the account shows them.
func TestCeilingsAreToldBeforeTheyRefuse(t *testing.T) {
	t.Parallel()
	onBoth(t, map[string]string{
		"policies/acme.yaml": "id: policy.acme\naccount: acme\nceilings: { creates: { max: 2, per: 10m }, spend: { max: \"3 USD\", per: 24h } }\n",
	}, func(t *testing.T, b *bench) {
		planned := func(e *engine.Engine, ttl string) string {
			t.Helper()
			p, err := e.Plan(t.Context(), engine.Request{Profile: "profile.mine", Name: "next", TTL: ttl})
			if err != nil {
				t.Fatal(told(err))
			}
			return notices(p.Notices)
		}
		ceilings := func(e *engine.Engine) []engine.CeilingView {
			t.Helper()
			v, err := e.AccountView(t.Context())
			if err != nil || len(v.Ceilings) != 2 {
				t.Fatalf("%+v, %v", v.Ceilings, err)
			}
			return v.Ceilings
		}
		if said := planned(b.Engine, "1h"); strings.Contains(said, "ceiling") {
			t.Errorf("with room: %s", said)
		}
		if said := planned(b.Engine, "4h"); !strings.Contains(said,
			"needs 4.00 USD, and acme has spent or set aside 0.00 in the last 24h (limit: 3.00 per 24h of policy.acme)") {
			t.Errorf("more than may ever be spent: %s", said)
		}
		head, err := b.book().Head(t.Context(), "acme")
		if err != nil || head.Seq != 0 {
			t.Errorf("a plan wrote: %+v, %v", head, err)
		}
		s := b.create(engine.Request{Name: "one", TTL: "1h"})
		b.create(engine.Request{Name: "two", TTL: "2h"})
		if said := planned(b.Engine, "1h"); !strings.Contains(said,
			"2 sandboxes were started for acme in the last 10m (limit: 2 per 10m of policy.acme); the next is possible at 20") ||
			!strings.Contains(said, "has spent or set aside 3.00") {
			t.Errorf("full: %s", said)
		}
		for _, c := range ceilings(b.Engine) {
			if !c.Full || c.Scope != "acme" || c.Source != "policy.acme" || c.Next.IsZero() != (c.Currency != "") || c.Used != c.Limit {
				t.Errorf("full: %+v", c)
			}
		}
		e := b.later(11 * time.Minute)
		if _, err := e.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil {
			t.Fatal(told(err))
		}
		for _, c := range ceilings(e) {
			if c.Full || !c.Next.IsZero() {
				t.Errorf("with room: %+v", c)
			}
		}
	})
}

// What was begun before there was credit is told as the user's own bill by its
// usage, while it runs and after it, as the accounts have it.
func TestUsageSaysWhoPaysAsTheAccountsDo(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		before := b.create(engine.Request{Name: "before", TTL: "2h"})
		b.grant(10 * dollar)
		after := b.create(engine.Request{Name: "after", TTL: "2h"})
		e := b.later(time.Hour)
		says := func(when string, s engine.Sandbox, billed bool) {
			t.Helper()
			r, err := e.Usage(t.Context(), engine.UsageQuery{Sandbox: s.ID, From: "2000-01-01", To: "2100-01-01"})
			if err != nil || len(r.Running)+len(r.Settled) != 1 {
				t.Fatalf("%+v, %v", r, err)
			}
			for _, u := range append(r.Running, r.Settled...) {
				if (u.Billed.Sum != "0.00") != billed || (u.OwnKey.Sum != "0.00") == billed {
					t.Errorf("%s: %+v", when, u)
				}
			}
		}
		says("runs, begun before", before, false)
		says("runs, begun after", after, true)
		for _, s := range []engine.Sandbox{before, after} {
			if _, err := e.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil {
				t.Fatal(told(err))
			}
		}
		says("is over, begun before", before, false)
		says("is over, begun after", after, true)
		for s, kind := range map[*engine.Sandbox]string{&before: ledger.AccountBYOK, &after: ledger.AccountWallet} {
			cs, err := b.book().Charges(t.Context(), s.ID)
			if x := b.balance(kind); err != nil || len(cs) != 1 || x.DebitsPosted != cs[0].Amount ||
				(cs[0].Memo == "") != (kind == ledger.AccountWallet) {
				t.Errorf("charged %+v, %v; the account is %+v", cs, err, x)
			}
		}
	})
}
