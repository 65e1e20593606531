package engine_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// lived records a sandbox on a host as the engine does: metered from start,
// and unless end is zero until then.
func lived(t *testing.T, l *ledger.Ledger, name, host string, start, end time.Time, cpu int64) {
	t.Helper()
	ctx := context.Background()
	id, err := extensions.NewID(nil)
	if err != nil {
		t.Fatal(err)
	}
	holder, err := l.Holder(ctx)
	if err != nil {
		t.Fatal(err)
	}
	row, err := l.Begin(ctx, ledger.Begin{Key: string(id), Holder: holder, ID: id, Account: "acme/web", Name: name, Profile: "profile.stub",
		ProfileVersion: "1.0.0",
		SpecHash:       "aa", Request: json.RawMessage(`{}`), Spec: json.RawMessage(`{}`), Route: json.RawMessage(`{}`), Extension: "ext.x", Host: host,
		TTL: time.Hour, MaxTTL: time.Hour, CreatedAt: start, ExpiresAt: start.Add(24 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	apply := func(c ledger.Change) {
		t.Helper()
		c.ID, c.Key, c.Expect = row.ID, string(row.ID)+string(c.To), ledger.Expect{Fence: row.Fence}
		if row, err = l.Apply(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	apply(ledger.Change{To: lifecycle.Provisioning})
	apply(ledger.Change{To: lifecycle.Ready, Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed}, Patch: ledger.Patch{ReadyAt: &start},
		Meter: ledger.MeterOps{Open: &ledger.MeterOpen{At: start, Source: "ours",
			Rates: json.RawMessage(`{"v":1,"basis":"unknown","extension":"ext.x","confidence":"unknown","memo":true,"sizes":{}}`),
			Sizes: map[string]int64{"milli_vcpu": cpu}}}})
	if end.IsZero() {
		return
	}
	apply(ledger.Change{To: lifecycle.Destroying, Intent: &ledger.OpenIntent{Kind: ledger.IntentDestroy, Holder: holder}})
	apply(ledger.Change{To: lifecycle.Destroyed, Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed},
		Meter: ledger.MeterOps{Close: &ledger.MeterClose{At: end, Source: "ours"}}, Patch: ledger.Patch{EndedAt: &end}})
}

func TestWhatAHostCostIsBorneOrIdle(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	l := b.book()
	from := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	h := engine.Host{Name: "one", Local: true, Cost: &extensions.HostCost{PerHour: "0.40 USD", CPU: 4}}
	if _, err := l.PutHost(ctx, ledger.Host{Account: "acme/web", Name: "one", Ref: h.Ref()}); err != nil {
		t.Fatal(err)
	}
	lived(t, l, "before", "one", from.Add(-2*time.Hour), from.Add(-time.Hour), 4000)
	lived(t, l, "half", "one", from.Add(-time.Hour), from.Add(30*time.Minute), 1000)
	lived(t, l, "late", "one", from.Add(30*time.Minute), from.Add(5*time.Hour), 2000)
	lived(t, l, "alive", "one", from, time.Time{}, 1000)
	lived(t, l, "elsewhere", "two", from, time.Time{}, 4000)
	lived(t, l, "after", "one", from.Add(2*time.Hour), time.Time{}, 4000)
	got, err := b.HostCost(ctx, "one", from, from.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if got.Cost != "0.40" || got.Idle != "0.15" || got.Sharing != "none" || len(got.Shares) != 3 {
		t.Errorf("got %+v", got)
	}
	for _, s := range got.Shares {
		if want := map[string]string{"half": "0.05", "late": "0.10", "alive": "0.10"}[s.Name]; s.Borne != want || s.Profile != "profile.stub" {
			t.Errorf("%s bears %s, want %s", s.Name, s.Borne, want)
		}
	}
	if _, err := b.HostCost(ctx, "one", from, from); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("no stretch of time: %v", err)
	}
	if _, err := b.HostCost(ctx, "none", from, from.Add(1)); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Errorf("no such host: %v", err)
	}
}
