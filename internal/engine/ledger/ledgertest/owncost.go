package ledgertest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// ownCost: the user's own key pays the vendor, and the wallet a fee.
func ownCost(t *testing.T, address NewAddress) {
	t.Run("wallet and memo together", func(t *testing.T) { t.Parallel(); bothPay(t, address) })
	t.Run("the limit that refuses", func(t *testing.T) { t.Parallel(); whichRefuses(t, address) })
	t.Run("what is needed in all", func(t *testing.T) { t.Parallel(); bothInAll(t, address) })
	t.Run("a vendor whose price nobody knows", func(t *testing.T) { t.Parallel(); onlyTheFee(t, address) })
	t.Run("amounts that cannot be", func(t *testing.T) { t.Parallel(); impossibleShares(t, address) })
}

func bothPay(t *testing.T, address NewAddress) {
	for name, c := range map[string]struct{ fee, cost, spent, over, wallet, owed, memo int64 }{
		"less than was set aside":        {1, 4, 5, 0, 1, 0, 4},
		"all of it":                      {2, 6, 8, 0, 2, 0, 6},
		"more of both":                   {3, 9, 12, 4, 3, 0, 9},
		"more of one, less of the other": {9, 1, 10, 7, 9, 0, 1},
		"a fee above the wallet":         {12, 6, 18, 10, 10, 2, 6},
		"nothing":                        {0, 0, 0, 0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			l := fresh(t, address)
			granted(t, l, 10)
			must(l.PutBudget(ctx, ledger.Budget{Account: Account, Name: "all", Currency: "USD", Limit: 9, Hard: true}))(t)
			s := must(begun(t, l, ledger.Reserve{Currency: "USD", Amount: 8, Wallet: true, Own: ledger.Share{Amount: 6}}))(t)
			w, m, b := balance(t, l, ledger.AccountWallet), balance(t, l, ledger.AccountBYOK), must(l.Budgets(ctx, "acme"))(t)[0]
			if w.DebitsPending != 2 || m.DebitsPending != 6 || b.Reserved != 8 {
				t.Errorf("set aside: wallet %+v, memo %+v, budget %+v", w, m, b)
			}
			if _, err := begun(t, l, ledger.Reserve{Currency: "USD", Amount: 2, Wallet: true, Own: ledger.Share{Amount: 1}}); !extensions.IsKind(err,
				extensions.KindExhausted) {
				t.Errorf("above the budget, whose limit counts what the vendor is paid: %v", err)
			}
			s = must(l.Apply(ctx, provisioning(s)))(t)
			s = must(l.Apply(ctx, ready(s)))(t)
			s = must(l.Apply(ctx, destroying(s, holderOf(t, l))))(t)
			end := charging(destroyed(s), ledger.Charge{Segment: 1, Component: "fee:hourly", Amount: c.fee, Currency: "USD"},
				ledger.Charge{Segment: 1, Component: "wall", Amount: c.cost, Currency: "USD", Memo: "byok_memo:x"})
			for range 2 { // a repetition changes nothing
				must(l.Apply(ctx, end))(t)
			}
			w, m, b = balance(t, l, ledger.AccountWallet), balance(t, l, ledger.AccountBYOK), must(l.Budgets(ctx, "acme"))(t)[0]
			owed := balance(t, l, ledger.AccountReceivable).Owed()
			if w.DebitsPosted != c.wallet || w.DebitsPending != 0 || owed != c.owed || m.DebitsPosted != c.memo || m.DebitsPending != 0 {
				t.Errorf("settled: wallet %+v, memo %+v, owed %d", w, m, owed)
			}
			if b.Reserved != 0 || b.Spent != c.spent || b.Over != c.over {
				t.Errorf("settled: %+v", b)
			}
			verified(t, l)
		})
	}
}

