package ledgertest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// occupancy counts the sandboxes that take room, by place and account.
func occupancy(t *testing.T, l *ledger.Ledger) {
	ctx := context.Background()
	at := func(name, account, extension, host string, ends time.Time) ledger.Begin {
		b := want(newID(t), holderOf(t, l), name)
		b.Account, b.Extension, b.Host, b.ExpiresAt = account, extension, host, ends
		return b
	}
	later := Start.AddDate(100, 0, 0)
	for i, b := range []ledger.Begin{
		at("one", Account, "ext.a", "one", later), at("two", Account, "ext.a", "one", later), at("three", Account, "ext.a", "two", later),
		at("four", Account, "ext.b", "", later), at("over", Account, "ext.b", "", Start), at("theirs", "acme/other", "ext.b", "", later),
	} {
		s := must(l.Begin(ctx, b))(t)
		if i == 0 {
			if rows := must(l.Occupancy(ctx, Account))(t); len(rows) != 0 {
				t.Errorf("what has no place yet takes no room: %+v", rows)
			}
		}
		must(l.Apply(ctx, provisioning(s)))(t)
	}
	gone(t, l, made(t, l, "gone"))
	wanted := []ledger.Occupied{{Extension: "ext.a", Host: "one", Live: 2}, {Extension: "ext.a", Host: "two", Live: 1},
		{Extension: "ext.b", Live: 1}}
	if d := cmp.Diff(wanted, must(l.Occupancy(ctx, Account))(t)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// readyTimes are those of first lives that became ready, the newest first.
func readyTimes(t *testing.T, l *ledger.Ledger) {
	ctx := context.Background()
	for i := range 4 {
		b := want(newID(t), holderOf(t, l), fmt.Sprint("n", i))
		b.CreatedAt = Start.Add(time.Duration(i) * time.Minute)
		s := must(l.Begin(ctx, b))(t)
		s = must(l.Apply(ctx, provisioning(s)))(t)
		if i == 3 {
			break // never ready
		}
		c := ready(s)
		c.Patch.ReadyAt = ptr(b.CreatedAt.Add(time.Duration(i+1) * time.Second))
		must(l.Apply(ctx, c))(t)
	}
	got := must(l.ReadyTimes(ctx, Account, "ext.local", "one", 2))(t)
	if len(got) != 2 || got[0].Took != 3*time.Second || got[1].Took != 2*time.Second || string(got[0].Route) != `{"chosen":"ext.local"}` {
		t.Errorf("got %+v", got)
	}
	for _, other := range [][3]string{{"acme/other", "ext.local", "one"}, {Account, "ext.other", "one"}, {Account, "ext.local", ""}} {
		if got := must(l.ReadyTimes(ctx, other[0], other[1], other[2], 9))(t); len(got) != 0 {
			t.Errorf("%v: %+v", other, got)
		}
	}
}
