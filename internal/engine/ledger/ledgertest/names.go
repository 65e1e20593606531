package ledgertest

import (
	"context"
	"errors"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// taken fails unless err says that existing has the name.
func taken(t *testing.T, err error, existing extensions.ID) {
	t.Helper()
	var e *ledger.NameTaken
	if !errors.As(err, &e) || !extensions.IsKind(err, extensions.KindConflict) || e.Existing.ID != existing || extensions.RemedyOf(err) == "" {
		t.Fatalf("want a conflict that names %s, got %v", existing, err)
	}
}

func expire(s ledger.Sandbox) ledger.Change {
	return ledger.Change{ID: s.ID, Key: step(s, "expired"), Expect: ledger.Expect{Fence: s.Fence}, To: lifecycle.Expired,
		Meter: ledger.MeterOps{Close: meterClose(s.ExpiresAt)}}
}

func namesAreUnique(t *testing.T, address NewAddress) {
	ctx := context.Background()
	t.Run("per account while live", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		s := must(l.Begin(ctx, want(newID(t), holderOf(t, l), "n")))(t)
		for range 4 { // requested, provisioning, ready, failed
			_, err := l.Begin(ctx, want(newID(t), holderOf(t, l), "n"))
			taken(t, err, s.ID)
			switch s.State {
			case lifecycle.Requested:
				s = must(l.Apply(ctx, provisioning(s)))(t)
			case lifecycle.Provisioning:
				s = must(l.Apply(ctx, ready(s)))(t)
			case lifecycle.Ready:
				s = must(l.Apply(ctx, ledger.Change{ID: s.ID, Key: step(s, "failed"), To: lifecycle.Failed}))(t)
			}
		}
		other := want(newID(t), holderOf(t, l), "n")
		other.Account = "acme/other"
		must(l.Begin(ctx, other))(t)
		verified(t, l)
	})
	t.Run("a destroyed one frees its name", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		old := gone(t, l, made(t, l, "n"))
		if _, err := l.ByName(ctx, Account, "n"); !extensions.IsKind(err, extensions.KindNotFound) {
			t.Fatalf("%s still has the name: %v", old.ID, err)
		}
		s := made(t, l, "n")
		if got := must(l.ByName(ctx, Account, "n"))(t); got.ID != s.ID {
			t.Fatalf("the name finds %s", got.ID)
		}
		verified(t, l)
	})
	t.Run("an expired one frees its name and its teardown does not take it back", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		old := must(l.Apply(ctx, expire(made(t, l, "n"))))(t)
		s := made(t, l, "n")
		old = gone(t, l, old)
		if got := must(l.ByName(ctx, Account, "n"))(t); got.ID != s.ID || old.State != lifecycle.Destroyed {
			t.Fatalf("the name finds %s, the old one is %s", got.ID, old.State)
		}
		verified(t, l)
	})
	t.Run("an expired one that is recreated claims its name anew", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		old := must(l.Apply(ctx, expire(made(t, l, "n"))))(t)
		recreate := ledger.Change{ID: old.ID, Key: step(old, "recreate"), To: lifecycle.Provisioning, NextGeneration: true,
			Intent: &ledger.OpenIntent{Kind: ledger.IntentRecreate, Holder: holderOf(t, l)}}
		s := made(t, l, "n")
		_, err := l.Apply(ctx, recreate)
		taken(t, err, s.ID)
		gone(t, l, s)
		again := must(l.Apply(ctx, recreate))(t)
		if again.Generation != 2 || !again.ClaimsName || again.Fence != old.Fence+1 {
			t.Fatalf("%+v", again)
		}
		again = must(l.Apply(ctx, ready(again)))(t)
		if ms := must(l.Meters(ctx, again.ID))(t); len(ms) != 2 || ms[0].Open() || !ms[1].Open() || ms[1].Generation != 2 {
			t.Fatalf("%+v", ms)
		}
		verified(t, l)
	})
	t.Run("a key or an id is used once", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		b := want(newID(t), holderOf(t, l), "n")
		first := must(l.Begin(ctx, b))(t)
		s := must(l.Apply(ctx, provisioning(first)))(t)
		again := must(l.Begin(ctx, b))(t)
		if again.ID != s.ID || again.State != lifecycle.Provisioning {
			t.Fatalf("the same key made or changed something: %+v", again)
		}
		same := want(b.ID, b.Holder, "other")
		same.Key = "another key"
		if _, err := l.Begin(ctx, same); !extensions.IsKind(err, extensions.KindConflict) {
			t.Fatalf("the same id with another key: %v", err)
		}
		if n := len(must(l.Events(ctx, "acme", 1, 0))(t)); n != 2 {
			t.Fatalf("%d events instead of 2", n)
		}
		verified(t, l)
	})
	t.Run("bad input is refused and leaves nothing", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		for name, spoil := range map[string]func(*ledger.Begin){
			"id":            func(b *ledger.Begin) { b.ID = "x" },
			"no account":    func(b *ledger.Begin) { b.Account = "" },
			"no org":        func(b *ledger.Begin) { b.Account = "/web" },
			"no name":       func(b *ledger.Begin) { b.Name = "" },
			"newline":       func(b *ledger.Begin) { b.Name = "a\nb" },
			"NUL":           func(b *ledger.Begin) { b.Profile = "a\x00b" },
			"broken UTF-8":  func(b *ledger.Begin) { b.Host = "a\xff" },
			"no key":        func(b *ledger.Begin) { b.Key = "" },
			"no holder":     func(b *ledger.Begin) { b.Holder = "" },
			"request":       func(b *ledger.Begin) { b.Request = []byte("{") },
			"two documents": func(b *ledger.Begin) { b.Spec = []byte("{}{}") },
			"quote":         func(b *ledger.Begin) { b.Quote = &ledger.Quote{} },
			"note":          func(b *ledger.Begin) { b.Event.Data = []byte("nonsense") },
		} {
			b := want(newID(t), holderOf(t, l), "n")
			spoil(&b)
			if _, err := l.Begin(ctx, b); !extensions.IsKind(err, extensions.KindInvalid) {
				t.Errorf("%s: want invalid, got %v", name, err)
			}
		}
		if rows := must(l.List(ctx, ledger.Filter{}))(t); len(rows) != 0 {
			t.Fatalf("something is left: %+v", rows)
		}
		verified(t, l)
	})
}
