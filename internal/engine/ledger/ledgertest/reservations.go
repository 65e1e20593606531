package ledgertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func reservations(t *testing.T, address NewAddress) {
	t.Run("what is needed in all", func(t *testing.T) { t.Parallel(); totals(t, address) })
	t.Run("credit once there was any", func(t *testing.T) { t.Parallel(); onceGranted(t, address) })
	t.Run("credit for a worst case of nothing", func(t *testing.T) { t.Parallel(); nothingForeseen(t, address) })
	t.Run("no known price", func(t *testing.T) { t.Parallel(); unpriced(t, address) })
	t.Run("nobody will ever know", func(t *testing.T) { t.Parallel(); exposed(t, address) })
	t.Run("used and not set aside", func(t *testing.T) { t.Parallel(); notSetAside(t, address) })
	t.Run("a look before", func(t *testing.T) { t.Parallel(); lookedAt(t, address) })
}

// charging makes a change close the meter with the charges.
func charging(c ledger.Change, cs ...ledger.Charge) ledger.Change {
	bills.Put(c.ID, cs...)
	return c
}

func heldBy(t *testing.T, l *ledger.Ledger, id extensions.ID) (sum int64, n int) {
	t.Helper()
	all := must(l.Held(context.Background(), id))(t)
	for _, x := range all {
		sum += x.Amount
	}
	return sum, len(all)
}

// begun begins a sandbox that reserves r.
func begun(t *testing.T, l *ledger.Ledger, r ledger.Reserve) (ledger.Sandbox, error) {
	t.Helper()
	b := want(newID(t), holderOf(t, l), string(newID(t)))
	b.Reserve = &r
	return l.Begin(context.Background(), b)
}

func totals(t *testing.T, address NewAddress) {
	ctx := context.Background()
	l := fresh(t, address)
	granted(t, l, 10)
	must(l.PutBudget(ctx, ledger.Budget{Account: Account, Name: "all", Currency: "USD", Limit: 9, Hard: true}))(t)
	s := must(begun(t, l, ledger.Reserve{Currency: "USD", Amount: 4, Wallet: true}))(t)
	n := 0
	total := func(amount, sum int64, parts int, r ledger.Reserve) error {
		t.Helper()
		n++
		r.Amount, r.Total = amount, true
		_, err := l.Apply(ctx, ledger.Change{ID: s.ID, Key: step(s, string(rune('a'+n))), Reserve: &r})
		if got, k := heldBy(t, l, s.ID); got != sum || k != parts {
			t.Errorf("in all %d: %d are held in %d parts, want %d in %d (%v)", amount, got, k, sum, parts, err)
		}
		if b := must(l.Budgets(ctx, "acme"))(t)[0]; b.Reserved != sum {
			t.Errorf("the budget holds %+v", b)
		}
		verified(t, l)
		return err
	}
	wallet := ledger.Reserve{Currency: "USD", Wallet: true, TTL: 2 * time.Hour, Hourly: 4}
	for _, c := range []struct {
		amount, sum int64
		parts       int
	}{{4, 4, 1}, {6, 6, 2}, {9, 9, 3}, {7, 7, 3}, {6, 6, 2}, {5, 5, 2}, {1, 1, 1}, {4, 4, 2}} {
		if err := total(c.amount, c.sum, c.parts, wallet); err != nil {
			t.Error(err)
		}
	}
	err := total(10, 4, 2, wallet)
	var e *ledger.Insufficient
	if !errors.As(err, &e) || e.Error() != "needs 0.000000006 USD more for a ttl of 2h (0.000000004 is already set aside), 0.000000005 "+
		"available (limit: budget all of acme/web); a ttl of at most 2h fits" {
		t.Errorf("%v", err)
	}
	// A change that lowers it is never refused, even by limits set since.
	must(l.PutBudget(ctx, ledger.Budget{Account: Account, Name: "all", Currency: "USD", Limit: 1, Hard: true}))(t)
	if err := total(3, 3, 2, wallet); err != nil {
		t.Error(err)
	}
	must(l.PutBudget(ctx, ledger.Budget{Account: Account, Name: "all", Currency: "USD", Limit: 9, Hard: true}))(t)
	// Another place with another payer replaces it.
	if err := total(3, 3, 1, ledger.Reserve{Currency: "USD", Memo: ledger.AccountInfra}); err != nil ||
		balance(t, l, ledger.AccountWallet).Available() != 10 {
		t.Error(err)
	}
	if err := total(0, 0, 0, ledger.Reserve{}); err != nil {
		t.Error(err)
	}
}

