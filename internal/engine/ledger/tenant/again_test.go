package tenant_test

import (
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// again makes a sandbox anew at a vendor after an hour, as far as its handle.
func (h *house) again(v ledger.Ledger, handle bool) ledger.Sandbox {
	h.t.Helper()
	s := h.at(v, web, vendor)
	h.now = h.now.Add(time.Hour)
	s = h.must(v.Apply(ctx, h.anew(s, vendor)))
	s = h.must(v.Apply(ctx, step(s, "place2", ledger.Change{Patch: ledger.Patch{Extension: ptr(vendor), Handle: &extensions.Handle{}}})))
	if handle {
		s = h.must(v.Apply(ctx, step(s, "handle2", ledger.Change{Patch: ledger.Patch{Handle: &extensions.Handle{Extension: "x", ID: s.ID, Ref: "r"}}})))
	}
	return s
}

func near(a, b int64) bool { return a-b < 20_000 && b-a < 20_000 } // the tests' own prices are rounded to seconds

func TestWhatANewLifeMadeIsNotLeftForAnotherPlace(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.grant(20 * dollar)
	v := h.view(web)
	s := h.again(v, true)
	zero := time.Time{}
	for name, p := range map[string]ledger.Patch{"elsewhere": {Extension: ptr(own), Handle: &extensions.Handle{}}, "unseen": {SeenAliveAt: &zero}, "forgotten": {Handle: &extensions.Handle{}}} {
		_, _ = v.Apply(ctx, step(s, name, ledger.Change{Patch: p}))
	}
	if _, err := v.Apply(ctx, step(s, "after", ledger.Change{Patch: ledger.Patch{Extension: ptr(own)}})); !extensions.IsKind(err, extensions.KindConflict) {
		t.Errorf("left for an own place: %v", err)
	}
	if s = h.must(v.Get(ctx, s.ID)); s.Extension != vendor || s.Handle.IsZero() {
		t.Errorf("%+v", s)
	}
}

// The row may still have the handle of the life before, which is settled.
func TestANewLifeMayBeLedElsewhere(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.grant(20 * dollar)
	v := h.view(web)
	s := h.at(v, web, vendor)
	h.now = h.now.Add(time.Hour)
	s = h.must(v.Apply(ctx, h.anew(s, vendor)))
	for i, place := range []string{vendor2, own} {
		s = h.must(v.Apply(ctx, step(s, "place"+place, ledger.Change{Patch: ledger.Patch{Extension: ptr(place), Handle: &extensions.Handle{}},
			Reserve: &ledger.Reserve{Currency: "USD", Total: true}})))
		if !s.Handle.IsZero() {
			t.Errorf("try %d: %+v", i, s.Handle)
		}
	}
	if w := h.balance(ledger.AccountWallet); w.DebitsPending != 0 {
		t.Errorf("set aside for an own place: %+v", w)
	}
}

// What a later life made and nobody metered is paid for like the first one's:
// from its own begin, whoever ends it.
func TestALaterLifeThatNobodyMeteredIsPaidFor(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(h *house, v ledger.Ledger, s ledger.Sandbox) (ledger.Sandbox, error){
		"destroyed": func(h *house, v ledger.Ledger, s ledger.Sandbox) (ledger.Sandbox, error) {
			return h.end(v, web, s, &ledger.MeterClose{At: h.now})
		},
		"made anew": func(h *house, v ledger.Ledger, s ledger.Sandbox) (ledger.Sandbox, error) {
			c := h.anew(s, vendor)
			c.Key += "3"
			return v.Apply(ctx, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.grant(20 * dollar)
			v := h.view(web)
			s := h.again(v, true) // a dollar for the hour before
			s = h.must(v.Apply(ctx, step(s, "failed", ledger.Change{To: lifecycle.Failed, Finish: &ledger.FinishIntent{Outcome: ledger.Failed}})))
			h.now = h.now.Add(30 * time.Minute)
			if _, err := end(h, v, s); err != nil {
				t.Fatal(err, extensions.RemedyOf(err))
			}
			if got := h.charged(s.ID); !near(got, 3*dollar/2) {
				t.Errorf("charged %d for an hour and then half an hour", got)
			}
		})
	}
}

func TestALaterLifeThatMadeNothingCostsNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.grant(20 * dollar)
	v := h.view(web)
	s := h.again(v, false)
	h.now = h.now.Add(time.Minute)
	if _, err := h.end(v, web, s, &ledger.MeterClose{At: h.now}); err != nil {
		t.Fatal(err)
	}
	if got, w := h.charged(s.ID), h.balance(ledger.AccountWallet); !near(got, dollar) || w.DebitsPending != 0 {
		t.Errorf("charged %d for an hour; %+v", got, w)
	}
}

// Who adopts a sandbox raises its generation: its life and its meter go on.
func TestAnAdoptedLifeGoesOn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.grant(20 * dollar)
	v := h.view(web)
	s := h.at(v, web, vendor)
	h.now = h.now.Add(30 * time.Minute)
	s = h.must(v.Apply(ctx, step(s, "adopt", ledger.Change{NextGeneration: true, Intent: &ledger.OpenIntent{Kind: ledger.IntentAdopt, Holder: holder(web)}})))
	s = h.must(v.Apply(ctx, step(s, "adopted", ledger.Change{Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed}})))
	if _, err := v.Apply(ctx, step(s, "away", ledger.Change{Patch: ledger.Patch{Extension: ptr(own)}})); !extensions.IsKind(err, extensions.KindConflict) {
		t.Errorf("left for an own place: %v", err)
	}
	h.now = h.now.Add(30 * time.Minute)
	if _, err := h.end(v, web, s, &ledger.MeterClose{At: h.now}); err != nil {
		t.Fatal(err, extensions.RemedyOf(err))
	}
	if got := h.charged(s.ID); !near(got, dollar) {
		t.Errorf("charged %d for an hour", got)
	}
}
