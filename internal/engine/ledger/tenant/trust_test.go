package tenant_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/tenant"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const web = "acme/web"

func TestTheOwnersPricesCount(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.grant(10 * dollar)
	v := h.view(web)
	s := h.at(v, web, vendor) // it said a pico-unit an hour
	if w := h.balance(ledger.AccountWallet); w.DebitsPending < 2*dollar-dollar/100 || w.DebitsPending > 2*dollar {
		t.Errorf("set aside for two hours: %+v", w)
	}
	h.now = h.now.Add(time.Hour)
	if _, err := h.end(v, web, s, &ledger.MeterClose{At: h.now, Source: "backend", Booked: &ledger.Booked{}}); err != nil {
		t.Fatal(err)
	}
	if got := h.charged(s.ID); got != dollar {
		t.Errorf("charged %d for an hour, want a dollar", got)
	}
	if w := h.balance(ledger.AccountWallet); w.Available() != 9*dollar || w.DebitsPending != 0 {
		t.Errorf("%+v", w)
	}
}

func TestAmountsOfAClientAreNotBooked(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.grant(10 * dollar)
	v := h.view(web)
	s := h.at(v, web, vendor)
	h.now = h.now.Add(30 * time.Minute)
	lie := &ledger.Booked{Charges: []ledger.Charge{{Component: "all", Amount: 1, Currency: "USD", Memo: "infra_memo:x"}}}
	if _, err := h.end(v, web, s, &ledger.MeterClose{At: h.now, Booked: lie}); err != nil {
		t.Fatal(err)
	}
	if got := h.charged(s.ID); got != dollar/2 {
		t.Errorf("charged %d", got)
	}
}

func TestTheOwnersClockBoundsTimes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at     time.Duration // of the end, from the start
		cost   int64
		source string
	}{
		"the truth":              {30 * time.Minute, dollar / 2, "backend"},
		"before it was seen":     {time.Minute, dollar / 6, "server"},
		"before it began":        {-time.Hour, dollar / 6, "server"},
		"in the future":          {5 * time.Hour, dollar, "server"},
		"a moment in the future": {time.Hour + time.Second, dollar, "backend"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.grant(10 * dollar)
			v := h.view(web)
			s := h.at(v, web, vendor)
			h.now = start.Add(10 * time.Minute)
			s = h.must(v.Apply(ctx, step(s, "seen", ledger.Change{Patch: ledger.Patch{SeenAliveAt: ptr(start.Add(9 * time.Hour))}})))
			if !s.SeenAliveAt.Equal(h.now) {
				t.Errorf("seen alive in the future: %s", s.SeenAliveAt)
			}
			h.now = start.Add(time.Hour)
			end := start.Add(c.at)
			s, err := h.end(v, web, s, &ledger.MeterClose{At: end, Source: "backend"})
			if err != nil {
				t.Fatal(err)
			}
			ms, err := v.Meters(ctx, s.ID)
			if err != nil || ms[0].EndSource != c.source || s.EndedAt.Sub(ms[0].ClosedAt).Abs() > time.Second {
				t.Errorf("%+v, ended %s, %v", ms, s.EndedAt, err)
			}
			if got := h.charged(s.ID); got < c.cost-1 || got > c.cost+1 {
				t.Errorf("charged %d, want %d", got, c.cost)
			}
		})
	}
}

func TestABeginIsNow(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	v := h.view(web)
	for _, off := range []time.Duration{-24 * time.Hour, 24 * time.Hour, -time.Second} {
		b := h.wish(web, own)
		b.CreatedAt, b.ExpiresAt = start.Add(off), start.Add(off+1000*time.Hour)
		s := h.must(v.Begin(ctx, b))
		if s.CreatedAt.Sub(start).Abs() > 10*time.Second || !s.ExpiresAt.Equal(s.CreatedAt.Add(2*time.Hour)) {
			t.Errorf("%s off: %s to %s", off, s.CreatedAt, s.ExpiresAt)
		}
	}
}

func TestWhatCannotHaveBeenUsedIsNotBelieved(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.grant(10 * dollar)
	v := h.view(web)
	s := h.at(v, web, vendor)
	h.now = h.now.Add(time.Minute)
	lots, negative := int64(1)<<60, int64(-1)
	if _, err := h.end(v, web, s, &ledger.MeterClose{At: h.now, Usage: &extensions.Usage{CPUMillis: &negative}}); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("a negative quantity: %v", err)
	}
	s = h.must(v.Get(ctx, s.ID))
	if _, err := v.Apply(ctx, step(s, "again", ledger.Change{To: lifecycle.Destroyed, Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed},
		Meter: ledger.MeterOps{Close: &ledger.MeterClose{At: h.now, Usage: &extensions.Usage{CPUMillis: &lots, MemoryMiBMillis: &lots}}}})); err != nil {
		t.Error(err)
	}
}

func TestAnExtensionIsPricedByTheOwner(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.grant(5 * dollar)
	v := h.view(web)
	s := h.at(v, web, vendor)
	longer := func(hours int, r *ledger.Reserve) error {
		ttl := time.Duration(hours) * time.Hour
		_, err := v.Apply(ctx, step(s, "longer"+ttl.String(), ledger.Change{Patch: ledger.Patch{TTL: &ttl, ExpiresAt: ptr(start.Add(ttl))}, Reserve: r}))
		return err
	}
	if err := longer(4, nil); err != nil {
		t.Error(err)
	}
	if w := h.balance(ledger.AccountWallet); w.DebitsPending < 4*dollar-dollar/100 || w.DebitsPending > 4*dollar+dollar/100 {
		t.Errorf("set aside for four hours: %+v", w)
	}
	var refused *ledger.Insufficient
	if err := longer(9, &ledger.Reserve{Currency: "USD", Amount: 1, Total: true}); !errors.As(err, &refused) {
		t.Errorf("more than there is: %v", err)
	}
	if err := longer(4, &ledger.Reserve{Currency: "USD", Amount: 1, Total: true}); err != nil { // released nothing
		t.Error(err)
	}
	if w := h.balance(ledger.AccountWallet); w.DebitsPending < 3*dollar {
		t.Errorf("a client released what was set aside: %+v", w)
	}
}

