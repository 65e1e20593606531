package engine_test

import (
	"context"
	"errors"
	"fmt"
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

// A region that a profile demands is part of what the server prices.
func TestTheServerPricesTheDemandedRegion(t *testing.T) {
	t.Parallel()
	profile := func(id, rest string) string {
		return "id: " + id + "\nversion: \"1.0.0\"\nextension: ext.mine\nisolation: { level: container }\nnetwork: { default: deny }\n" +
			"workspace: { mode: remote-canonical, access: rw }\nttl: { default: 1h, max: 24h }\n" + rest
	}
	ctx := context.Background()
	o := newOffice(t, folder(t, map[string]string{
		"extensions/ext.mine.yaml": "id: ext.mine\nhandler: saas-stub\nconfig: { dir: \"" + t.TempDir() + "\" }\n",
		"profiles/us.yaml":         profile("profile.us", "route: { constraints: { region: us } }\n"),
		"profiles/any.yaml":        profile("profile.any", ""),
		"prices/mine.yaml": "id: prices.mine\nextension: ext.mine\nversion: \"1\"\nas_of: \"2026-10-01\"\nsource: a test\ncurrency: USD\nconfidence: exact\nbilling: wall-clock\n" +
			"components:\n  - { component: sandbox, unit: sandbox-hour, price: \"1\" }\n  - { component: surcharge, region: us, unit: charged, price: \"0.5\" }\n",
	}))
	if _, err := o.books().Grant(ctx, ledger.Grant{Key: "g", Org: "acme", Currency: "USD", Amount: 10_000_000_000}); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, dir: t.TempDir()}
	t.Cleanup(b.removeAll)
	e := o.client(b.dir, "acme/web", o.token("acme/web"))
	for profile, want := range map[string]int64{"profile.us": 1_500_000_000, "profile.any": 1_000_000_000} {
		s, err := e.Create(ctx, engine.Request{Profile: profile, Name: profile}, nil, nil)
		if err != nil {
			t.Fatal(told(err))
		}
		for again := range 2 {
			held, err := o.books().Held(ctx, s.ID)
			if err != nil || len(held) != 1 || held[0].Amount != want {
				t.Errorf("%s, life %d: set aside %+v, %v", profile, again+1, held, err)
			}
			if again == 0 {
				if s, err = e.Recreate(ctx, s.Receipt, nil, nil); err != nil {
					t.Fatal(told(err))
				}
			}
		}
		r, err := e.Destroy(ctx, s.Receipt, engine.DestroyOptions{})
		if err != nil || (profile == "profile.us") != strings.Contains(fmt.Sprint(r.Charges), "surcharge") {
			t.Errorf("%s: %+v, %v", profile, r.Charges, err)
		}
	}
	o.sound()
}
