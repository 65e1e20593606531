package tenant_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/tenant"
)

func TestAnAccountSeesAllThatIsItsOwn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	mine := settle(h, "acme/web")
	settle(h, "acme/other")
	h.grant(dollar)
	for _, account := range []string{"acme/web", "acme"} {
		v := h.view(account)
		boxes, err := v.List(ctx, ledger.Filter{})
		if want := map[string]int{"acme/web": 1, "acme": 2}[account]; err != nil || len(boxes) != want {
			t.Errorf("%s lists %d sandboxes, want %d (%v)", account, len(boxes), want, err)
		}
		if s, err := v.ByName(ctx, "acme/web", mine.box.Name); err != nil || s.ID != mine.box.ID {
			t.Errorf("%s: by name %v, %v", account, s.ID, err)
		}
		if b, err := v.Balances(ctx, "acme"); err != nil || len(b) == 0 {
			t.Errorf("%s: the wallet %v, %v", account, b, err)
		}
		es, err := v.Events(ctx, "acme", 1, 0)
		for _, e := range es {
			if e.Type == "funds.granted" {
				es = nil
			}
		}
		if err != nil || es != nil {
			t.Errorf("%s does not see the grant: %v", account, err)
		}
		limited, err := v.Events(ctx, "acme", 2, 2)
		if err != nil || len(limited) != 2 || limited[0].Seq < 2 {
			t.Errorf("%s: %d events, %v", account, len(limited), err)
		}
		head, err := v.Head(ctx, "acme")
		if err != nil || head.Seq == 0 {
			t.Error(head, err)
		}
		if r, err := v.Verify(ctx, head); err != nil || !r.OK() {
			t.Errorf("%s: %+v, %v", account, r, err)
		}
		cut := head
		cut.Seq++
		if r, err := v.Verify(ctx, cut); err != nil || r.OK() {
			t.Errorf("%s: a head that is not there: %+v, %v", account, r, err)
		}
		if alive, err := v.HolderAlive(ctx, holder("acme/web")); err != nil || alive {
			t.Errorf("%s: %t, %v", account, alive, err)
		}
	}
}

func TestTheOwnersCeilingsHold(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	v := tenant.View(h.base, tenant.Options{Account: web, Pricer: catalog{}, Now: func() time.Time { return h.now },
		Owns: func(id ledger.HolderID) bool { return id == holder(web) },
		Ceilings: func(account string, _ bool) []ledger.Ceiling {
			return []ledger.Ceiling{{Source: "policy.owner", Scope: account, Max: 2, Per: time.Hour}}
		}})
	h.must(v.Begin(ctx, h.wish(web, own)))
	h.must(v.Begin(ctx, h.wish(web, own)))
	var fast *ledger.TooFast
	if _, err := v.Begin(ctx, h.wish(web, own)); !errors.As(err, &fast) || fast.Source != "policy.owner" {
		t.Errorf("a third: %v", err)
	}
}

// A later end is set aside for before the place is asked for it.
func TestAnEndIsPaidForBeforeItIsThere(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.grant(5 * dollar)
	v := h.view(web)
	s := h.at(v, web, vendor)
	ask := func(key string, ttl time.Duration) error {
		_, err := v.Apply(ctx, step(s, key, ledger.Change{Reserve: &ledger.Reserve{Currency: "USD", Amount: 1, Total: true, TTL: ttl}}))
		return err
	}
	if err := ask("four", 4*time.Hour); err != nil {
		t.Error(err)
	}
	if w := h.balance(ledger.AccountWallet); w.DebitsPending < 4*dollar-dollar/100 {
		t.Errorf("set aside for four hours: %+v", w)
	}
	var refused *ledger.Insufficient
	if err := ask("six", 6*time.Hour); !errors.As(err, &refused) {
		t.Errorf("six hours of five dollars: %v", err)
	}
	if err := ask("none", time.Minute); err != nil { // what the end that stands does not need is free again
		t.Error(err)
	}
	if w := h.balance(ledger.AccountWallet); w.DebitsPending < 2*dollar-dollar/100 {
		t.Errorf("less than the end that stands needs: %+v", w)
	}
}
