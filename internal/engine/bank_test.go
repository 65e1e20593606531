package engine_test

import (
	"context"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/pgtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

const dollar = 1_000_000_000 // nano-units

// later is another process after so long, at the vendors and at the ledger's
// server too.
func (b *bench) later(d time.Duration) *engine.Engine {
	b.t.Helper()
	for _, dir := range []string{b.vendor, b.dear} {
		if err := vendor.At(dir).Advance(d); err != nil {
			b.t.Fatal(err)
		}
	}
	if engine.SharedLedger(b.Ledger) {
		pgtest.Advance(b.t, b.Ledger, d)
	}
	before := b.Now
	if before == nil {
		before = time.Now
	}
	b.Now = func() time.Time { return before().Add(d) }
	return b.reopen()
}

// rows are all sandboxes of the ledger.
func (b *bench) rows() []ledger.Sandbox {
	b.t.Helper()
	rows, err := b.book().List(context.Background(), ledger.Filter{})
	if err != nil {
		b.t.Fatal(err)
	}
	return rows
}

// meters are those of a sandbox, one for each life.
func (b *bench) meters(id engine.ID) []ledger.Meter {
	b.t.Helper()
	ms, err := b.book().Meters(context.Background(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	return ms
}

// meter is the only one of a sandbox.
func (b *bench) meter(id engine.ID) ledger.Meter {
	b.t.Helper()
	ms := b.meters(id)
	if len(ms) != 1 {
		b.t.Fatalf("%+v", ms)
	}
	return ms[0]
}

func (b *bench) grant(amount int64) {
	b.t.Helper()
	id, err := extensions.NewID(nil)
	if err == nil {
		_, err = b.book().Grant(b.t.Context(), ledger.Grant{Key: string(id), Org: "acme", Currency: "USD", Amount: amount})
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) budget(name string, limit int64, hard bool) {
	b.t.Helper()
	if _, err := b.book().PutBudget(b.t.Context(),
		ledger.Budget{Account: "acme/web", Name: name, Currency: "USD", Limit: limit, Hard: hard}); err != nil {
		b.t.Fatal(err)
	}
}

// limit is a hard budget of a workspace, or of the whole org.
func (b *bench) limit(account string, limit int64) {
	b.t.Helper()
	if _, err := b.book().PutBudget(b.t.Context(),
		ledger.Budget{Account: account, Name: "cap", Currency: "USD", Limit: limit, Hard: true}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) balance(kind string) ledger.Balance {
	b.t.Helper()
	all, err := b.book().Balances(b.t.Context(), "acme")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, x := range all {
		if x.Kind == kind && x.Currency == "USD" {
			return x
		}
	}
	return ledger.Balance{}
}

func (b *bench) theBudget(name string) ledger.Budget {
	b.t.Helper()
	all, err := b.book().Budgets(b.t.Context(), "acme")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, x := range all {
		if x.Name == name {
			return x
		}
	}
	b.t.Fatalf("there is no budget %s: %+v", name, all)
	return ledger.Budget{}
}

func (b *bench) held(id engine.ID) (sum int64) {
	b.t.Helper()
	all, err := b.book().Held(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, x := range all {
		sum += x.Amount
	}
	return sum
}

// pays checks what is free in the wallet, held back and spent.
func (b *bench) pays(when string, free, held, spent int64) {
	b.t.Helper()
	if w := b.balance(ledger.AccountWallet); w.Available() != free || w.DebitsPending != held || w.DebitsPosted != spent {
		b.t.Errorf("%s: free %d, held %d, spent %d; want %d, %d, %d", when, w.Available(), w.DebitsPending, w.DebitsPosted, free, held, spent)
	}
}

// refused expects a create to fail so, and to leave nothing.
func (b *bench) refused(e *engine.Engine, req engine.Request, kind extensions.Kind, want ...string) {
	b.t.Helper()
	if req.Profile == "" {
		req.Profile = "profile.mine"
	}
	s, err := e.Create(b.t.Context(), req, nil, nil)
	if !extensions.IsKind(err, kind) || s.ID != "" {
		b.t.Fatalf("%s, %s: %v", s.ID, extensions.KindOf(err), err)
	}
	for _, w := range want {
		if !strings.Contains(told(err), w) {
			b.t.Errorf("told %q, want %q", told(err), w)
		}
	}
}

func (b *bench) verified() {
	b.t.Helper()
	r, err := b.book().Verify(context.Background())
	if err != nil || len(r.Problems) > 0 {
		b.t.Errorf("the ledger is not consistent: %q, %v", r.Problems, err)
	}
}

// atHome is a catalog part with this machine at a price.
func atHome() map[string]string {
	return map[string]string{
		"extensions/ext.own.yaml":   "id: ext.own\nhandler: local\ncost: { per_hour: \"2.00 USD\" }\n",
		"profiles/profile.own.yaml": "id: profile.own\nversion: \"1.0.0\"\nextension: ext.own\n" + open,
	}
}
