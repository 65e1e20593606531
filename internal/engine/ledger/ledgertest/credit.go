package ledgertest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// grantKeys: a key belongs to one grant.
func grantKeys(t *testing.T, l *ledger.Ledger) {
	ctx := context.Background()
	g := ledger.Grant{Key: "k", Org: "acme", Currency: "USD", Amount: 5}
	for range 2 {
		if b := must(l.Grant(ctx, g))(t); b.Available() != 5 {
			t.Errorf("%+v", b)
		}
	}
	s := made(t, l, "one")
	for name, change := range map[string]func(*ledger.Grant){
		"amount":         func(g *ledger.Grant) { g.Amount = 6 },
		"currency":       func(g *ledger.Grant) { g.Currency = "EUR" },
		"org":            func(g *ledger.Grant) { g.Org = "other" },
		"of a sandbox's": func(g *ledger.Grant) { g.Key = string(s.ID) + "/create" },
	} {
		other := g
		change(&other)
		if b, err := l.Grant(ctx, other); !extensions.IsKind(err, extensions.KindConflict) {
			t.Errorf("the key again with another %s: %+v, %v", name, b, err)
		}
	}
	if b := balance(t, l, ledger.AccountWallet); b.Available() != 5 {
		t.Errorf("%+v", b)
	}
	verified(t, l)
}

// removedBudgets still count for live sandboxes, and limit nothing.
func removedBudgets(t *testing.T, l *ledger.Ledger) {
	ctx := context.Background()
	b := must(l.PutBudget(ctx, ledger.Budget{Account: Account, Name: "b", Currency: "USD", Limit: 10, Hard: true, Period: "month"}))(t)
	if !b.ResetsAt().After(time.Now()) || b.ResetsAt().After(time.Now().AddDate(0, 1, 1)) || b.ResetsAt().Day() != 1 {
		t.Errorf("it begins anew %s", b.ResetsAt())
	}
	begin := func(name string, amount int64) (ledger.Sandbox, error) {
		w := want(newID(t), holderOf(t, l), name)
		w.Reserve = &ledger.Reserve{Currency: "USD", Amount: amount}
		return l.Begin(ctx, w)
	}
	s := must(begin("one", 8))(t)
	if _, err := begin("two", 8); !extensions.IsKind(err, extensions.KindExhausted) {
		t.Fatalf("above the limit: %v", err)
	}
	b.Limit = ledger.NoLimit
	if _, err := l.PutBudget(ctx, b); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("hard without a limit: %v", err)
	}
	b.Hard = false
	must(l.PutBudget(ctx, b))(t)
	must(begin("two", 1<<60))(t)
	must(l.Apply(ctx, ledger.Change{ID: s.ID, Key: step(s, "failed"), To: "failed", Finish: &ledger.FinishIntent{Outcome: ledger.Failed}}))(t)
	verified(t, l)
	all := must(l.Budgets(ctx, "acme"))(t)
	if len(all) != 1 || !all[0].Removed() {
		t.Errorf("%+v", all)
	}
	events := must(l.Events(ctx, "acme", 1, 0))(t)
	if !slices.ContainsFunc(events, func(e ledger.Event) bool { return e.Type == "budget.removed" && e.Subject == b.ID }) {
		t.Error("its removal is in no event")
	}
	b.Limit, b.Hard = 10, true
	if b = must(l.PutBudget(ctx, b))(t); b.Reserved < 1<<60 {
		t.Errorf("what lives counts when it is set again: %+v", b)
	}
	verified(t, l)
}
