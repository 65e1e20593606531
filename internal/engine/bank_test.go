package engine_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/pgtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

const dollar = 1_000_000_000 // nano-units

// bank is an engine for an org that pays a vendor by the hour: a dollar at
// ext.mine, three at ext.dear, nobody knows what at ext.dim.
type bank struct {
	*engine.Engine
	t      *testing.T
	o      order
	vendor string // folder of ext.mine
	dear   string
	l      ledger.Ledger
	now    func() time.Time
}

// onBoth runs a test with a ledger in a file and with one in PostgreSQL.
func onBoth(t *testing.T, more map[string]string, f func(t *testing.T, b *bank)) {
	t.Helper()
	for name, address := range map[string]func() string{"sqlite": func() string { return "" }, "postgres": func() string { return withClock(t, pgtest.New(t)) }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &bank{t: t, vendor: t.TempDir(), dear: t.TempDir()}
			at := func(id, dir, rest string) string {
				return "id: " + id + "\nhandler: saas-stub\nconfig: { dir: \"" + dir + "\" }\n" + rest
			}
			profile := func(id, rest string) string {
				return "id: " + id + "\nversion: \"1.0.0\"\nisolation: { level: container }\nnetwork: { default: deny }\n" +
					"workspace: { mode: remote-canonical, access: rw }\nttl: { default: 1h, max: 24h }\n" + rest
			}
			files := map[string]string{
				"extensions/ext.mine.yaml":     at("ext.mine", b.vendor, "priority: 10\ncost: { per_hour: \"1.00 USD\" }\n"),
				"extensions/ext.dear.yaml":     at("ext.dear", b.dear, "cost: { per_hour: \"3.00 USD\" }\n"),
				"extensions/ext.dim.yaml":      at("ext.dim", t.TempDir(), ""),
				"profiles/profile.mine.yaml":   profile("profile.mine", "extension: ext.mine\n"),
				"profiles/profile.dim.yaml":    profile("profile.dim", "extension: ext.dim\n"),
				"profiles/profile.either.yaml": profile("profile.either", "route: { fallback: [ext.mine, ext.dear] }\n"),
			}
			maps.Copy(files, more)
			b.o = order{Dir: t.TempDir(), Profile: "profile.mine", Ledger: address(), Catalog: folder(t, files), Lease: fleetLease}
			if b.o.Ledger == "" {
				b.o.Ledger = ledger.DefaultURL(b.o.Dir)
			}
			b.Engine = b.again()
			l, err := ledger.Open(t.Context(), b.o.Ledger, ledger.Options{})
			if err != nil {
				t.Fatal(err)
			}
			b.l = l
			t.Cleanup(func() {
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
			f(t, b)
			b.verified()
		})
	}
}

// withClock gives the database at address a clock of its own, for bank.later.
func withClock(t *testing.T, address string) string {
	t.Helper()
	pgtest.OwnClock(t, address)
	return address
}

// again is another process at the clock's present time.
func (b *bank) again() *engine.Engine {
	b.t.Helper()
	e, err := engine.New(engine.Options{Extensions: all(), StateDir: b.o.Dir, Account: "acme/web", Now: b.now, Catalog: []string{b.o.Catalog}, Ledger: b.o.Ledger, Lease: b.o.Lease})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := e.Close(); err != nil {
			b.t.Error(err)
		}
	})
	return e
}

// later is another process after so long, at the vendors and at the ledger's
// server too.
func (b *bank) later(d time.Duration) *engine.Engine {
	b.t.Helper()
	for _, dir := range []string{b.vendor, b.dear} {
		if err := vendor.At(dir).Advance(d); err != nil {
			b.t.Fatal(err)
		}
	}
	if engine.SharedLedger(b.o.Ledger) {
		pgtest.Advance(b.t, b.o.Ledger, d)
	}
	before := b.now
	if before == nil {
		before = time.Now
	}
	b.now = func() time.Time { return before().Add(d) }
	return b.again()
}

func (b *bank) grant(amount int64) {
	b.t.Helper()
	id, err := extensions.NewID(nil)
	if err == nil {
		_, err = b.l.Grant(b.t.Context(), ledger.Grant{Key: string(id), Org: "acme", Currency: "USD", Amount: amount})
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bank) budget(name string, limit int64, hard bool) {
	b.t.Helper()
	if _, err := b.l.PutBudget(b.t.Context(), ledger.Budget{Account: "acme/web", Name: name, Currency: "USD", Limit: limit, Hard: hard}); err != nil {
		b.t.Fatal(err)
	}
}

// limit is a hard budget of a workspace, or of the whole org.
func (b *bank) limit(account string, limit int64) {
	b.t.Helper()
	if _, err := b.l.PutBudget(b.t.Context(), ledger.Budget{Account: account, Name: "cap", Currency: "USD", Limit: limit, Hard: true}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bank) balance(kind string) ledger.Balance {
	b.t.Helper()
	all, err := b.l.Balances(b.t.Context(), "acme")
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

func (b *bank) theBudget(name string) ledger.Budget {
	b.t.Helper()
	all, err := b.l.Budgets(b.t.Context(), "acme")
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

func (b *bank) held(id engine.ID) (sum int64) {
	b.t.Helper()
	all, err := b.l.Held(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, x := range all {
		sum += x.Amount
	}
	return sum
}

// pays checks what is free in the wallet, held back and spent.
func (b *bank) pays(when string, free, held, spent int64) {
	b.t.Helper()
	if w := b.balance(ledger.AccountWallet); w.Available() != free || w.DebitsPending != held || w.DebitsPosted != spent {
		b.t.Errorf("%s: free %d, held %d, spent %d; want %d, %d, %d", when, w.Available(), w.DebitsPending, w.DebitsPosted, free, held, spent)
	}
}

func (b *bank) make(e *engine.Engine, req engine.Request) engine.Sandbox {
	b.t.Helper()
	if req.Profile == "" {
		req.Profile = "profile.mine"
	}
	s, err := e.Create(b.t.Context(), req, nil, nil)
	if err != nil {
		b.t.Fatal(told(err))
	}
	return s
}

// refused expects a create to fail so, and to leave nothing.
func (b *bank) refused(e *engine.Engine, req engine.Request, kind extensions.Kind, want ...string) {
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

func (b *bank) does(dir string, rules ...saasstub.Rule) {
	b.t.Helper()
	if err := saasstub.WriteScript(dir, saasstub.Script{Rules: rules}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bank) alive() (n int) {
	b.t.Helper()
	for _, dir := range []string{b.vendor, b.dear} {
		objs, err := vendor.At(dir).Objects()
		if err != nil {
			b.t.Fatal(err)
		}
		n += len(objs)
	}
	return n
}

func (b *bank) verified() {
	b.t.Helper()
	r, err := b.l.Verify(context.Background())
	if err != nil || len(r.Problems) > 0 {
		b.t.Errorf("the ledger is not consistent: %q, %v", r.Problems, err)
	}
}

// atHome is a catalog part with this machine at a price.
func atHome() map[string]string {
	return map[string]string{
		"extensions/ext.own.yaml":   "id: ext.own\nhandler: local\ncost: { per_hour: \"2.00 USD\" }\n",
		"profiles/profile.own.yaml": "id: profile.own\nversion: \"1.0.0\"\nextension: ext.own\nisolation: { level: process }\nnetwork: { default: allow }\nttl: { default: 1h, max: 24h }\n",
	}
}

// ended ends sandboxes.
func (b *bank) ended(all ...engine.Sandbox) error {
	b.t.Helper()
	for _, s := range all {
		if _, err := b.Destroy(b.t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil {
			return err
		}
	}
	return nil
}
