package engine_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// The fee is the server's, whatever the client's catalog says: with the client's
// own key the server's wallet pays it, and budgets count the vendor too.
func TestAClientWithItsOwnKeyPaysTheServersFee(t *testing.T) {
	t.Parallel()
	profile, err := os.ReadFile("testdata/catalog/profiles/profile.stub.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"profiles/profile.stub.yaml": string(profile)}
	plain := folder(t, files)
	files["extensions/fee.yaml"] = "id: ext.saas-stub\nhandler: saas-stub\nbilling: byok\nfee: { per_creation: \"0.20 USD\", per_hour: \"0.10 USD\", billing: byok }\n"
	o := newOffice(t, folder(t, files))
	ctx := context.Background()
	books := o.books()
	o.catalog = plain
	b := &bench{t: t, dir: t.TempDir()}
	t.Cleanup(b.removeAll)
	e := o.client(b.dir, "acme/web", o.token("acme/web"))
	req := engine.Request{Profile: "profile.stub", Name: "one", TTL: "2h", Billing: "byok"}
	_, err = e.Create(ctx, req, nil, nil)
	var short *ledger.Insufficient
	if !errors.As(err, &short) || !short.Part || short.Limit != "wallet of acme" {
		t.Fatalf("without credit for the fee: %v", err)
	}
	if _, err := books.Grant(ctx, ledger.Grant{Key: "g", Org: "acme", Currency: "USD", Amount: 1e9}); err != nil {
		t.Fatal(err)
	}
	if _, err := books.PutBudget(ctx, ledger.Budget{Account: "acme/web", Name: "all", Currency: "USD", Limit: 1000e9, Hard: true}); err != nil {
		t.Fatal(err)
	}
	now := func() (wallet, vendor ledger.Balance, all ledger.Budget) {
		t.Helper()
		balances, err := books.Balances(ctx, "acme")
		bs, berr := books.Budgets(ctx, "acme")
		if err = errors.Join(err, berr); err != nil || len(bs) != 1 {
			t.Fatal(bs, err)
		}
		for _, x := range balances {
			switch x.Kind {
			case ledger.AccountWallet:
				wallet = x
			case ledger.AccountBYOK:
				vendor = x
			}
		}
		return wallet, vendor, bs[0]
	}
	s, err := e.Create(ctx, req, nil, nil)
	if err != nil {
		t.Fatal(told(err))
	}
	w, v, all := now()
	if w.DebitsPending < 400_000_000 || w.DebitsPending > 400_000_010 || v.DebitsPending <= 0 || all.Reserved != w.DebitsPending+v.DebitsPending {
		t.Errorf("set aside: wallet %+v, memo %+v, budget %+v", w, v, all)
	}
	if _, err := e.ExtendTTL(ctx, s.Receipt, 3*time.Hour); err != nil {
		t.Fatal(told(err))
	}
	if w, v, all = now(); w.DebitsPending < 490_000_000 || w.DebitsPending > 500_000_020 || all.Reserved != w.DebitsPending+v.DebitsPending {
		t.Errorf("for three hours: wallet %+v, memo %+v, budget %+v", w, v, all)
	}
	if _, err := e.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil {
		t.Fatal(told(err))
	}
	w, v, all = now()
	if w.DebitsPending != 0 || w.DebitsPosted < 200_000_000 || w.DebitsPosted > 210_000_000 || v.DebitsPending != 0 || v.DebitsPosted <= 0 ||
		all.Reserved != 0 || all.Spent != w.DebitsPosted+v.DebitsPosted {
		t.Errorf("settled: wallet %+v, memo %+v, budget %+v", w, v, all)
	}
	o.sound()
}
