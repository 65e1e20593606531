package tenant_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/tenant"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// A quote is kept by the digest of its body: prices that were stored with the
// body of a vendor's quote would be those of everybody who has that quote.
func TestNobodyPutsPricesUnderAnothersQuote(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.grant(10 * dollar)
	v := h.view(web)
	free := quote(vendor, perHour(vendor, 0, true))
	b := h.wish(web, own)
	b.Extension, b.Quote = own, &free
	if _, err := v.Begin(ctx, b); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("with a begin: %v", err)
	}
	s := h.at(v, web, own)
	if _, err := v.Apply(ctx, step(s, "quoted", ledger.Change{Quote: &free})); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("with a change: %v", err)
	}
	s = h.at(v, web, vendor)
	h.now = h.now.Add(time.Hour)
	if _, err := h.end(v, web, s, &ledger.MeterClose{At: h.now}); err != nil {
		t.Fatal(err)
	}
	if got := h.charged(s.ID); got != dollar {
		t.Errorf("charged %d for an hour, want a dollar", got)
	}
}

func TestABillNeedsAnEnd(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.grant(10 * dollar)
	v := h.view(web)
	for _, ttl := range []time.Duration{0, -time.Hour} {
		b := h.wish(web, vendor)
		b.TTL = ttl
		if _, err := v.Begin(ctx, b); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("a ttl of %s: %v", ttl, err)
		}
		b = h.wish(web, own)
		b.TTL, b.ExpiresAt = ttl, time.Time{}
		s := h.must(v.Begin(ctx, b))
		if _, err := v.Apply(ctx, step(s, "place", ledger.Change{To: lifecycle.Provisioning, Patch: ledger.Patch{Extension: ptr(vendor)}})); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("a ttl of %s, once it is placed: %v", ttl, err)
		}
	}
}

func TestWhatIsSetAsideIsForTheWholeLife(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.grant(10 * dollar)
	v := h.view(web)
	b := h.wish(web, own)
	b.TTL, b.ExpiresAt = 0, start.Add(5*time.Hour)
	s := h.must(v.Begin(ctx, b))
	q := quote(vendor, nil)
	place := ledger.Change{To: lifecycle.Provisioning, Quote: &q, Patch: ledger.Patch{Extension: ptr(vendor), TTL: ptr(time.Second)}}
	h.must(v.Apply(ctx, step(s, "place", place)))
	if w := h.balance(ledger.AccountWallet); w.DebitsPending < 5*dollar-dollar/100 || w.DebitsPending > 5*dollar {
		t.Errorf("set aside for five hours: %+v", w)
	}
}

// without is a catalog that lost a place.
type without struct {
	tenant.Pricer
	place string
}

func (w without) Price(a tenant.Asked) (tenant.Price, error) {
	if a.Extension == w.place {
		return tenant.Price{}, extensions.Errorf(extensions.KindInvalid, "the catalog has no extension %q", a.Extension)
	}
	return w.Pricer.Price(a)
}

func TestWhatLivesWhereTheCatalogHasNothingAnyMoreEnds(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.grant(10 * dollar)
	v := h.view(web)
	s := h.at(v, web, vendor)
	made := h.must(v.Begin(ctx, h.wish(web, vendor)))
	made = h.must(v.Apply(ctx, step(made, "place", ledger.Change{To: lifecycle.Provisioning, Patch: ledger.Patch{Extension: ptr(vendor)}})))
	made = h.must(v.Apply(ctx, step(made, "handle", ledger.Change{Patch: ledger.Patch{Handle: &extensions.Handle{Extension: "x", ID: made.ID, Ref: "r"}}})))
	h.pricer = without{catalog{}, vendor}
	v = h.view(web)
	h.now = h.now.Add(time.Hour)
	if _, err := v.Begin(ctx, h.wish(web, vendor)); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("a new one: %v", err)
	}
	h.must(v.Apply(ctx, step(s, "seen", ledger.Change{Patch: ledger.Patch{SeenAliveAt: &h.now}})))
	for _, row := range []ledger.Sandbox{s, made} {
		if _, err := h.end(v, web, row, &ledger.MeterClose{At: h.now}); err != nil {
			t.Errorf("%v (%s)", err, extensions.RemedyOf(err))
		}
		if got := h.charged(row.ID); got < dollar-10_000 || got > dollar+10_000 {
			t.Errorf("charged %d for an hour, want a dollar", got)
		}
	}
}

