package ledgertest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// lifeSteps is a whole life as one who led it elsewhere would tell it.
func lifeSteps(b ledger.Begin) []ledger.Change {
	s := ledger.Sandbox{ID: b.ID, Fence: 1}
	end := ledger.Sandbox{ID: b.ID, Fence: 2}
	return []ledger.Change{provisioning(s), ready(s), destroying(s, b.Holder), destroyed(end)}
}

func replays(t *testing.T, address NewAddress) {
	ctx := context.Background()
	t.Run("a life at once is the life step by step", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		b := want(newID(t), holderOf(t, l), "n")
		b.Generation = 3
		whole := must(l.Replay(ctx, &b, lifeSteps(b)...))(t)
		if whole.State != lifecycle.Destroyed || whole.Generation != 3 || whole.ClaimsName {
			t.Errorf("%+v", whole)
		}
		if cs := must(l.Charges(ctx, b.ID))(t); len(cs) != 1 {
			t.Errorf("charges: %+v", cs)
		}
		if es := must(l.Events(ctx, "acme", 1, 0))(t); len(es) != 5 {
			t.Errorf("%d events", len(es))
		}
		verified(t, l)
		again := must(l.Replay(ctx, &b, lifeSteps(b)...))(t)
		if d := cmp.Diff(whole, again); d != "" {
			t.Errorf("repeated (-first +again):\n%s", d)
		}
		verified(t, l)
	})
	t.Run("what was replayed goes on", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		b := want(newID(t), holderOf(t, l), "n")
		s := must(l.Replay(ctx, &b, lifeSteps(b)[:2]...))(t)
		over := gone(t, l, s)
		if again := must(l.Replay(ctx, &b, lifeSteps(b)[:2]...))(t); again.State != over.State {
			t.Errorf("a replay brought it back: %s", again.State)
		}
		verified(t, l)
	})
	t.Run("all of it or nothing", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		b := want(newID(t), holderOf(t, l), "n")
		steps := lifeSteps(b)
		steps[3].Expect.Fence = 9
		if _, err := l.Replay(ctx, &b, steps...); !extensions.IsKind(err, extensions.KindConflict) {
			t.Fatal(err)
		}
		for _, point := range []string{"ledger.sandbox", "ledger.meter.open", "ledger.charge", "ledger.commit"} {
			fctx := failpointtest.Inject(ctx, point, func() error { return failpointtest.ErrInjected })
			if _, err := l.Replay(fctx, &b, lifeSteps(b)...); !errors.Is(err, failpointtest.ErrInjected) {
				t.Fatalf("%s: %v", point, err)
			}
		}
		if _, err := l.Get(ctx, b.ID); !extensions.IsKind(err, extensions.KindNotFound) {
			t.Errorf("half a life is recorded: %v", err)
		}
		verified(t, l)
	})
	t.Run("a taken name is told, or kept without a claim", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		first := made(t, l, "n")
		b := want(newID(t), holderOf(t, l), "n")
		_, err := l.Replay(ctx, &b, lifeSteps(b)[:2]...)
		taken(t, err, first.ID)
		b.Unclaimed = true
		s := must(l.Replay(ctx, &b, lifeSteps(b)[:2]...))(t)
		if s.Name != "n" || s.ClaimsName || s.State != lifecycle.Ready {
			t.Errorf("%+v", s)
		}
		if got := must(l.ByName(ctx, Account, "n"))(t); got.ID != first.ID {
			t.Errorf("the name is %s's", got.ID)
		}
		verified(t, l)
		gone(t, l, first)
		made(t, l, "n")
		verified(t, l)
	})
	t.Run("one that was made again keeps the charges of each life", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		made(t, l, "n")
		b := want(newID(t), holderOf(t, l), "n")
		b.Unclaimed = true // the name is somebody else's, and stays so
		charge := func(amount int64) ledger.Charge {
			return ledger.Charge{Component: "sandbox", Quantity: 1, Unit: "sandbox-second", UnitPrice: 1000, Amount: amount, Currency: "USD", Memo: ledger.AccountInfra + ":ext.local", Confidence: "exact"}
		}
		steps := lifeSteps(b)
		again := ledger.Change{ID: b.ID, Key: "again", NextGeneration: true, Patch: ledger.Patch{Host: ptr("two")},
			Meter: ledger.MeterOps{Close: meterClose(Start.Add(time.Minute)), Open: meterOpen(Start.Add(2 * time.Minute))}}
		again.Meter.Close.Booked, steps[3].Meter.Close.Booked = booked(charge(7)), booked(charge(8))
		steps = slices.Insert(steps, 2, again)
		for range 2 {
			s := must(l.Replay(ctx, &b, steps...))(t)
			if s.State != lifecycle.Destroyed || s.Generation != 2 || s.ClaimsName {
				t.Errorf("%+v", s)
			}
			ms, cs := must(l.Meters(ctx, b.ID))(t), must(l.Charges(ctx, b.ID))(t)
			if len(ms) != 2 || len(cs) != 2 {
				t.Fatalf("%+v\n%+v", ms, cs)
			}
			for i, m := range ms {
				if m.Generation != int64(i)+1 || m.For.Host != []string{"one", "two"}[i] || cs[i].MeterID != m.ID || cs[i].Amount != int64(i)+7 || m.Used.OwnPlace != cs[i].Amount {
					t.Errorf("life %d: %+v, %+v", i+1, m, cs[i])
				}
			}
			if !ms[0].ClosedAt.Equal(Start.Add(time.Minute)) || !ms[1].OpenedAt.Equal(Start.Add(2*time.Minute)) {
				t.Errorf("%+v", ms)
			}
		}
		verified(t, l)
	})
	t.Run("two steps at once", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		s := made(t, l, "n")
		end := s
		end.Fence++
		got := must(l.Replay(ctx, nil, destroying(s, holderOf(t, l)), destroyed(end)))(t)
		if got.State != lifecycle.Destroyed {
			t.Errorf("%s", got.State)
		}
		if again := must(l.Replay(ctx, nil, destroying(s, holderOf(t, l)), destroyed(end)))(t); again.State != lifecycle.Destroyed {
			t.Errorf("%s", again.State)
		}
		verified(t, l)
	})
	t.Run("steps of two are refused", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		b := want(newID(t), holderOf(t, l), "n")
		for _, steps := range [][]ledger.Change{{{ID: newID(t), Key: "a"}}, {{ID: b.ID}}} {
			if _, err := l.Replay(ctx, &b, steps...); !extensions.IsKind(err, extensions.KindInvalid) {
				t.Error(err)
			}
		}
		if _, err := l.Replay(ctx, nil); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Error(err)
		}
		if es := must(l.Events(ctx, "acme", 1, 0))(t); len(es) != 0 {
			t.Errorf("%d events", len(es))
		}
	})
}