func whichRefuses(t *testing.T, address NewAddress) {
	r := ledger.Reserve{Currency: "USD", Amount: 20 * dollar, Hourly: 5 * dollar, Own: ledger.Share{Amount: 16 * dollar, Hourly: 4 * dollar},
		Wallet: true, TTL: 4 * time.Hour}
	for name, c := range map[string]struct {
		wallet, budget int64
		want           string
		part           bool
	}{
		"the fee": {dollar, 8 * dollar,
			"needs 4.00 USD for a ttl of 4h, 1.00 available (limit: wallet of acme); a ttl of at most 1h fits", true},
		"all of it": {3 * dollar, 8 * dollar,
			"needs 20.00 USD for a ttl of 4h, 8.00 available (limit: budget all of acme/web); a ttl of at most 1h36m fits", false},
		"the budget alone": {4 * dollar, 19 * dollar,
			"needs 20.00 USD for a ttl of 4h, 19.00 available (limit: budget all of acme/web); a ttl of at most 3h48m fits", false},
		"the wallet alone": {3 * dollar, 20 * dollar,
			"needs 4.00 USD for a ttl of 4h, 3.00 available (limit: wallet of acme); a ttl of at most 3h fits", true},
		"nothing: all is there":   {4 * dollar, 20 * dollar, "", false},
		"a fee, though much more": {1, 1, "needs 20.00 USD for a ttl of 4h, 0.000000001 available (limit: budget all of acme/web)", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			l := fresh(t, address)
			granted(t, l, c.wallet)
			must(l.PutBudget(ctx, ledger.Budget{Account: Account, Name: "all", Currency: "USD", Limit: c.budget, Hard: true}))(t)
			_, looked := r.Against(Account, must(l.Balances(ctx, "acme"))(t), must(l.Budgets(ctx, "acme"))(t), nil, nil)
			_, err := begun(t, l, r)
			for _, err := range []error{looked, err} {
				var e *ledger.Insufficient
				if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &e) || e.Error() != c.want || e.Part != c.part) {
					t.Errorf("%v, want %q", err, c.want)
				}
			}
			verified(t, l)
		})
	}
}

// bothInAll: the full reservation counts for each payer alone.
func bothInAll(t *testing.T, address NewAddress) {
	ctx := context.Background()
	l := fresh(t, address)
	granted(t, l, 10)
	s := must(begun(t, l, ledger.Reserve{Currency: "USD", Amount: 5, Wallet: true, Own: ledger.Share{Amount: 4}}))(t)
	for i, c := range []struct{ amount, own, fee, memo int64 }{{8, 6, 2, 6}, {7, 3, 4, 3}, {3, 2, 1, 2}, {2, 2, 0, 2}, {6, 0, 6, 0},
		{0, 0, 0, 0}} {
		r := ledger.Reserve{Currency: "USD", Amount: c.amount, Own: ledger.Share{Amount: c.own}, Wallet: true, Total: true}
		must(l.Apply(ctx, ledger.Change{ID: s.ID, Key: step(s, string(rune('a'+i))), Reserve: &r}))(t)
		if w, m := balance(t, l, ledger.AccountWallet).DebitsPending, balance(t, l, ledger.AccountBYOK).DebitsPending; w != c.fee || m != c.memo {
			t.Errorf("in all %d, own %d: %d from the wallet and a memo of %d, want %d and %d", c.amount, c.own, w, m, c.fee, c.memo)
		}
		verified(t, l)
	}
}

func onlyTheFee(t *testing.T, address NewAddress) {
	ctx := context.Background()
	l := fresh(t, address)
	granted(t, l, 10)
	r := ledger.Reserve{Currency: "USD", Amount: 3, Wallet: true, Unknown: true, Total: true}
	must(begun(t, l, r))(t)
	if w := balance(t, l, ledger.AccountWallet); w.DebitsPending != 3 {
		t.Errorf("the fee is not set aside: %+v", w)
	}
	r.Amount = 8
	var short *ledger.Insufficient
	if _, err := begun(t, l, r); !errors.As(err, &short) {
		t.Errorf("a fee above what is there: %v", err)
	}
	must(l.PutBudget(ctx, ledger.Budget{Account: "acme", Name: "month", Currency: "USD", Limit: 1 << 40, Hard: true}))(t)
	var unpriced *ledger.Unpriced
	if _, err := begun(t, l, r); !errors.As(err, &unpriced) {
		t.Errorf("below a hard limit: %v", err)
	}
	verified(t, l)
}

func impossibleShares(t *testing.T, address NewAddress) {
	l := fresh(t, address)
	granted(t, l, 10)
	for _, own := range []ledger.Share{{Amount: 6}, {Amount: -1}, {Amount: 1, Fixed: -1}, {Amount: 1, Hourly: 1}, {Amount: 1, Fixed: 1}} {
		if _, err := begun(t, l, ledger.Reserve{Currency: "USD", Amount: 5, Own: own, Wallet: true}); !extensions.IsKind(err,
			extensions.KindInvalid) {
			t.Errorf("%+v: %v", own, err)
		}
	}
	verified(t, l)
}

