package ledgertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func life(t *testing.T, address NewAddress) {
	ctx := context.Background()
	t.Run("every column comes back as it was written", func(t *testing.T) {
		t.Parallel()
		clock := &Clock{at: Start}
		l := open(t, address(t), sqlstore.Options{Now: clock.Now})
		b := want(newID(t), holderOf(t, l), "one")
		s := must(l.Begin(ctx, b))(t)
		expect := ledger.Sandbox{
			ID: b.ID, Account: Account, Name: "one", ClaimsName: true, State: lifecycle.Requested, Mode: ledger.Running, Generation: 1, Fence: 1,
			Profile: "profile.base", ProfileVersion: "1.0.0", SpecHash: "aa11",
			Request: []byte(`{"name":"one","ttl":"2h"}`), Spec: []byte(`{"scope":"session"}`), Route: []byte(`{"chosen":"ext.local"}`),
			QuoteDigest: s.QuoteDigest, Extension: "ext.local", Host: "one", HostRef: `{"name":"one","local":true}`,
			TTL: 2 * time.Hour, MaxTTL: 24 * time.Hour, CreatedAt: Start, ExpiresAt: Start.Add(2 * time.Hour), UpdatedAt: s.UpdatedAt,
		}
		if d := cmp.Diff(expect, s); d != "" {
			t.Fatalf("after Begin (-want +got):\n%s", d)
		}
		s = must(l.Apply(ctx, provisioning(s)))(t)
		s = must(l.Apply(ctx, ready(s)))(t)
		expect.State, expect.UpdatedAt = lifecycle.Ready, s.UpdatedAt
		expect.Handle = *handle(b.ID)
		expect.Handle.Data = []byte(`{"a":1,"pid":7}`)
		expect.Reachability = extensions.Reachability{WorkDir: "/w", Host: "one"}
		expect.ReadyAt = Start.Add(2 * time.Second)
		if d := cmp.Diff(expect, s); d != "" {
			t.Fatalf("when ready (-want +got):\n%s", d)
		}
		if d := cmp.Diff(s, must(l.Get(ctx, s.ID))(t)); d != "" {
			t.Fatalf("Get differs from Apply (-apply +get):\n%s", d)
		}
		verified(t, l)
	})
	t.Run("a patch sets every column, and a pointer to zero clears it", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		s := made(t, l, "one")
		at := Start.Add(time.Minute + 123*time.Microsecond)
		full := ledger.Patch{Mode: ptr(ledger.Paused), SpecHash: ptr("h"), Profile: ptr("p"), Version: ptr("2"), Request: []byte(`{"r":1}`),
			Spec:  []byte(`{"s":1}`),
			Route: []byte(`{"t":1}`), Extension: ptr("ext.x"), Host: ptr("two"), HostRef: ptr("ref"), Identity: ptr("who"), Handle: handle(s.ID),
			Reachability: &extensions.Reachability{SSH: "me@two"}, WorkspaceBase: []byte(`{"m":{}}`), TTL: ptr(3 * time.Hour),
			MaxTTL:  ptr(5 * time.Hour),
			ReadyAt: &at, ExpiresAt: &at, SeenAliveAt: &at, EndedAt: &at, Reason: ptr("why"), EndReason: ptr("lost"), EndEstimated: ptr(true)}
		got := must(l.Apply(ctx, ledger.Change{ID: s.ID, Key: step(s, "patch"), Patch: full}))(t)
		data := *handle(s.ID)
		data.Data = []byte(`{"a":1,"pid":7}`)
		expect := s
		expect.Mode, expect.SpecHash, expect.Profile, expect.ProfileVersion = ledger.Paused, "h", "p", "2"
		expect.Request, expect.Spec, expect.Route, expect.WorkspaceBase = []byte(`{"r":1}`), []byte(`{"s":1}`),
			[]byte(`{"t":1}`), []byte(`{"m":{}}`)
		expect.Extension, expect.Host, expect.HostRef, expect.Identity, expect.Handle = "ext.x", "two", "ref", "who", data
		expect.Reachability = extensions.Reachability{SSH: "me@two"}
		expect.TTL, expect.MaxTTL, expect.ReadyAt, expect.ExpiresAt, expect.SeenAliveAt, expect.EndedAt = 3*time.Hour, 5*time.Hour, at, at, at, at
		expect.Reason, expect.EndReason, expect.EndEstimated, expect.UpdatedAt = "why", "lost", true, got.UpdatedAt
		if d := cmp.Diff(expect, got); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
		got = must(l.Apply(ctx, ledger.Change{ID: s.ID, Key: step(s, "clear"),
			Patch: ledger.Patch{Handle: &extensions.Handle{}, EndedAt: &time.Time{}, Route: []byte("null")}}))(t)
		if !got.Handle.IsZero() || !got.EndedAt.IsZero() || got.Route != nil {
			t.Fatalf("not cleared: %+v", got)
		}
		verified(t, l)
	})
	t.Run("it ends destroyed, and what it cost is booked", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		s := gone(t, l, made(t, l, "one"))
		if s.State != lifecycle.Destroyed || s.ClaimsName || s.EndReason != "destroyed" {
			t.Fatalf("%+v", s)
		}
		if open := must(l.OpenIntents(ctx, ledger.IntentFilter{}))(t); len(open) != 0 {
			t.Fatalf("open intents are left: %+v", open)
		}
		charges := must(l.Charges(ctx, s.ID))(t)
		const ms = 3599 * 1000
		if d := cmp.Diff([]ledger.Charge{{MeterID: string(s.ID) + "/1", Segment: 1, Component: "sandbox", Quantity: ms, Unit: "sandbox-second",
			UnitPrice: 3000,
			Amount:    ms * 3 / 1000, Currency: "USD", Memo: "byok_memo:ext.local", Confidence: "exact"}}, charges); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
		verified(t, l)
	})
	t.Run("the quote and its prices are kept as they were", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		s := made(t, l, "one")
		other := made(t, l, "two")
		if other.QuoteDigest != s.QuoteDigest {
			t.Fatal("the same quote has two digests")
		}
		q := must(l.Quote(ctx, s.QuoteDigest))(t)
		if string(q.Body) != `{"total":"0.80 USD"}` || len(q.Prices) != 1 || string(q.Prices[0].Body) != `{"cpu":{"pico":12}}` ||
			q.Prices[0].AsOf != "2026-01-01" {
			t.Fatalf("%+v", q)
		}
	})
	t.Run("what is not there is not found", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		_, get := l.Get(ctx, newID(t))
		_, byName := l.ByName(ctx, Account, "nobody")
		_, snapshot := l.GetSnapshot(ctx, "snp-x")
		_, host := l.Host(ctx, Account, "nowhere")
		_, intent := l.Intent(ctx, "none")
		_, quote := l.Quote(ctx, "none")
		_, apply := l.Apply(ctx, ledger.Change{ID: newID(t), Key: "k"})
		for _, err := range []error{get, byName, snapshot, host, intent, quote, apply} {
			if !extensions.IsKind(err, extensions.KindNotFound) {
				t.Errorf("want not_found, got %v", err)
			}
		}
	})
	t.Run("a filter selects by each of its fields", func(t *testing.T) {
		t.Parallel()
		filters(t, fresh(t, address))
	})
	t.Run("what takes room is counted by place", func(t *testing.T) {
		t.Parallel()
		occupancy(t, fresh(t, address))
	})
	t.Run("how long places took to be ready", func(t *testing.T) {
		t.Parallel()
		readyTimes(t, fresh(t, address))
	})
	t.Run("how long lives of a profile were", func(t *testing.T) {
		t.Parallel()
		lifetimes(t, fresh(t, address))
	})
	t.Run("a cancelled context starts nothing", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		h := holderOf(t, l)
		dead, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := l.Begin(dead, want(newID(t), h, "one")); !errors.Is(err, context.Canceled) {
			t.Fatalf("want the context's error, got %v", err)
		}
		if rows := must(l.List(ctx, ledger.Filter{}))(t); len(rows) != 0 {
			t.Fatalf("written all the same: %+v", rows)
		}
	})
}

