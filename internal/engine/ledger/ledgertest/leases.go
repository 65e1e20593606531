package ledgertest

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// leases: several hold one sandbox; a change that needs it unheld counts what still holds it after that change, and
// the end of the sandbox ends them all.
func leases(t *testing.T, address NewAddress) {
	ctx := context.Background()
	l := fresh(t, address)
	now := time.Now().UTC().Truncate(time.Microsecond)
	b := want(newID(t), holderOf(t, l), "shared")
	one := ledger.Lease{ID: "one", SandboxID: b.ID, Request: json.RawMessage(`{"profile":"p"}`), CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
	b.Lease = &one
	s := must(l.Begin(ctx, b))(t)
	must(l.Begin(ctx, b))(t) // repeated
	s = must(l.Apply(ctx, ready(must(l.Apply(ctx, provisioning(s)))(t))))(t)
	is := func(want ...ledger.Lease) {
		t.Helper()
		if d := cmp.Diff(want, must(l.Leases(ctx, s.ID))(t)); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
	}
	is(one)
	two := ledger.Lease{ID: "two", SandboxID: s.ID, Request: one.Request, CreatedAt: now.Add(time.Second), ExpiresAt: now.Add(2 * time.Hour)}
	lapsed := ledger.Lease{ID: "lapsed", SandboxID: s.ID, Request: one.Request, CreatedAt: now.Add(2 * time.Second),
		ExpiresAt: now.Add(-time.Hour)}
	for _, more := range []ledger.Lease{two, lapsed} {
		c := ledger.Change{ID: s.ID, Key: step(s, more.ID), Lease: &more}
		for range 2 {
			s = must(l.Apply(ctx, c))(t)
		}
	}
	is(one, two, lapsed)
	two.ExpiresAt = now.Add(3 * time.Hour)
	s = must(l.Apply(ctx, ledger.Change{ID: s.ID, Key: step(s, "longer"), Lease: &two}))(t)
	is(one, two, lapsed)
	verified(t, l)

	held := ledger.Change{ID: s.ID, Key: step(s, "unheld"), Release: []string{"one"}, Expect: ledger.Expect{Unleased: true}}
	var stale *ledger.Stale
	if _, err := l.Apply(ctx, held); !errors.As(err, &stale) || !extensions.IsKind(err, extensions.KindConflict) {
		t.Fatalf("two still holds it: %v", err)
	}
	is(one, two, lapsed) // nothing of the refused change happened
	s = must(l.Apply(ctx, ledger.Change{ID: s.ID, Key: step(s, "released"), Release: []string{"one", "unknown"}}))(t)
	is(two, lapsed)
	forsaken := ledger.Change{ID: s.ID, Key: step(s, "forsaken"), Release: []string{"two"}, Expect: ledger.Expect{Leased: true}}
	if _, err := l.Apply(ctx, forsaken); !errors.As(err, &stale) {
		t.Fatalf("one that lapsed holds nothing: %v", err)
	}
	is(two, lapsed)
	last := ledger.Change{ID: s.ID, Key: step(s, "last"), Release: []string{"two"}, Expect: ledger.Expect{Unleased: true}}
	s = must(l.Apply(ctx, last))(t) // one that lapsed holds nothing
	is(lapsed)
	verified(t, l)
	s = gone(t, l, s)
	if left := must(l.Leases(ctx, s.ID))(t); len(left) != 0 {
		t.Fatalf("a destroyed sandbox keeps %+v", left)
	}
	verified(t, l)
}
