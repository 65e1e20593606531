package engine_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

const stubPrices = `id: prices.saas-stub
extension: ext.saas-stub
version: "2026-08-01"
as_of: "2026-08-01"
valid_until: "2036-11-21"
source: "the client's own idea"
currency: USD
confidence: exact
billing: wall-clock
idle: zero
components:
  - { component: sandbox, unit: sandbox-hour, price: "0.000000001" }
`

// A client whose catalog is cheaper pays what the server's catalog says, and
// has no more credit than the server's ledger.
func TestAClientPaysTheServersPrices(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "testdata/catalog")
	ctx := context.Background()
	books := o.books()
	grant := func(key string, amount int64) {
		t.Helper()
		if _, err := books.Grant(ctx, ledger.Grant{Key: key, Org: "acme", Currency: "USD", Amount: amount}); err != nil {
			t.Fatal(err)
		}
	}
	wallet := func() ledger.Balance {
		t.Helper()
		all, err := books.Balances(ctx, "acme")
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range all {
			if b.Kind == ledger.AccountWallet {
				return b
			}
		}
		return ledger.Balance{}
	}
	profile, err := os.ReadFile("testdata/catalog/profiles/profile.stub.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, dir: t.TempDir()}
	t.Cleanup(b.removeAll)
	token := o.token("acme/web")
	o.catalog = folder(t, map[string]string{"prices/prices.saas-stub.yaml": stubPrices, "profiles/profile.stub.yaml": string(profile)})
	e := o.client(b.dir, "acme/web", token)
	req := engine.Request{Profile: "profile.stub", Name: "one", TTL: "2h"}

	grant("little", 50_000_000) // less than two hours cost
	s, err := e.Create(ctx, req, nil, nil)
	var short *ledger.Insufficient
	if !errors.As(err, &short) || s.ID != "" || short.Need < 100_000_000 || !strings.Contains(err.Error(), "wallet of acme") {
		t.Fatalf("with 0.05 USD: %v, %v", s.ID, err)
	}
	grant("enough", 1_000_000_000)
	if s, err = e.Create(ctx, req, nil, nil); err != nil {
		t.Fatal(err)
	}
	if w := wallet(); w.DebitsPending < 100_000_000 {
		t.Errorf("set aside: %+v", w)
	}
	time.Sleep(20 * time.Millisecond)
	r, err := e.Destroy(ctx, s.Receipt, engine.DestroyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w := wallet()
	if w.DebitsPending != 0 || w.DebitsPosted < 1_000_000 || len(r.Charges) < 3 { // at least the fee, and a second of each
		t.Errorf("charged %+v; %+v", r.Charges, w)
	}
	o.sound()
}
