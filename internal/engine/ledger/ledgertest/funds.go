package ledgertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

const dollar = 1_000_000_000 // nano-units

// cost returns the reservation of these tests' sandboxes: a dollar for two hours.
func cost() *ledger.Reserve {
	return &ledger.Reserve{Currency: "USD", Amount: dollar, Wallet: true, Hourly: dollar / 2, TTL: 2 * time.Hour}
}

func granted(t testing.TB, l *ledger.Ledger, amount int64) {
	t.Helper()
	must(l.Grant(context.Background(), ledger.Grant{Key: string(newID(t)), Org: "acme", Currency: "USD", Amount: amount}))(t)
}

// balance returns acme's account of the kind.
func balance(t testing.TB, l *ledger.Ledger, kind string) ledger.Balance {
	t.Helper()
	for _, b := range must(l.Balances(context.Background(), "acme"))(t) {
		if b.Kind == kind {
			return b
		}
	}
	return ledger.Balance{}
}

func funds(t *testing.T, address NewAddress) {
	t.Run("settlement", func(t *testing.T) { t.Parallel(); settlement(t, address) })
	t.Run("refusals", func(t *testing.T) { t.Parallel(); refusals(t, address) })
	t.Run("budgets", func(t *testing.T) { t.Parallel(); budgets(t, address) })
	t.Run("reservations", func(t *testing.T) { t.Parallel(); reservations(t, address) })
	t.Run("the user's own key and a fee", func(t *testing.T) { t.Parallel(); ownCost(t, address) })
	t.Run("what is owed is paid first", func(t *testing.T) { t.Parallel(); paidAfterwards(t, address) })
	t.Run("no credit when it was begun", func(t *testing.T) { t.Parallel(); withoutCredit(t, address) })
	t.Run("ceilings", func(t *testing.T) { t.Parallel(); ceilings(t, address) })
	t.Run("random lives", func(t *testing.T) { exttest.Alone(t); t.Parallel(); books(t, address) })
	t.Run("the last credit of a wallet", func(t *testing.T) { t.Parallel(); lastCredit(t, address, "wallet of acme") })
	t.Run("credit for several lengths in two workspaces", func(t *testing.T) { t.Parallel(); mixedCredit(t, address) })
	t.Run("the length that fits", func(t *testing.T) { t.Parallel(); whatFits(t, address) })
	t.Run("the last credit of a budget", func(t *testing.T) { t.Parallel(); lastCredit(t, address, "budget all of acme/web") })
}

// paidLife lives with the reservation, then more if set, and is charged used, beside the charge of others.
func paidLife(t *testing.T, l *ledger.Ledger, reserve, more, used, others int64) {
	t.Helper()
	ctx := context.Background()
	b := want(newID(t), holderOf(t, l), string(newID(t)))
	b.Reserve = &ledger.Reserve{Currency: "USD", Amount: reserve, Wallet: true}
	s := must(l.Begin(ctx, b))(t)
	s = must(l.Apply(ctx, provisioning(s)))(t)
	s = must(l.Apply(ctx, ready(s)))(t)
	if more > 0 {
		s = must(l.Apply(ctx, ledger.Change{ID: s.ID, Key: step(s, "more"),
			Reserve: &ledger.Reserve{Currency: "USD", Amount: more, Wallet: true}}))(t)
	}
	s = must(l.Apply(ctx, destroying(s, holderOf(t, l))))(t)
	end := destroyed(s)
	bills.Put(s.ID, ledger.Charge{Segment: 1, Component: "wall", Amount: used, Currency: "USD", Confidence: "exact"},
		ledger.Charge{Segment: 1, Component: "own", Amount: others, Currency: "USD", Memo: "infra_memo:x", Confidence: "exact"})
	for range 2 { // a repetition changes nothing
		must(l.Apply(ctx, end))(t)
	}
	verified(t, l)
}

func settlement(t *testing.T, address NewAddress) {
	for name, c := range map[string]struct{ grant, reserve, more, used, left, owed int64 }{
		"all that was reserved":         {10, 4, 0, 4, 6, 0},
		"less":                          {10, 4, 0, 1, 9, 0},
		"nothing":                       {10, 4, 0, 0, 10, 0},
		"two reservations":              {10, 4, 3, 5, 5, 0},
		"more, from what is free":       {10, 4, 0, 9, 1, 0},
		"more than there is":            {10, 4, 0, 15, 0, 5},
		"more than two reservations":    {10, 4, 3, 8, 2, 0},
		"more than there is, of a pair": {10, 4, 6, 11, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := fresh(t, address)
			granted(t, l, c.grant)
			paidLife(t, l, c.reserve, c.more, c.used, 77)
			w, owed, revenue := balance(t, l, ledger.AccountWallet), balance(t, l, ledger.AccountReceivable), balance(t, l, bank.AccountRevenue)
			if w.Available() != c.left || w.DebitsPending != 0 || owed.DebitsPosted != c.owed || revenue.CreditsPosted != c.used ||
				revenue.CreditsPending != 0 {
				t.Errorf("wallet %+v, receivable %+v, revenue %+v", w, owed, revenue)
			}
		})
	}
	t.Run("a failed create gives everything back", func(t *testing.T) {
		t.Parallel()
		ctx := context.Background()
		l := fresh(t, address)
		granted(t, l, 10)
		b := want(newID(t), holderOf(t, l), "n")
		b.Reserve = &ledger.Reserve{Currency: "USD", Amount: 10, Wallet: true}
		s := must(l.Begin(ctx, b))(t)
		if w := balance(t, l, ledger.AccountWallet); w.Available() != 0 {
			t.Errorf("%+v", w)
		}
		must(l.Apply(ctx, ledger.Change{ID: s.ID, Key: step(s, "refused"), To: lifecycle.Destroyed,
			Finish: &ledger.FinishIntent{Outcome: ledger.Failed}}))(t)
		if w := balance(t, l, ledger.AccountWallet); w.Available() != 10 {
			t.Errorf("%+v", w)
		}
		verified(t, l)
	})
}