// paidAfterwards: incoming and freed credit pays debts first.
func paidAfterwards(t *testing.T, address NewAddress) {
	ctx := context.Background()
	l := fresh(t, address)
	granted(t, l, 10)
	idle := must(begun(t, l, ledger.Reserve{Currency: "USD", Amount: 6, Wallet: true}))(t)
	paidLife(t, l, 4, 0, 13, 0)
	is := func(when string, free, spent, owed int64) {
		t.Helper()
		w, r := balance(t, l, ledger.AccountWallet), balance(t, l, ledger.AccountReceivable)
		if w.Available() != free || w.DebitsPosted != spent || r.Owed() != owed {
			t.Errorf("%s: wallet %+v, owed %d; want %d free, %d spent, %d owed", when, w, r.Owed(), free, spent, owed)
		}
		verified(t, l)
	}
	is("beyond what there is", 0, 4, 9)
	must(l.Apply(ctx, ledger.Change{ID: idle.ID, Key: "refused", To: "destroyed", Finish: &ledger.FinishIntent{Outcome: ledger.Failed}}))(t)
	is("what became free", 0, 10, 3)
	g := ledger.Grant{Key: "less", Org: "acme", Currency: "USD", Amount: 1}
	for range 2 {
		if w := must(l.Grant(ctx, g))(t); w.Available() != 0 {
			t.Errorf("%+v", w)
		}
	}
	is("a grant of less", 0, 11, 2)
	must(l.Grant(ctx, ledger.Grant{Key: "euro", Org: "acme", Currency: "EUR", Amount: 50}))(t)
	g = ledger.Grant{Key: "more", Org: "acme", Currency: "USD", Amount: 7}
	for range 2 {
		must(l.Grant(ctx, g))(t)
	}
	if revenue := balance(t, l, bank.AccountRevenue); revenue.CreditsPosted != 13 {
		t.Errorf("what was used is earned once: %+v", revenue)
	}
	usd := must(l.Balances(ctx, "acme"))(t)
	i := slices.IndexFunc(usd, func(b ledger.Balance) bool { return b.Kind == ledger.AccountWallet && b.Currency == "USD" })
	if usd[i].Available() != 5 || balance(t, l, ledger.AccountReceivable).Owed() != 0 {
		t.Errorf("a grant of more: %+v", usd)
	}
	events := must(l.Events(ctx, "acme", 1, 0))(t)
	if last := string(events[len(events)-1].CloudEvent); !strings.Contains(last, `"more/owed"`) {
		t.Errorf("the payment is in no event: %s", last)
	}
	verified(t, l)
}

// withoutCredit: others pay a life that began before there was any credit to its end, and its charges agree with its
// accounts.
func withoutCredit(t *testing.T, address NewAddress) {
	ctx := context.Background()
	l := fresh(t, address)
	for _, c := range []struct {
		name, wanted string
		r            *ledger.Reserve
	}{
		{"nothing set aside", ledger.AccountBYOK, nil},
		{"a memo", ledger.AccountBYOK, &ledger.Reserve{Currency: "USD", Amount: 5, IfGranted: true}},
		{"an own place", ledger.AccountInfra, &ledger.Reserve{Currency: "USD", Amount: 5, Memo: ledger.AccountInfra}},
		{"credit", "", &ledger.Reserve{Currency: "USD", Amount: 5, Wallet: true}},
	} {
		if c.wanted == "" {
			granted(t, l, dollar)
		}
		b := want(newID(t), holderOf(t, l), c.name)
		b.Reserve = c.r
		s := must(l.Begin(ctx, b))(t)
		s = must(l.Apply(ctx, provisioning(s)))(t)
		s = must(l.Apply(ctx, ready(s)))(t)
		gone(t, l, s)
		f := ledger.UsageFilter{SandboxID: s.ID}
		u := must(l.Usage(ctx, f))(t)[0]
		sums := map[string]int64{"": u.Wallet, ledger.AccountBYOK: u.OwnKey, ledger.AccountInfra: u.OwnPlace}
		for kind, n := range sums {
			if (n > 0) != (kind == c.wanted) {
				t.Errorf("%s: usage says %+v", c.name, u)
			}
		}
	}
	u := must(l.Usage(ctx, ledger.UsageFilter{}))(t)[0]
	for kind, n := range map[string]int64{ledger.AccountWallet: u.Wallet, ledger.AccountBYOK: u.OwnKey, ledger.AccountInfra: u.OwnPlace} {
		if b := balance(t, l, kind); b.DebitsPosted != n || n == 0 {
			t.Errorf("usage says %d and the account is %+v", n, b)
		}
	}
	verified(t, l)
}