func onceGranted(t *testing.T, address NewAddress) {
	ctx := context.Background()
	l := fresh(t, address)
	r := ledger.Reserve{Currency: "USD", Amount: 5, IfGranted: true, Total: true}
	before := must(begun(t, l, r))(t)
	if w := balance(t, l, ledger.AccountWallet); w.ID != "" {
		t.Errorf("a wallet appeared: %+v", w)
	}
	granted(t, l, 7)
	after := must(begun(t, l, r))(t)
	if _, err := begun(t, l, r); !extensions.IsKind(err, extensions.KindExhausted) {
		t.Errorf("more than was granted: %v", err)
	}
	r.Amount = 7 // the payer of the beginning also pays for a later end
	must(l.Apply(ctx, ledger.Change{ID: before.ID, Key: "later", Reserve: &r}))(t)
	if w := balance(t, l, ledger.AccountWallet); w.DebitsPending != 5 {
		t.Errorf("%+v", w)
	}
	must(l.Apply(ctx, ledger.Change{ID: after.ID, Key: "later too", Reserve: &r}))(t)
	if w := balance(t, l, ledger.AccountWallet); w.DebitsPending != 7 {
		t.Errorf("%+v", w)
	}
	verified(t, l)
}

func unpriced(t *testing.T, address NewAddress) {
	ctx := context.Background()
	l := fresh(t, address)
	r := ledger.Reserve{Unknown: true, Total: true}
	must(l.PutBudget(ctx, ledger.Budget{Account: "acme/other", Name: "day", Currency: "USD", Hard: true}))(t)
	must(l.PutBudget(ctx, ledger.Budget{Account: "acme", Name: "soft", Currency: "USD"}))(t)
	must(begun(t, l, r))(t)
	must(l.PutBudget(ctx, ledger.Budget{Account: "acme", Name: "month", Currency: "EUR", Hard: true, Limit: 1 << 40}))(t)
	_, err := begun(t, l, r)
	var e *ledger.Unpriced
	if !errors.As(err, &e) || !extensions.IsKind(err, extensions.KindExhausted) || e.Limit != "budget month of acme" {
		t.Errorf("%v", err)
	}
	verified(t, l)
}

func exposed(t *testing.T, address NewAddress) {
	ctx := context.Background()
	l := fresh(t, address)
	granted(t, l, 10)
	must(l.PutBudget(ctx, ledger.Budget{Account: Account, Name: "all", Currency: "USD", Limit: 9, Hard: true}))(t)
	s := must(begun(t, l, ledger.Reserve{Currency: "USD", Amount: 4, Wallet: true}))(t)
	c := ledger.Change{ID: s.ID, Key: "gone", To: lifecycle.Destroyed, Finish: &ledger.FinishIntent{Outcome: ledger.Abandoned},
		Unresolved: true,
		Event:      ledger.Note{Type: "sandbox.unresolved"}}
	for range 2 {
		must(l.Apply(ctx, c))(t)
	}
	if w, x := balance(t, l, ledger.AccountWallet), balance(t, l, bank.AccountExposure); w.Available() != 10 || x.DebitsPosted != 4 ||
		x.CreditsPosted != 4 {
		t.Errorf("%+v %+v", w, x)
	}
	if b := must(l.Budgets(ctx, "acme"))(t)[0]; b.Reserved != 0 || b.Spent != 0 {
		t.Errorf("%+v", b)
	}
	verified(t, l)
}

