package ledgertest

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
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
			fctx := failpoint.Inject(ctx, point, func() error { return failpoint.ErrInjected })
			if _, err := l.Replay(fctx, &b, lifeSteps(b)...); !errors.Is(err, failpoint.ErrInjected) {
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
