package tenant_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/tenant"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

// start is when every test begins, by the owner's clock.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	vendor  = "ext.vendor"  // sends a bill, and ends what is overdue
	vendor2 = "ext.vendor2" // sends a bill, twice as high, and ends nothing
	own     = "ext.own"     // the client's own place

	dollar = int64(1_000_000_000)
)

// catalog is the owner's: a dollar an hour at the first vendor.
type catalog struct{}

func perHour(place string, pico int64, memo bool) json.RawMessage {
	price := meter.UnitPrice(pico)
	s := meter.PriceSnapshot{Version: 1, Basis: meter.BasisPerHour, Extension: place, Currency: "USD", Confidence: meter.ConfidenceExact, Memo: memo,
		Prices: []meter.SnapshotPrice{{Component: meter.ComponentSandbox, Unit: "sandbox-hour", Price: &price, Minimum: 60_000, Confidence: meter.ConfidenceExact}}}
	return json.RawMessage(s.Encode())
}

func (catalog) Price(a tenant.Asked) (tenant.Price, error) {
	hourly := map[string]int64{vendor: 1_000_000_000_000, vendor2: 2_000_000_000_000}[a.Extension]
	switch {
	case a.Extension == own:
		return tenant.Price{}, nil
	case hourly == 0:
		return tenant.Price{}, extensions.Errorf(extensions.KindInvalid, "the catalog has no extension %q", a.Extension)
	}
	p := tenant.Price{Metered: true, Native: a.Extension == vendor, Rates: perHour(a.Extension, hourly, false), Currency: "USD"}
	if a.Rates != nil {
		p.Rates = a.Rates
	}
	p.Quote = quote(a.Extension, p.Rates)
	amount := int64(a.TTL/time.Second) * (hourly / 1000 / 3600)
	p.Reserve = ledger.Reserve{Currency: "USD", Amount: amount, IfGranted: true, Total: true, Hourly: hourly / 1000, TTL: a.TTL}
	return p, nil
}

func quote(place string, rates json.RawMessage) ledger.Quote {
	return ledger.Quote{Body: json.RawMessage(`{"extension":"` + place + `"}`), Prices: []ledger.PriceBook{{Source: "owner", Body: rates}}}
}

// house is a ledger whose owner's clock the test moves.
type house struct {
	t      *testing.T
	now    time.Time
	base   ledger.Ledger
	pricer tenant.Pricer
	permit func(account string, a tenant.Asked) error // nil = anything
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, now: start, pricer: catalog{}}
	l, err := ledger.Open(ctx, ledger.DefaultURL(filepath.Join(t.TempDir(), "state")), ledger.Options{Now: func() time.Time { return h.now }})
	if err != nil {
		t.Fatal(err)
	}
	h.base = l
	t.Cleanup(func() {
		if r, err := l.Verify(ctx); err != nil || !r.OK() {
			t.Errorf("the ledger is not sound: %q, %v", r.Problems, err)
		}
		_ = l.Close()
	})
	return h
}

func holder(account string) ledger.HolderID {
	return ledger.HolderID("h." + strings.ReplaceAll(account, "/", "-"))
}

// view is what a token of the account sees.
func (h *house) view(account string) ledger.Ledger {
	return tenant.View(h.base, tenant.Options{Account: account, Pricer: h.pricer, Now: func() time.Time { return h.now },
		Permit: func(_ context.Context, account string, a tenant.Asked) error {
			if h.permit == nil {
				return nil
			}
			return h.permit(account, a)
		},
		Owns: func(id ledger.HolderID) bool { return id == holder(account) }})
}

func (h *house) grant(amount int64) {
	h.t.Helper()
	if _, err := h.base.Grant(ctx, ledger.Grant{Key: "g" + h.now.String(), Org: "acme", Currency: "USD", Amount: amount}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) balance(kind string) ledger.Balance {
	h.t.Helper()
	all, err := h.base.Balances(ctx, "acme")
	if err != nil {
		h.t.Fatal(err)
	}
	for _, b := range all {
		if b.Kind == kind {
			return b
		}
	}
	return ledger.Balance{}
}

func (h *house) charged(id extensions.ID) (sum int64) {
	h.t.Helper()
	cs, err := h.base.Charges(ctx, id)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, c := range cs {
		sum += c.Amount
	}
	return sum
}

func newID(t *testing.T) extensions.ID {
	t.Helper()
	id, err := extensions.NewID(nil)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// wish is a begin for two hours at a place.
func (h *house) wish(account, place string) ledger.Begin {
	q := quote(place, perHour(place, 1, place == own))
	id := newID(h.t)
	return ledger.Begin{Key: string(id) + "/create", Holder: holder(account), ID: id, Account: account, Name: string(id),
		TTL: 2 * time.Hour, CreatedAt: h.now, ExpiresAt: h.now.Add(2 * time.Hour), Quote: &q}
}

// step is a change by its name.
func step(s ledger.Sandbox, name string, c ledger.Change) ledger.Change {
	c.ID, c.Key = s.ID, string(s.ID)+"/"+name
	return c
}

func ptr[T any](v T) *T { return &v }

func (h *house) must(s ledger.Sandbox, err error) ledger.Sandbox {
	h.t.Helper()
	if err != nil {
		h.t.Fatalf("%v (%s)", err, extensions.RemedyOf(err))
	}
	return s
}

// at takes a sandbox as far as being ready at a place.
func (h *house) at(v ledger.Ledger, account, place string) ledger.Sandbox {
	h.t.Helper()
	s := h.must(v.Begin(ctx, h.wish(account, place)))
	s = h.must(v.Apply(ctx, step(s, "place", ledger.Change{To: lifecycle.Provisioning, Patch: ledger.Patch{Extension: ptr(place)}})))
	s = h.must(v.Apply(ctx, step(s, "handle", ledger.Change{Patch: ledger.Patch{Handle: &extensions.Handle{Extension: "x", ID: s.ID, Ref: "r"}}})))
	return h.must(v.Apply(ctx, step(s, "ready", ledger.Change{To: lifecycle.Ready, Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed},
		Patch: ledger.Patch{ReadyAt: ptr(h.now)},
		Meter: ledger.MeterOps{Open: &ledger.MeterOpen{At: h.now, Source: "backend", Currency: "USD", Rates: perHour(place, 1, place == own)}}})))
}

// end destroys it, as told.
func (h *house) end(v ledger.Ledger, account string, s ledger.Sandbox, c *ledger.MeterClose) (ledger.Sandbox, error) {
	h.t.Helper()
	s = h.must(v.Apply(ctx, step(s, "destroying", ledger.Change{To: lifecycle.Destroying,
		Intent: &ledger.OpenIntent{Kind: ledger.IntentDestroy, Holder: holder(account), Supersede: true}})))
	return v.Apply(ctx, step(s, "destroyed", ledger.Change{To: lifecycle.Destroyed, Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed},
		Patch: ledger.Patch{EndedAt: &c.At}, Meter: ledger.MeterOps{Close: c}}))
}
