package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
)

// fund gives the org credit and a hard budget, so that what is made from here
// on is paid for.
func (b *bench) fund() {
	b.t.Helper()
	ctx := context.Background()
	l := b.book()
	_, err := l.Grant(ctx, ledger.Grant{Key: "credit", Org: "acme", Currency: "USD", Amount: 1_000_000_000_000})
	if err == nil {
		_, err = l.PutBudget(ctx, ledger.Budget{Account: "acme", Name: "all", Currency: "USD", Limit: 1_000_000_000_000, Hard: true})
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// accounted demands that nothing lives without a row, that no row is without its
// thing, and that funds are set aside for what lives and for nothing else. It
// returns how much that is.
func (b *bench) accounted() (held int64) {
	b.t.Helper()
	ctx := context.Background()
	l := b.book()
	rows, err := l.List(ctx, ledger.Filter{})
	if err != nil {
		b.t.Fatal(err)
	}
	things := b.left()
	wallet := int64(0)
	for _, r := range rows {
		if lifecycle.Usable(r.State) != slices.Contains(things, string(r.ID)) {
			b.t.Errorf("%s is %s, and these are there: %v", r.ID, r.State, things)
		}
		things = slices.DeleteFunc(things, func(id string) bool { return id == string(r.ID) })
		all, err := l.Held(ctx, r.ID)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, x := range all {
			if lifecycle.Terminal(r.State) {
				b.t.Errorf("%s is over, and %s still holds %d", r.ID, x.ID, x.Amount)
			}
			held += x.Amount
			if strings.Contains(x.Debit, ":"+ledger.AccountWallet+":") {
				wallet += x.Amount
			}
		}
	}
	if len(things) > 0 {
		b.t.Errorf("without a row: %v", things)
	}
	balances, err := l.Balances(ctx, "acme")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, a := range balances {
		if a.Kind == ledger.AccountWallet && a.DebitsPending != wallet {
			b.t.Errorf("%d are held, and the wallet is %+v", wallet, a)
		}
	}
	return held
}

func TestWhatLivesIsPaidForAndWhatIsOverHoldsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fund()
	rec := b.converge("profile.stub", "one")
	if held := b.accounted(); held == 0 {
		t.Error("nothing is set aside: the tests of kills prove nothing about funds")
	}
	if _, err := b.again(order{Do: "destroy", Receipt: rec}); err != nil {
		t.Fatal(err)
	}
	if held := b.accounted(); held != 0 {
		t.Errorf("%d are still held", held)
	}
}
