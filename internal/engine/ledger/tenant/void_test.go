package tenant_test

import (
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestWhatWasSetAsideIsGivenBackOnProof(t *testing.T) {
	t.Parallel()
	handle := &extensions.Handle{Extension: "x", ID: "i", Ref: "r"}
	for name, c := range map[string]struct {
		place    string
		handle   bool // one was recorded
		forgets  bool // and the client takes it back
		unasked  bool // no place was ever recorded
		says     bool // the client says that nobody will ever know
		after    time.Duration
		charged  int64
		exposure int64
	}{
		"nothing was asked":               {place: vendor, unasked: true, after: 50 * time.Hour},
		"refused at once":                 {place: vendor, after: time.Minute},
		"refused too late":                {place: vendor, after: 90 * time.Minute, charged: 3 * dollar / 2},
		"nobody knows, says it too early": {place: vendor, says: true, after: 90 * time.Minute, charged: 3 * dollar / 2},
		"ended by itself":                 {place: vendor, after: 3 * time.Hour, exposure: 2 * dollar},
		"nothing ends it":                 {place: vendor2, after: 3 * time.Hour, charged: 6 * dollar},
		"made":                            {place: vendor, handle: true, after: 6 * time.Minute, charged: dollar / 10},
		"made and forgotten":              {place: vendor, handle: true, forgets: true, after: 6 * time.Minute, charged: dollar / 10},
		"made, and less than the minimum": {place: vendor, handle: true, after: time.Second, charged: dollar / 60},
		"made, and found at its own end":  {place: vendor, handle: true, after: 5 * time.Hour, charged: 2 * dollar},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.grant(20 * dollar)
			v := h.view(web)
			s := h.must(v.Begin(ctx, h.wish(web, c.place)))
			if !c.unasked {
				s = h.must(v.Apply(ctx, step(s, "place", ledger.Change{To: lifecycle.Provisioning, Patch: ledger.Patch{Extension: ptr(c.place)}})))
			}
			if c.handle {
				s = h.must(v.Apply(ctx, step(s, "handle", ledger.Change{Patch: ledger.Patch{Handle: handle}})))
			}
			if c.forgets {
				s = h.must(v.Apply(ctx, step(s, "forget", ledger.Change{Patch: ledger.Patch{Handle: &extensions.Handle{}}})))
			}
			h.now = start.Add(c.after)
			change := step(s, "over", ledger.Change{To: lifecycle.Destroyed, Finish: &ledger.FinishIntent{Outcome: ledger.Failed, Reason: "refused"}, Unresolved: c.says})
			if !lifecycle.Can(s.State, lifecycle.Destroyed) {
				s = h.must(v.Apply(ctx, step(s, "ending", ledger.Change{To: lifecycle.Destroying})))
			}
			for range 2 { // again is nothing
				if s = h.must(v.Apply(ctx, change)); s.State != lifecycle.Destroyed {
					t.Errorf("it is %s", s.State)
				}
			}
			w, owed := h.balance(ledger.AccountWallet), h.balance(ledger.AccountReceivable)
			off := func(a, b int64) bool { return a-b > 10_000 || b-a > 10_000 } // the tests' own prices are rounded to seconds
			if got := h.charged(s.ID); off(got, c.charged) || w.DebitsPending != 0 || w.Available() != 20*dollar-got || owed.DebitsPosted != 0 {
				t.Errorf("charged %d, want %d; %+v", got, c.charged, w)
			}
			if got := h.balance(ledger.AccountExposure).DebitsPosted; off(got, c.exposure) {
				t.Errorf("exposed %d, want %d", got, c.exposure)
			}
		})
	}
}

func TestWhatWasMadeIsNotLeftForAnotherPlace(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.grant(20 * dollar)
	v := h.view(web)
	begun := h.must(v.Begin(ctx, h.wish(web, vendor)))
	begun = h.must(v.Apply(ctx, step(begun, "place", ledger.Change{To: lifecycle.Provisioning, Patch: ledger.Patch{Extension: ptr(vendor)}})))
	s := h.must(v.Apply(ctx, step(begun, "elsewhere", ledger.Change{Patch: ledger.Patch{Extension: ptr(vendor2)}}))) // refused there
	if w := h.balance(ledger.AccountWallet); w.DebitsPending < 4*dollar-dollar/100 || w.DebitsPending > 4*dollar+dollar/100 {
		t.Errorf("set aside for the second place: %+v", w)
	}
	s = h.must(v.Apply(ctx, step(s, "handle", ledger.Change{Patch: ledger.Patch{Handle: &extensions.Handle{Extension: "x", ID: "i", Ref: "r"}}})))
	for _, to := range []string{own, vendor} {
		if _, err := v.Apply(ctx, step(s, "to"+to, ledger.Change{Patch: ledger.Patch{Extension: &to}})); !extensions.IsKind(err, extensions.KindConflict) {
			t.Errorf("left for %s: %v", to, err)
		}
	}
	ran := h.at(v, web, vendor)
	to := own
	if _, err := v.Apply(ctx, step(ran, "to"+to, ledger.Change{Patch: ledger.Patch{Extension: &to}})); !extensions.IsKind(err, extensions.KindConflict) {
		t.Errorf("left for %s: %v", to, err)
	}
}
