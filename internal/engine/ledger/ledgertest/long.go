package ledgertest

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// noise returns incompressible text of n bytes, for the sizes of indexes.
func noise(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(rand.Text())
	}
	return b.String()[:n]
}

// longTexts: the longest accepted texts fit into every index, and longer ones are refused as such.
func longTexts(t *testing.T, address NewAddress) {
	ctx := context.Background()
	longest := func(l *ledger.Ledger, n int) ledger.Begin {
		b := want(newID(t), holderOf(t, l), noise(n))
		b.Account = "acme/" + noise(n-5)
		b.Key, b.Profile, b.Extension, b.Host = noise(2*n), noise(n), noise(n), noise(n)
		b.Request = []byte(`{"consumer":{"actor":"` + noise(300) + `","harness":"` + noise(300) + `","run_id":"` + noise(300) + `"}}`)
		return b
	}
	t.Run("the longest fit", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		s := must(l.Begin(ctx, longest(l, 200)))(t)
		for _, c := range []ledger.Change{provisioning(s), ready(s), destroying(s, holderOf(t, l)), destroyed(s)} {
			c.Expect.Fence = 0
			s = must(l.Apply(ctx, c))(t)
		}
		must(l.PutHost(ctx, ledger.Host{Account: s.Account, Name: noise(200), Ref: "{}"}))(t)
		must(l.Grant(ctx, ledger.Grant{Key: noise(400), Org: "acme", Currency: "USD", Amount: 1}))(t)
		must(l.PutBudget(ctx, ledger.Budget{Account: s.Account, Name: noise(200), Currency: "USD", Limit: 1}))(t)
		verified(t, l)
	})
	t.Run("longer ones are refused", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		s := must(l.Begin(ctx, want(newID(t), holderOf(t, l), "n")))(t)
		text := noise(201)
		refused := map[string]error{}
		for name, change := range map[string]func(*ledger.Begin){
			"account": func(b *ledger.Begin) { b.Account = "acme/" + text }, "name": func(b *ledger.Begin) { b.Name = text },
			"key": func(b *ledger.Begin) { b.Key = noise(401) }, "profile": func(b *ledger.Begin) { b.Profile = text },
			"extension": func(b *ledger.Begin) { b.Extension = text }, "host": func(b *ledger.Begin) { b.Host = text },
			"holder": func(b *ledger.Begin) { b.Holder = ledger.HolderID(noise(401)) },
		} {
			b := want(newID(t), holderOf(t, l), "m")
			change(&b)
			_, refused["begin: "+name] = l.Begin(ctx, b)
		}
		for name, p := range map[string]ledger.Patch{"extension": {Extension: &text}, "host": {Host: &text}, "profile": {Profile: &text}} {
			_, refused["change: "+name] = l.Apply(ctx, ledger.Change{ID: s.ID, Key: step(s, name), Patch: p})
		}
		_, refused["change: key"] = l.Apply(ctx, ledger.Change{ID: s.ID, Key: noise(401)})
		_, refused["intent: key"] = l.Apply(ctx,
			ledger.Change{ID: s.ID, Key: step(s, "i"),
				Intent: &ledger.OpenIntent{Key: noise(401), Kind: ledger.IntentExtend, Holder: holderOf(t, l), Supersede: true}})
		_, refused["host"] = l.PutHost(ctx, ledger.Host{Account: Account, Name: text, Ref: "{}"})
		_, refused["grant"] = l.Grant(ctx, ledger.Grant{Key: noise(401), Org: "acme", Currency: "USD", Amount: 1})
		_, refused["budget"] = l.PutBudget(ctx, ledger.Budget{Account: Account, Name: text, Currency: "USD", Limit: 1})
		for name, err := range refused {
			if !extensions.IsKind(err, extensions.KindInvalid) || len(err.Error()) > 400 {
				t.Errorf("%s: %v", name, err)
			}
		}
		verified(t, l)
	})
}