func TestCreditIsNotPassedByNamingAnotherPlace(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.grant(dollar)
	v := h.view(web)
	var refused *ledger.Insufficient
	if _, err := v.Begin(ctx, h.wish(web, vendor)); !errors.As(err, &refused) {
		t.Errorf("two dollars of one: %v", err)
	}
	s := h.must(v.Begin(ctx, h.wish(web, own)))
	if _, err := v.Apply(ctx, step(s, "place", ledger.Change{To: lifecycle.Provisioning, Patch: ledger.Patch{Extension: ptr(vendor)}})); !errors.As(err, &refused) {
		t.Errorf("an own place that becomes another: %v", err)
	}
	none := h.wish(web, vendor)
	none.Quote = nil
	s = h.must(v.Begin(ctx, none))
	if _, err := v.Apply(ctx, step(s, "place", ledger.Change{To: lifecycle.Provisioning, Patch: ledger.Patch{Extension: ptr(vendor)}})); !errors.As(err, &refused) {
		t.Errorf("without a quote: %v", err)
	}
	if _, err := v.Begin(ctx, h.wish(web, "ext.nowhere")); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("a place that is not in the owner's catalog: %v", err)
	}
}

func TestOwnPlacesAreMemos(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.grant(dollar)
	v := h.view(web)
	billed := h.wish(web, own)
	q := quote(own, perHour(own, 1, false))
	billed.Quote = &q
	if _, err := v.Begin(ctx, billed); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("an own place that is billed: %v", err)
	}
	b := h.wish(web, own)
	b.Reserve = &ledger.Reserve{Currency: "USD", Amount: dollar / 2, Wallet: true}
	h.must(v.Begin(ctx, b))
	if w := h.balance(ledger.AccountWallet); w.DebitsPending != 0 {
		t.Errorf("an own place takes from the wallet: %+v", w)
	}
	s := h.at(v, web, own)
	if _, err := h.end(v, web, s, &ledger.MeterClose{At: h.now, Booked: &ledger.Booked{Charges: []ledger.Charge{{Component: "x", Amount: 1, Currency: "USD"}}}}); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("an own place charges the wallet: %v", err)
	}
}

func TestNothingBilledIsReplayed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	v := h.view(web)
	b := h.wish(web, vendor)
	if _, err := v.Replay(ctx, &b); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("%v", err)
	}
	b = h.wish(web, own)
	b.CreatedAt = start.Add(-5 * time.Hour)
	place := step(ledger.Sandbox{ID: b.ID}, "place", ledger.Change{To: lifecycle.Provisioning, Patch: ledger.Patch{Extension: ptr(vendor)}})
	if _, err := v.Replay(ctx, &b, place); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("%v", err)
	}
	place.Patch.Extension = ptr(own)
	if s := h.must(v.Replay(ctx, &b, place)); !s.CreatedAt.Equal(start.Add(-5 * time.Hour)) {
		t.Errorf("%+v", s)
	}
}

// crowded is a catalog whose owner wants few at a place.
type crowded struct {
	tenant.Pricer
	most map[string]int64
}

func (c crowded) Price(a tenant.Asked) (tenant.Price, error) {
	p, err := c.Pricer.Price(a)
	if most, ok := c.most[a.Extension]; ok {
		p.MaxSandboxes = &most
	}
	return p, err
}

func TestTheOwnersRoomCounts(t *testing.T) {
	t.Parallel()
	for _, place := range []string{vendor, own} {
		h := newHouse(t)
		h.grant(20 * dollar)
		h.pricer = crowded{catalog{}, map[string]int64{place: 1, vendor2: 0}}
		v := h.view(web)
		s := h.at(v, web, place)
		next := h.must(v.Begin(ctx, h.wish(web, place)))
		taken := h.wish(web, place)
		taken.Extension = place // said before it is taken
		recorded := h.must(v.Begin(ctx, taken))
		for name, c := range map[string]ledger.Change{
			"taken":            step(next, "place", ledger.Change{To: lifecycle.Provisioning, Patch: ledger.Patch{Extension: ptr(place)}}),
			"taken in silence": step(recorded, "place", ledger.Change{To: lifecycle.Provisioning}),
			"said to be roomy": step(next, "roomy", ledger.Change{To: lifecycle.Provisioning, Patch: ledger.Patch{Extension: ptr(place)}, Room: []ledger.Room{{Extension: place, Max: 1000}}}),
			"closed":           step(next, "closed", ledger.Change{To: lifecycle.Provisioning, Patch: ledger.Patch{Extension: ptr(vendor2)}}),
		} {
			var full *ledger.Full
			if _, err := v.Apply(ctx, c); !errors.As(err, &full) || !extensions.IsKind(err, extensions.KindExhausted) {
				t.Errorf("%s, %s: %v", place, name, err)
			}
		}
		h.must(v.Apply(ctx, h.anew(s, place))) // has its room already
		other := h.view("acme/other")
		h.at(other, "acme/other", place) // has room of its own
	}
}
