package sqlstore_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// teller leads lives in a ledger, one change after the other.
type teller struct {
	t      testing.TB
	l      *ledger.Ledger
	holder ledger.HolderID
}

func (w *teller) begin(account, name string, r *ledger.Reserve) ledger.Sandbox {
	w.t.Helper()
	id, err := extensions.NewID(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := w.l.Begin(ctx, ledger.Begin{Key: string(id) + "/create", Holder: w.holder, ID: id, Account: account, Name: name,
		Profile: "profile.base", ProfileVersion: "1.0.0", SpecHash: "aa", Request: json.RawMessage(`{"name":"` + name + `"}`),
		Spec:  json.RawMessage(`{"a":1}`),
		Route: json.RawMessage(`{"chosen":"ext.local"}`), Extension: "ext.local", Host: "one", HostRef: "ref", TTL: time.Hour,
		MaxTTL: 2 * time.Hour,
		Quote: &ledger.Quote{Body: json.RawMessage(`{"total":"1.00 USD"}`),
			Prices: []ledger.PriceBook{{Source: "book", Version: "1", AsOf: "2026-01-01", Body: json.RawMessage(`{"cpu":12}`)}}},
		Reserve: r})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *teller) step(s ledger.Sandbox, key string, c ledger.Change) ledger.Sandbox {
	w.t.Helper()
	c.ID, c.Key = s.ID, string(s.ID)+"/"+key
	s, err := w.l.Apply(ctx, c)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *teller) ready(s ledger.Sandbox) ledger.Sandbox {
	w.t.Helper()
	h := extensions.Handle{Extension: "local", Version: 1, ID: s.ID, Ref: "r"}
	s = w.step(s, "provisioning", ledger.Change{To: lifecycle.Provisioning, Patch: ledger.Patch{Handle: &h}})
	return w.step(s, "ready", ledger.Change{To: lifecycle.Ready, Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed},
		Patch: ledger.Patch{Reachability: &extensions.Reachability{WorkDir: "/w"}},
		Meter: ledger.MeterOps{Open: &ledger.MeterOpen{Source: "backend", Currency: "USD", Rates: json.RawMessage(`{"wall":3}`),
			Sizes: map[string]int64{"milli_vcpu": 500}}}})
}

func (w *teller) end(s ledger.Sandbox, used int64) {
	w.t.Helper()
	s = w.step(s, "destroying", ledger.Change{To: lifecycle.Destroying,
		Intent: &ledger.OpenIntent{Kind: ledger.IntentDestroy, Holder: w.holder, Detail: json.RawMessage(`{"why":"asked"}`)}})
	bills.Put(s.ID,
		ledger.Charge{Segment: 1, Component: "wall", Quantity: 7, Unit: "ms", UnitPrice: 3, Amount: used, Currency: "USD", Confidence: "exact"},
		ledger.Charge{Segment: 2, Component: "own", Amount: 4, Currency: "USD", Memo: "infra_memo:local", Confidence: "estimated"})
	now, why := s.UpdatedAt, "destroyed"
	w.step(s, "destroyed", ledger.Change{To: lifecycle.Destroyed, Patch: ledger.Patch{EndedAt: &now, EndReason: &why},
		Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed, Reason: "done"},
		Meter:  ledger.MeterOps{Close: &ledger.MeterClose{Source: "ours", Estimated: true}}})
}

// story fills every table: lives that are over, one that runs, paid from a
// wallet below budgets and with an own key, a snapshot, a host.
func story(t testing.TB, address string) {
	t.Helper()
	l, err := sqlstore.Open(ctx, address, sqlstore.Options{Charges: bills.Of})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	holder, err := l.Holder(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w := &teller{t, l, holder}
	if _, err := l.Grant(ctx, ledger.Grant{Key: "grant-1", Org: "acme", Currency: "USD", Amount: 100,
		Note: ledger.Note{Data: json.RawMessage(`{"why":"hello"}`)}}); err != nil {
		t.Fatal(err)
	}
	for _, b := range []ledger.Budget{{Account: "acme", Name: "month", Currency: "USD", Limit: 80, Hard: true, Period: "month"},
		{Account: "acme/web", Name: "all", Currency: "USD", Limit: 90}} {
		if _, err := l.PutBudget(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.PutHost(ctx, ledger.Host{Account: "acme/web", Name: "one", Ref: "{}", Facts: extensions.HostFacts{CPUs: 2}}); err != nil {
		t.Fatal(err)
	}
	if err := l.PutFacts(ctx, ledger.Facts{Account: "acme/web", Extension: "ext.local", Host: "one", HostRef: "{}", Config: "c",
		ProbedAt: time.Unix(1, 0),
		Found:    extensions.Facts{Notes: []string{"gpu: none"}}}); err != nil {
		t.Fatal(err)
	}
	over := w.ready(w.begin("acme/web", "over", &ledger.Reserve{Currency: "USD", Amount: 10, Wallet: true}))
	over = w.step(over, "pause", ledger.Change{Meter: ledger.MeterOps{Switch: &bank.MeterSwitch{Mode: ledger.Paused,
		Sizes: map[string]int64{"memory_mib": 64}}}})
	over = w.step(over, "more", ledger.Change{Reserve: &ledger.Reserve{Currency: "USD", Amount: 5, Wallet: true}})
	w.end(over, 20)
	live := w.ready(w.begin("acme/web", "live", &ledger.Reserve{Currency: "USD", Amount: 12, Wallet: true}))
	own := w.ready(w.begin("acme/api", "own", &ledger.Reserve{Currency: "USD", Amount: 3}))
	w.step(own, "seen", ledger.Change{Patch: ledger.Patch{SeenAliveAt: &own.UpdatedAt, ReadyAt: &own.UpdatedAt,
		WorkspaceBase: json.RawMessage(`{"m":1}`)}})
	w.step(own, "held", ledger.Change{Lease: &ledger.Lease{ID: "one", Request: json.RawMessage(`{"ttl":"1h"}`), CreatedAt: own.CreatedAt,
		ExpiresAt: own.CreatedAt.Add(time.Hour)}})
	w.begin("umbrella/x", "open", nil)
	snap, err := extensions.NewSnapshotID(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.BeginSnapshot(ctx, ledger.BeginSnapshot{Key: "snap", Holder: holder, ID: snap, Account: "acme/web", Name: "s",
		SandboxID: live.ID, Extension: "ext.local", Host: "one", HostRef: "ref", Request: json.RawMessage(`{"n":1}`)}); err != nil {
		t.Fatal(err)
	}
	kind, size, digest := "workspace", int64(9), "sha256:aa"
	if _, err := l.ApplySnapshot(ctx, ledger.SnapshotChange{ID: snap, Key: "snap/ready", To: ledger.SnapshotReady,
		Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed}, Meter: ledger.MeterOps{Open: &ledger.MeterOpen{Source: "ours"}},
		Patch: ledger.SnapshotPatch{Handle: &extensions.SnapshotHandle{Extension: "local", Version: 1, ID: snap, Ref: "f"}, Kind: &kind,
			SizeBytes: &size, Digest: &digest}}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.MoveOutbox(ctx, ledger.OutboxStep{Sink: "hub", Stream: "acme", Attempt: 4,
		Withhold: []ledger.Withheld{{Seq: 2, State: ledger.WithheldRejected, Reason: "no"}}, Delivered: 3}); err != nil {
		t.Fatal(err)
	}
}
