package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// With the user's own key the wallet pays the fee and nothing else: it is set
// aside for the ttl, refused where there is too little, and settled.
func TestAFeeComesOutOfTheWalletAlthoughAnotherPaysTheVendor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "extensions"), 0o700); err != nil {
		t.Fatal(err)
	}
	const binding = "id: ext.saas-stub\nhandler: saas-stub\nbilling: byok\nfee: { per_creation: \"0.20 USD\", per_hour: \"0.10 USD\", billing: byok }\n"
	if err := os.WriteFile(filepath.Join(dir, "extensions", "fee.yaml"), []byte(binding), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Options{Extensions: all(), StateDir: b.dir, Account: "acme/web", Catalog: []string{"testdata/catalog", dir}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	req := engine.Request{Profile: "profile.stub", Name: "one", TTL: "2h", Billing: "byok"}
	if _, err := e.Create(ctx, req, nil, nil); !extensions.IsKind(err, extensions.KindExhausted) {
		t.Fatalf("without credit for the fee: %v", err)
	}
	var vendor ledger.Balance
	var budget ledger.Budget
	wallet := func(use func(ledger.Ledger)) (w ledger.Balance) {
		t.Helper()
		l, err := ledger.Open(ctx, ledger.DefaultURL(b.dir), ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		if use != nil {
			use(l)
		}
		all, err := l.Balances(ctx, "acme")
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range all {
			switch x.Kind {
			case ledger.AccountWallet:
				w = x
			case ledger.AccountBYOK:
				vendor = x
			}
		}
		if bs, err := l.Budgets(ctx, "acme"); err != nil {
			t.Fatal(err)
		} else if len(bs) > 0 {
			budget = bs[0]
		}
		return w
	}
	wallet(func(l ledger.Ledger) {
		if _, err := l.Grant(ctx, ledger.Grant{Key: "g", Org: "acme", Currency: "USD", Amount: 1e9}); err != nil {
			t.Fatal(err)
		}
	})
	limit := func(amount int64) {
		wallet(func(l ledger.Ledger) {
			if _, err := l.PutBudget(ctx, ledger.Budget{Account: "acme/web", Name: "all", Currency: "USD", Limit: amount, Hard: true}); err != nil {
				t.Fatal(err)
			}
		})
	}
	limit(400_000_010) // the fee alone, of what counts
	if _, err := e.Create(ctx, req, nil, nil); !extensions.IsKind(err, extensions.KindExhausted) || !strings.Contains(err.Error(), "budget all of acme/web") {
		t.Fatalf("a budget has to count what the vendor is paid: %v", err)
	}
	limit(1000e9)
	s, err := e.Create(ctx, req, nil, nil)
	if err != nil {
		t.Fatalf("%v (%s)", err, extensions.RemedyOf(err))
	}
	if held := wallet(nil).DebitsPending; held < 400_000_000 || held > 400_000_010 {
		t.Errorf("%d nano-units are set aside for a creation and two hours", held)
	} else if vendor.DebitsPending <= 0 || budget.Reserved != held+vendor.DebitsPending {
		t.Errorf("the wallet holds %d, the memo %+v, the budget %+v", held, vendor, budget)
	}
	if _, err := e.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil {
		t.Fatal(err)
	}
	after := wallet(nil)
	if after.DebitsPending != 0 || after.DebitsPosted < 200_000_000 || after.DebitsPosted > 200_000_000+int64(time.Minute/time.Millisecond)*100_000 {
		t.Errorf("settled: %+v", after)
	}
	if vendor.DebitsPosted <= 0 || vendor.DebitsPending != 0 || budget.Reserved != 0 || budget.Spent != after.DebitsPosted+vendor.DebitsPosted {
		t.Errorf("settled: wallet %+v, memo %+v, budget %+v", after, vendor, budget)
	}
	if _, findings, err := verifyLedger(ctx, e); err != nil || len(findings) > 0 {
		t.Errorf("%v, %v", findings, err)
	}
}