func TestAPlaceIsNotTakenBack(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.grant(10 * dollar)
	v := h.view(web)
	s := h.must(v.Begin(ctx, h.wish(web, vendor)))
	s = h.must(v.Apply(ctx, step(s, "place", ledger.Change{To: lifecycle.Provisioning, Patch: ledger.Patch{Extension: ptr(vendor)}})))
	if _, err := v.Apply(ctx, step(s, "nowhere", ledger.Change{Patch: ledger.Patch{Extension: ptr("")}})); !extensions.IsKind(err, extensions.KindConflict) {
		t.Errorf("%v", err)
	}
}

func TestAMemoIsNotBelowZero(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	v := h.view(web)
	if _, err := h.base.PutBudget(ctx, ledger.Budget{Account: "acme", Name: "all", Currency: "USD", Limit: dollar, Hard: true}); err != nil {
		t.Fatal(err)
	}
	lie := &ledger.Booked{Charges: []ledger.Charge{{Component: "all", Amount: -dollar, Currency: "USD", Memo: ledger.AccountInfra + ":" + own}}}
	if _, err := h.end(v, web, h.at(v, web, own), &ledger.MeterClose{At: h.now, Booked: lie}); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("%v", err)
	}
	bs, err := h.base.Budgets(ctx, "acme")
	if err != nil || len(bs) != 1 || bs[0].Spent != 0 {
		t.Errorf("%+v, %v", bs, err)
	}
}

func TestAClientTellsOfItsOwnThings(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	v := h.view(web)
	s := h.at(v, web, own)
	if _, err := v.Apply(ctx, step(s, "forged", ledger.Change{Event: ledger.Note{Type: "grant.made"}})); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("%v", err)
	}
	b := h.wish(web, own)
	b.Event.Type = "budget.set"
	if _, err := v.Begin(ctx, b); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("%v", err)
	}
}

func TestAKeyOfAnotherSaysNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	v := h.view(web)
	s := h.at(v, web, own)
	key := "january/" + string(s.ID)
	if _, err := h.base.Grant(ctx, ledger.Grant{Key: key, Org: "rival", Currency: "USD", Amount: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Apply(ctx, ledger.Change{ID: s.ID, Key: key}); !extensions.IsKind(err, extensions.KindConflict) || strings.Contains(err.Error(), "rival") {
		t.Errorf("%v", err)
	}
}

// Keys are one name space: a client that could take any would keep the owner
// from it.
func TestAClientTakesNoKeyOfTheOwners(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	v := h.view(web)
	s := h.at(v, web, own)
	snap, err := extensions.NewSnapshotID(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"january", "", string(s.ID) + "x", "x" + snap} {
		b := h.wish(web, own)
		b.Key = key
		_, begin := v.Begin(ctx, b)
		_, replay := v.Replay(ctx, &b)
		_, change := v.Apply(ctx, ledger.Change{ID: s.ID, Key: key})
		_, intent := v.Apply(ctx, step(s, "x", ledger.Change{Intent: &ledger.OpenIntent{Key: key + "/x", Kind: ledger.IntentExtend, Holder: holder(web)}}))
		_, later := v.Replay(ctx, nil, ledger.Change{ID: s.ID, Key: key})
		_, shot := v.BeginSnapshot(ctx, ledger.BeginSnapshot{Key: key, Holder: holder(web), ID: snap, Account: web, SandboxID: s.ID})
		for what, err := range map[string]error{"begin": begin, "replay": replay, "change": change, "intent": intent, "later": later, "snapshot": shot} {
			if !extensions.IsKind(err, extensions.KindInvalid) {
				t.Errorf("%s as %q: %v", what, key, err)
			}
		}
	}
	if _, err := h.base.Grant(ctx, ledger.Grant{Key: "january", Org: "acme", Currency: "USD", Amount: 1}); err != nil {
		t.Error(err)
	}
}

func TestWhatNobodyMeteredDoesNotEndEarlier(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.grant(10 * dollar)
	v := h.view(web)
	s := h.must(v.Begin(ctx, h.wish(web, vendor)))
	s = h.must(v.Apply(ctx, step(s, "place", ledger.Change{To: lifecycle.Provisioning, Patch: ledger.Patch{Extension: ptr(vendor)}})))
	s = h.must(v.Apply(ctx, step(s, "handle", ledger.Change{Patch: ledger.Patch{Handle: &extensions.Handle{Extension: "x", ID: s.ID, Ref: "r"}}})))
	s = h.must(v.Apply(ctx, step(s, "shorter", ledger.Change{Patch: ledger.Patch{TTL: ptr(time.Second), ExpiresAt: ptr(start.Add(time.Second))}})))
	h.now = h.now.Add(5 * time.Hour)
	if _, err := h.end(v, web, s, &ledger.MeterClose{At: h.now}); err != nil {
		t.Fatal(err)
	}
	if got := h.charged(s.ID); got < 2*dollar-10_000 || got > 2*dollar+10_000 {
		t.Errorf("charged %d for two hours", got)
	}
}
