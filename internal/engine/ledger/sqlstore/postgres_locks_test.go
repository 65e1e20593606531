package sqlstore_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/pgtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Everything that writes takes its locks in one order: the row that changes, the
// stream, budgets, accounts. So no two of them ever wait for each other, which
// the server counts.
func TestNoTwoTransactionsWaitForEachOther(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	var hands []*hand
	for range 2 { // two machines
		l, err := sqlstore.Open(ctx, address, sqlstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		holder, err := l.Holder(ctx)
		if err != nil {
			t.Fatal(err)
		}
		hands = append(hands, &hand{t: t, l: l, holder: holder})
	}
	for _, org := range []string{"acme", "umbrella"} {
		if _, err := hands[0].l.Grant(ctx, ledger.Grant{Key: "grant-" + org, Org: org, Currency: "USD", Amount: 1_000_000}); err != nil {
			t.Fatal(err)
		}
		for _, account := range []string{org, org + "/web", org + "/api"} {
			for _, name := range []string{"a", "b"} {
				if _, err := hands[0].l.PutBudget(ctx, ledger.Budget{Account: account, Name: name, Currency: "USD", Limit: 1_000_000, Hard: true,
					Period: "day"}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	// Two sandboxes that all of them fight for, and lives of their own.
	shared := []ledger.Sandbox{hands[0].ready("acme/web", "shared"), hands[0].ready("umbrella/api", "shared")}
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() { hands[i%2].work(i, shared) })
	}
	wg.Wait()
	if n := deadlocks(t, address); n != 0 {
		t.Errorf("the server had to end %d transactions that waited for each other", n)
	}
	if r, err := hands[0].l.Verify(ctx); err != nil || len(r.Problems) > 0 {
		t.Error(r.Problems, err)
	}
}

// deadlocks is what the server counted in the database; it tells with a delay.
func deadlocks(t *testing.T, address string) (n int64) {
	t.Helper()
	time.Sleep(1200 * time.Millisecond)
	v := &vault{t: t, postgres: true}
	v.db = rawPostgres(t, address)
	_, rows := v.all("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
	return rows[0][0].(int64)
}

// hand is one machine's work.
type hand struct {
	t      *testing.T
	l      *ledger.Ledger
	holder ledger.HolderID
}

// may takes refusals for what they are: others were faster.
func (h *hand) may(err error) {
	h.t.Helper()
	if err != nil && !extensions.IsKind(err, extensions.KindConflict) && !extensions.IsKind(err, extensions.KindExhausted) &&
		!extensions.IsKind(err, extensions.KindInvalid) {
		h.t.Error(err)
	}
}

func (h *hand) begin(account, name string, seed int) ledger.Begin {
	id, err := extensions.NewID(nil)
	if err != nil {
		h.t.Error(err)
	}
	// The same price books in another order: they are shared by all orgs.
	books := []ledger.PriceBook{{Source: "a", Body: json.RawMessage(`{"a":1}`)}, {Source: "b", Body: json.RawMessage(`{"b":1}`)},
		{Source: "c", Body: json.RawMessage(fmt.Sprintf(`{"c":%d}`, seed/2))}}
	rand.Shuffle(len(books), func(i, j int) { books[i], books[j] = books[j], books[i] })
	return ledger.Begin{Key: string(id) + "/create", Holder: h.holder, ID: id, Account: account, Name: name,
		Quote:   &ledger.Quote{Body: json.RawMessage(fmt.Sprintf(`{"n":%d}`, seed/2)), Prices: books},
		Reserve: &ledger.Reserve{Currency: "USD", Amount: 10, Wallet: true}}
}

func (h *hand) ready(account, name string) ledger.Sandbox {
	h.t.Helper()
	s, err := h.l.Begin(ctx, h.begin(account, name, 0))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, c := range []ledger.Change{{Key: "p", To: lifecycle.Provisioning},
		{Key: "r", To: lifecycle.Ready, Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed},
			Meter: ledger.MeterOps{Open: &ledger.MeterOpen{Currency: "USD"}}}} {
		c.ID, c.Key = s.ID, string(s.ID)+"/"+c.Key
		if s, err = h.l.Apply(ctx, c); err != nil {
			h.t.Fatal(err)
		}
	}
	return s
}

// work does a bit of everything, much of it to the same rows as others, and
// every change twice at the same time, as one whose answer was lost.
func (h *hand) work(seed int, shared []ledger.Sandbox) {
	// former is what the last call did, which is told again meanwhile.
	former := func() error { return nil }
	twice := func(f func() error) {
		var wg sync.WaitGroup
		for _, g := range []func() error{f, former, f, former} {
			wg.Go(func() { h.may(g()) })
		}
		wg.Wait()
		former = f
	}
	for n := range 12 {
		account := []string{"acme/web", "acme/api", "umbrella/web", "umbrella/api"}[(seed+n)%4]
		s := shared[(seed+n)%2]
		key := fmt.Sprintf("%d-%d", seed, n)
		b := h.begin(account, key, seed+n)
		twice(func() error { _, err := h.l.Begin(ctx, b); return err })
		twice(func() error {
			_, err := h.l.Apply(ctx, ledger.Change{ID: b.ID, Key: key + "/own", To: lifecycle.Provisioning, Reserve: b.Reserve})
			return err
		})
		twice(func() error {
			_, err := h.l.Apply(ctx, ledger.Change{ID: s.ID, Key: key + "/more", Reserve: &ledger.Reserve{Currency: "USD", Amount: 1, Wallet: true}})
			return err
		})
		snap, err := extensions.NewSnapshotID(nil)
		h.may(err)
		taken := ledger.BeginSnapshot{Key: key + "/snap", Holder: h.holder, ID: snap, Account: s.Account, SandboxID: s.ID}
		twice(func() error { _, err := h.l.BeginSnapshot(ctx, taken); return err })
		twice(func() error {
			_, err := h.l.ApplySnapshot(ctx, ledger.SnapshotChange{ID: snap, Key: key + "/gone", To: ledger.SnapshotDeleted,
				Finish: &ledger.FinishIntent{Outcome: ledger.Failed}})
			return err
		})
		twice(func() error {
			_, err := h.l.Grant(ctx, ledger.Grant{Key: key + "/grant", Org: ledger.StreamOf(account), Currency: "USD", Amount: 5})
			return err
		})
		twice(func() error {
			_, err := h.l.PutHost(ctx, ledger.Host{Account: account, Name: "shared", Ref: key})
			return err
		})
		twice(func() error {
			_, err := h.l.PutBudget(ctx, ledger.Budget{Account: ledger.StreamOf(account), Name: "a", Currency: "USD", Limit: 1_000_000 + int64(n),
				Hard: true, Period: "day"})
			return err
		})
		refused := h.begin(account, key+"-refused", seed+n)
		twice(func() error { _, err := h.l.Begin(ctx, refused); return err })
		twice(func() error {
			_, err := h.l.Apply(ctx, ledger.Change{ID: refused.ID, Key: key + "/refused", To: lifecycle.Destroyed,
				Finish: &ledger.FinishIntent{Outcome: ledger.Failed}})
			return err
		})
		if n%3 == 0 {
			h.may(h.l.DeleteHost(ctx, account, "shared"))
		}
	}
}
