// Package ledgertest is the behavior of every ledger, as tests that a database runs by providing a way to open it. Only
// tests import it.
package ledgertest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Account is the account of most tests.
const Account = "acme/web"

// Start is the time at which most tests begin.
var Start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Clock is a clock that tests move.
type Clock struct{ at time.Time }

// Now returns the clock's time, a millisecond later at each call.
func (c *Clock) Now() time.Time {
	c.at = c.at.Add(time.Millisecond)
	return c.at
}

// same is a constant source of randomness, so that ledgers have the same name.
type same struct{}

func (same) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func newID(t testing.TB) extensions.ID {
	t.Helper()
	id, err := extensions.NewID(nil)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func newSnapshotID(t testing.TB) string {
	t.Helper()
	id, err := extensions.NewSnapshotID(nil)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// want returns a Begin with every field set.
func want(id extensions.ID, holder ledger.HolderID, name string) ledger.Begin {
	return ledger.Begin{
		Key: string(id) + "/create", Holder: holder, ID: id, Account: Account, Name: name,
		Profile: "profile.base", ProfileVersion: "1.0.0", SpecHash: "aa11",
		Request: json.RawMessage(`{"ttl":"2h", "name":"` + name + `"}`), Spec: json.RawMessage(`{"scope":"session"}`),
		Route:     json.RawMessage(`{"chosen":"ext.local"}`),
		Extension: "ext.local", Host: "one", HostRef: `{"name":"one","local":true}`,
		TTL: 2 * time.Hour, MaxTTL: 24 * time.Hour, CreatedAt: Start, ExpiresAt: Start.Add(2 * time.Hour),
		Quote: &ledger.Quote{Body: json.RawMessage(`{"total":"0.80 USD"}`),
			Prices: []ledger.PriceBook{{Source: "builtin", Version: "1", AsOf: "2026-01-01", Body: json.RawMessage(`{"cpu":{"pico":12}}`)}}},
	}
}

func handle(id extensions.ID) *extensions.Handle {
	return &extensions.Handle{Extension: "local", Version: 1, ID: id, Ref: "r-" + string(id), Data: json.RawMessage(`{"pid":7,"a":1}`)}
}

func ptr[T any](v T) *T { return &v }

var sizes = map[string]int64{"milli_vcpu": 2000, "memory_mib": 2048}

func meterOpen(at time.Time) *ledger.MeterOpen {
	return &ledger.MeterOpen{At: at, Source: "backend", Currency: "USD", Rates: rates, Sizes: sizes}
}

func meterClose(at time.Time) *ledger.MeterClose {
	return &ledger.MeterClose{At: at, Source: "backend"}
}

// rates charge 3 pico-units for each millisecond that runs.
var rates = func() json.RawMessage {
	price := meter.UnitPrice(3000)
	s := meter.PriceSnapshot{Version: 1, Basis: meter.BasisPerHour, Extension: "ext.local", Currency: "USD", Confidence: meter.ConfidenceExact,
		Prices: []meter.SnapshotPrice{{Component: meter.ComponentSandbox, Unit: "sandbox-second", Price: &price,
			Confidence: meter.ConfidenceExact}}}
	return json.RawMessage(s.Encode())
}()

// provisioning, ready, destroying and destroyed return the steps of an ordinary life, as the engine makes them.
func provisioning(s ledger.Sandbox) ledger.Change {
	return ledger.Change{ID: s.ID, Key: step(s, "provisioning"),
		Expect: ledger.Expect{States: []lifecycle.State{lifecycle.Requested}, Fence: s.Fence},
		To:     lifecycle.Provisioning, Patch: ledger.Patch{Handle: handle(s.ID)}}
}

func ready(s ledger.Sandbox) ledger.Change {
	return ledger.Change{ID: s.ID, Key: step(s, "ready"),
		Expect: ledger.Expect{States: []lifecycle.State{lifecycle.Provisioning}, Fence: s.Fence},
		To:     lifecycle.Ready, Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed},
		Meter: ledger.MeterOps{Open: meterOpen(Start.Add(time.Second))},
		Patch: ledger.Patch{ReadyAt: ptr(Start.Add(2 * time.Second)), Reachability: &extensions.Reachability{WorkDir: "/w", Host: "one"}}}
}

func destroying(s ledger.Sandbox, holder ledger.HolderID) ledger.Change {
	return ledger.Change{ID: s.ID, Key: step(s, "destroying"), Expect: ledger.Expect{Fence: s.Fence}, To: lifecycle.Destroying,
		Intent: &ledger.OpenIntent{Kind: ledger.IntentDestroy, Holder: holder, Supersede: true}}
}

func destroyed(s ledger.Sandbox) ledger.Change {
	return ledger.Change{ID: s.ID, Key: step(s, "destroyed"),
		Expect: ledger.Expect{States: []lifecycle.State{lifecycle.Destroying}, Fence: s.Fence},
		To:     lifecycle.Destroyed, Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed},
		Meter: ledger.MeterOps{Close: meterClose(Start.Add(time.Hour))},
		Patch: ledger.Patch{EndedAt: ptr(Start.Add(time.Hour)), EndReason: ptr("destroyed")}}
}

func step(s ledger.Sandbox, name string) string { return fmt.Sprintf("%s/%d/%s", s.ID, s.Fence, name) }

// made returns a sandbox in state ready.
func made(t testing.TB, l *ledger.Ledger, name string) ledger.Sandbox {
	t.Helper()
	s := must(l.Begin(context.Background(), want(newID(t), holderOf(t, l), name)))(t)
	s = must(l.Apply(context.Background(), provisioning(s)))(t)
	return must(l.Apply(context.Background(), ready(s)))(t)
}

func gone(t testing.TB, l *ledger.Ledger, s ledger.Sandbox) ledger.Sandbox {
	t.Helper()
	s = must(l.Apply(context.Background(), destroying(s, holderOf(t, l))))(t)
	return must(l.Apply(context.Background(), destroyed(s)))(t)
}

func holderOf(t testing.TB, l *ledger.Ledger) ledger.HolderID {
	t.Helper()
	return must(l.Holder(context.Background()))(t)
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatalf("unexpected: %v (remedy: %s)", err, extensions.RemedyOf(err))
		}
		return v
	}
}

// verified fails the test if the ledger is not consistent.
func verified(t testing.TB, l *ledger.Ledger, pinned ...ledger.Head) {
	t.Helper()
	if r := must(l.Verify(context.Background(), pinned...))(t); len(r.Problems) > 0 {
		t.Fatalf("the ledger is not consistent: %q", r.Problems)
	}
}