func filters(t *testing.T, l *ledger.Ledger) {
	ctx := context.Background()
	one, two := made(t, l, "one"), gone(t, l, made(t, l, "two"))
	b := want(newID(t), holderOf(t, l), "one")
	b.Account, b.Host, b.Extension, b.ExpiresAt, b.CreatedAt = "acme/other", "far", "ext.far", Start.Add(time.Hour), Start.Add(time.Minute)
	far := must(l.Begin(ctx, b))(t)
	for name, c := range map[string]struct {
		filter ledger.Filter
		want   []ledger.Sandbox
	}{
		"account":   {ledger.Filter{Account: "acme/other"}, []ledger.Sandbox{far}},
		"name":      {ledger.Filter{Name: "two"}, []ledger.Sandbox{two}},
		"host":      {ledger.Filter{Host: "far"}, []ledger.Sandbox{far}},
		"extension": {ledger.Filter{Extension: "ext.far"}, []ledger.Sandbox{far}},
		"states":    {ledger.Filter{States: []lifecycle.State{lifecycle.Ready, lifecycle.Active}}, []ledger.Sandbox{one}},
		"expired":   {ledger.Filter{ExpiredBy: Start.Add(time.Hour)}, []ledger.Sandbox{far}},
		"live":      {ledger.Filter{Live: true}, []ledger.Sandbox{one, far}},
		"several":   {ledger.Filter{Live: true, Account: Account, Name: "one"}, []ledger.Sandbox{one}},
	} {
		if d := cmp.Diff(c.want, must(l.List(ctx, c.filter))(t)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}