func refusals(t *testing.T, address NewAddress) {
	ctx := context.Background()
	l := fresh(t, address)
	b := want(newID(t), holderOf(t, l), "n")
	b.Reserve = cost()
	refuse := func(want string) {
		t.Helper()
		_, err := l.Begin(ctx, b)
		var e *ledger.Insufficient
		if !errors.As(err, &e) || !extensions.IsKind(err, extensions.KindExhausted) || extensions.RemedyOf(err) == "" || e.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	refuse("needs 1.00 USD for a ttl of 2h, 0.00 available (limit: wallet of acme)")
	granted(t, l, 3*dollar/4)
	refuse("needs 1.00 USD for a ttl of 2h, 0.75 available (limit: wallet of acme); a ttl of at most 1h30m fits")
	granted(t, l, dollar)
	must(l.PutBudget(ctx, ledger.Budget{Account: "acme", Name: "month", Currency: "USD", Limit: dollar / 3, Hard: true, Period: "month"}))(t)
	must(l.PutBudget(ctx, ledger.Budget{Account: "acme/other", Name: "all", Currency: "USD", Hard: true}))(t)
	must(l.PutBudget(ctx, ledger.Budget{Account: Account, Name: "euro", Currency: "EUR", Hard: true}))(t)
	must(l.PutBudget(ctx, ledger.Budget{Account: Account, Name: "soft", Currency: "USD"}))(t)
	refuse("needs 1.00 USD for a ttl of 2h, 0.333333333 available (limit: budget month of acme); a ttl of at most 39m fits")
	if _, err := l.Get(ctx, b.ID); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Errorf("a refused one is recorded: %v", err)
	}
	b.Reserve.Amount, b.Reserve.Hourly = dollar/3, 0
	s := must(l.Begin(ctx, b))(t)
	_, err := l.Apply(ctx, ledger.Change{ID: s.ID, Key: "more", Reserve: &ledger.Reserve{Currency: "USD", Amount: 1, Wallet: true}})
	if !extensions.IsKind(err, extensions.KindExhausted) {
		t.Errorf("an extension passes the budget: %v", err)
	}
	if _, err := l.Grant(ctx, ledger.Grant{Key: "k", Org: "acme", Currency: "USD", Amount: -1}); !extensions.IsKind(err,
		extensions.KindInvalid) {
		t.Errorf("%v", err)
	}
	verified(t, l)
}

func budgets(t *testing.T, address NewAddress) {
	ctx := context.Background()
	clock := &Clock{at: Start}
	l := open(t, address(t), sqlstore.Options{Now: clock.Now})
	granted(t, l, 100)
	set := func(limit int64) {
		must(l.PutBudget(ctx, ledger.Budget{Account: Account, Name: "day", Currency: "USD", Limit: limit, Hard: true, Period: "day"}))(t)
	}
	now := func() ledger.Budget { return must(l.Budgets(ctx, "acme"))(t)[0] }
	set(10)
	paidLife(t, l, 6, 0, 8, 0)
	if b := now(); b.Spent != 8 || b.Over != 2 || b.Reserved != 0 || b.Available() != 2 {
		t.Errorf("%+v", b)
	}
	b := want(newID(t), holderOf(t, l), "n")
	b.Reserve = &ledger.Reserve{Currency: "USD", Amount: 3, Wallet: true}
	if _, err := l.Begin(ctx, b); !extensions.IsKind(err, extensions.KindExhausted) {
		t.Errorf("%v", err)
	}
	clock.at = clock.at.Add(24 * time.Hour)
	if b := now(); b.Spent != 0 || b.Available() != 10 {
		t.Errorf("the next day: %+v", b)
	}
	must(l.Begin(ctx, b))(t)
	set(20)
	if b := now(); b.Reserved != 3 || b.Limit != 20 {
		t.Errorf("%+v", b)
	}
	verified(t, l)
}
