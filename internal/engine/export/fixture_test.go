package export

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/ledgertest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// clock is moved by tests, from several goroutines.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(time.Millisecond)
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func newLedger(t testing.TB) (*ledger.Ledger, *clock) {
	t.Helper()
	c := &clock{at: start}
	l, err := sqlstore.Open(ctx, sqlstore.DefaultURL(filepath.Join(t.TempDir(), "state")), sqlstore.Options{Now: c.now, Charges: bills.Of})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l, c
}

// bills are what meters of these tests are charged.
var bills ledgertest.Bills

// lived is one life, over, with the charges that were booked for it.
type lived struct {
	account, name string
	from, to      time.Time
	rates         string
	charges       []ledger.Charge
	paused        time.Time // from then on; zero = never
	actor         string
}

const bookRates = `{"v":1,"basis":"price-book","book":"prices.one","book_version":"2","extension":"ext.x","as_of":"2026-01-02","source":"https://x.test/prices","currency":"EUR",` +
	`"confidence":"exact","region":"eu-1","memo":false,"sizes":{},"prices":[{"component":"sandbox","unit":"sandbox-hour","price":"0.10","confidence":"exact"}]}`

func (v lived) live(t testing.TB, l *ledger.Ledger) extensions.ID {
	t.Helper()
	id, err := extensions.NewID(nil)
	if err != nil {
		t.Fatal(err)
	}
	holder, err := l.Holder(ctx)
	if err != nil {
		t.Fatal(err)
	}
	step := func(name string) string { return string(id) + "/" + name }
	request, err := json.Marshal(map[string]any{"consumer": map[string]string{"actor": cmp.Or(v.actor, "ann"), "harness": "claude",
		"run_id": "r-1"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Begin(ctx, ledger.Begin{Key: step("create"), Holder: holder, ID: id, Account: v.account, Name: v.name, Profile: "profile.base",
		ProfileVersion: "1.0.0",
		Request:        request, Extension: "ext.x", Host: "one", CreatedAt: v.from, ExpiresAt: v.to.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	bills.Put(id, v.charges...)
	changes := []ledger.Change{
		{Key: step("provisioning"), To: lifecycle.Provisioning,
			Patch: ledger.Patch{Handle: &extensions.Handle{Extension: "x", Version: 1, ID: id}}},
		{Key: step("ready"), To: lifecycle.Ready, Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed},
			Meter: ledger.MeterOps{Open: &ledger.MeterOpen{At: v.from, Source: "backend", Currency: "EUR", Rates: json.RawMessage(v.rates)}}},
		{Key: step("destroying"), To: lifecycle.Destroying, Intent: &ledger.OpenIntent{Kind: ledger.IntentDestroy, Holder: holder}},
		{Key: step("destroyed"), To: lifecycle.Destroyed, Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed},
			Meter: ledger.MeterOps{Close: &ledger.MeterClose{At: v.to, Source: "backend"}}},
	}
	if !v.paused.IsZero() {
		pause := ledger.Change{Key: step("pause"), Meter: ledger.MeterOps{Switch: &bank.MeterSwitch{At: v.paused, Mode: ledger.Paused}}}
		changes = slices.Insert(changes, 2, pause)
	}
	for _, c := range changes {
		c.ID = id
		if _, err := l.Apply(ctx, c); err != nil {
			t.Fatalf("%s: %v", c.Key, err)
		}
	}
	return id
}

// someCharges are of a life of an hour: one that is billed and one that a key
// of the user's pays.
func someCharges() []ledger.Charge {
	return []ledger.Charge{
		{Segment: 0, Component: "creation", Quantity: 1, Unit: "creation", UnitPrice: 600_000, Amount: 600, Currency: "EUR", Confidence: "exact"},
		{Segment: 1, Component: "vcpu", Quantity: 7_200_000_000, Unit: "vcpu-hour", UnitPrice: 50_400_000_000, Amount: 100_800_000,
			Currency: "EUR", Memo: "byok_memo:ext.x", Confidence: "exact"},
		{Segment: 1, Component: "memory", Quantity: 0, Unit: "gib-hour", Currency: "EUR", Confidence: "exact"},
	}
}

// lives makes so many lives of five events each.
func lives(t testing.TB, l *ledger.Ledger, n int) {
	t.Helper()
	for i := range n {
		lived{account: "acme/web", name: fmt.Sprint("n", i), from: start, to: start.Add(time.Hour), rates: bookRates,
			charges: someCharges()}.live(t, l)
	}
}