func notSetAside(t *testing.T, address NewAddress) {
	ctx := context.Background()
	l := fresh(t, address)
	must(l.PutBudget(ctx, ledger.Budget{Account: Account, Name: "all", Currency: "USD", Limit: 9, Hard: true}))(t)
	must(l.PutBudget(ctx, ledger.Budget{Account: "acme", Name: "soft", Currency: "USD", Limit: 2}))(t)
	s := made(t, l, "n")
	s = must(l.Apply(ctx, destroying(s, holderOf(t, l))))(t)
	must(l.Apply(ctx, charging(destroyed(s), ledger.Charge{Segment: 1, Component: "wall", Amount: 3, Currency: "USD", Memo: "infra_memo:x"},
		ledger.Charge{Segment: 1, Component: "other", Amount: 3, Currency: "EUR"})))(t)
	for _, b := range must(l.Budgets(ctx, "acme"))(t) {
		if b.Spent != 3 || b.Over != 3 || b.Reserved != 0 {
			t.Errorf("%+v", b)
		}
	}
	verified(t, l)
}

func lookedAt(t *testing.T, address NewAddress) {
	ctx := context.Background()
	l := fresh(t, address)
	granted(t, l, 10)
	must(l.PutBudget(ctx, ledger.Budget{Account: Account, Name: "all", Currency: "USD", Limit: 9, Hard: true}))(t)
	must(l.PutBudget(ctx, ledger.Budget{Account: "acme", Name: "soft", Currency: "USD", Limit: 2}))(t)
	must(l.PutBudget(ctx, ledger.Budget{Account: "acme/ops", Name: "none", Currency: "USD", Hard: true}))(t)
	s := must(begun(t, l, ledger.Reserve{Currency: "USD", Amount: 4, Wallet: true}))(t)
	held := must(l.Held(ctx, s.ID))(t)
	for _, c := range []struct {
		r    ledger.Reserve
		free []ledger.Transfer
		soft int
		want string
	}{
		{ledger.Reserve{Currency: "USD", Amount: 5, Wallet: true}, nil, 1, ""},
		{ledger.Reserve{Currency: "USD", Amount: 6, IfGranted: true}, nil, 1,
			"needs 0.000000006 USD, 0.000000005 available (limit: budget all of acme/web)"},
		{ledger.Reserve{Currency: "USD", Amount: 9, Wallet: true}, held, 1, ""},
		{ledger.Reserve{Currency: "USD", Amount: 2, Wallet: true}, held, 0, ""},
		{ledger.Reserve{Currency: "EUR", Amount: 1, IfGranted: true}, nil, 0, ""},
		{ledger.Reserve{Currency: "EUR", Amount: 1, Wallet: true}, nil, 0, "needs 0.000000001 EUR, 0.00 available (limit: wallet of acme)"},
		{ledger.Reserve{Unknown: true}, nil, 0, "its price is unknown, so it cannot be kept below a hard limit (limit: budget all of acme/web)"},
	} {
		soft, err := c.r.Against(Account, must(l.Balances(ctx, "acme"))(t), must(l.Budgets(ctx, "acme"))(t), c.free, nil)
		text := ""
		var e *extensions.Error
		if errors.As(err, &e) {
			text = e.Err.Error()
		}
		if text != c.want || len(soft) != c.soft {
			t.Errorf("%+v: %q, %+v", c.r, text, soft)
		}
		// The transaction agrees, unless something is released first.
		if c.free == nil {
			_, err := begun(t, l, c.r)
			if (err == nil) != (c.want == "") {
				t.Errorf("%+v: %v", c.r, err)
			}
			if err == nil {
				for _, other := range must(l.List(ctx, ledger.Filter{Live: true}))(t) {
					if other.ID != s.ID {
						must(l.Apply(ctx, ledger.Change{ID: other.ID, Key: string(other.ID) + "/refused", To: lifecycle.Destroyed,
							Finish: &ledger.FinishIntent{Outcome: ledger.Failed}}))(t)
					}
				}
			}
		}
	}
	verified(t, l)
}
