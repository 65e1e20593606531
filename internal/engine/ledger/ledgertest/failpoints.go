package ledgertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
)

// failpoints fails every step of every kind of change once. A step before the commit leaves no trace; after it,
// everything is there. A repetition always has the same result. Each step has a ledger of its own: after each change, the
// whole of it is verified.
func failpoints(t *testing.T, address NewAddress) {
	points := failpointtest.Names("ledger.")
	if len(points) < 10 {
		t.Fatalf("only %q are registered", points)
	}
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			l := fresh(t, address)
			must(l.PutBudget(context.Background(), ledger.Budget{Account: Account, Name: "all", Currency: "USD", Limit: 1_000_000, Hard: true}))(t)
			reached := false
			for _, change := range script() {
				if fail(t, l, point, change) {
					reached = true
				}
			}
			if !reached {
				t.Errorf("no change of the script comes by %s", point)
			}
			verified(t, l)
		})
	}
}

// act is one write. It depends on the state before it, and may be repeated.
type act struct {
	name string
	do   func(ctx context.Context) (any, error)
}

// script returns the acts of one life and of everything else, in order.
func script() []func(t *testing.T, l *ledger.Ledger) act {
	var s ledger.Sandbox
	var snap ledger.Snapshot
	keep := func(v ledger.Sandbox, err error) (any, error) {
		if err == nil {
			s = v
		}
		return v, err
	}
	change := func(name string, c func() ledger.Change) func(*testing.T, *ledger.Ledger) act {
		return func(_ *testing.T, l *ledger.Ledger) act {
			fixed := c()
			return act{name, func(ctx context.Context) (any, error) { return keep(l.Apply(ctx, fixed)) }}
		}
	}
	var holder ledger.HolderID
	return []func(*testing.T, *ledger.Ledger) act{
		func(t *testing.T, l *ledger.Ledger) act {
			g := ledger.Grant{Key: string(newID(t)), Org: "acme", Currency: "USD", Amount: 100}
			return act{"grant", func(ctx context.Context) (any, error) { return l.Grant(ctx, g) }}
		},
		func(t *testing.T, l *ledger.Ledger) act {
			holder = holderOf(t, l)
			b := want(newID(t), holder, "n")
			b.Reserve = &ledger.Reserve{Currency: "USD", Amount: 10, Wallet: true}
			return act{"begin", func(ctx context.Context) (any, error) { return keep(l.Begin(ctx, b)) }}
		},
		change("provisioning", func() ledger.Change { return provisioning(s) }),
		change("began", func() ledger.Change {
			return ledger.Change{ID: s.ID, Key: step(s, "began"), Meter: ledger.MeterOps{Began: meterOpen(Start.Add(time.Second))}}
		}),
		change("began elsewhere", func() ledger.Change {
			return ledger.Change{ID: s.ID, Key: step(s, "elsewhere"), Meter: ledger.MeterOps{Began: meterOpen(Start),
				Close: meterClose(Start.Add(2 * time.Second))}}
		}),
		change("ready", func() ledger.Change {
			c := ready(s)
			c.Meter = ledger.MeterOps{Began: c.Meter.Open}
			return c
		}),
		change("switch", func() ledger.Change {
			return ledger.Change{ID: s.ID, Key: step(s, "switch"), Meter: ledger.MeterOps{Switch: &bank.MeterSwitch{At: Start, Mode: ledger.Paused}}}
		}),
		change("held", func() ledger.Change {
			return ledger.Change{ID: s.ID, Key: step(s, "held"), Lease: &ledger.Lease{ID: "one", CreatedAt: Start, ExpiresAt: Start.Add(time.Hour)}}
		}),
		change("held longer", func() ledger.Change {
			return ledger.Change{ID: s.ID, Key: step(s, "longer"), Lease: &ledger.Lease{ID: "one", CreatedAt: Start,
				ExpiresAt: Start.Add(2 * time.Hour)}}
		}),
		func(t *testing.T, l *ledger.Ledger) act {
			b := ledger.BeginSnapshot{Key: step(s, "snap"), Holder: holder, ID: newSnapshotID(t), Account: Account, SandboxID: s.ID}
			return act{"snapshot", func(ctx context.Context) (any, error) {
				v, err := l.BeginSnapshot(ctx, b)
				if err == nil {
					snap = v
				}
				return v, err
			}}
		},
		func(_ *testing.T, l *ledger.Ledger) act {
			c := ledger.SnapshotChange{ID: snap.ID, Key: snap.ID + "/kept", To: ledger.SnapshotReady,
				Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed}, Meter: ledger.MeterOps{Open: meterOpen(Start)}}
			return act{"snapshot is kept", func(ctx context.Context) (any, error) { return l.ApplySnapshot(ctx, c) }}
		},
		func(_ *testing.T, l *ledger.Ledger) act {
			c := ledger.SnapshotChange{ID: snap.ID, Key: snap.ID + "/ending", To: ledger.SnapshotDeleting,
				Intent: &ledger.OpenIntent{Kind: ledger.IntentDeleteSnapshot, Holder: holder}}
			return act{"snapshot ends", func(ctx context.Context) (any, error) { return l.ApplySnapshot(ctx, c) }}
		},
		func(_ *testing.T, l *ledger.Ledger) act {
			c := ledger.SnapshotChange{ID: snap.ID, Key: snap.ID + "/gone", To: ledger.SnapshotDeleted,
				Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed},
				Meter:  ledger.MeterOps{Close: meterClose(Start.Add(time.Hour))}}
			return act{"snapshot is gone", func(ctx context.Context) (any, error) { return l.ApplySnapshot(ctx, c) }}
		},
		change("destroying", func() ledger.Change { return destroying(s, holder) }),
		change("destroyed", func() ledger.Change { return destroyed(s) }),
		func(_ *testing.T, l *ledger.Ledger) act {
			f := ledger.Facts{Account: Account, Extension: "ext.here", Host: string(s.ID), ProbedAt: Start}
			return act{"facts", func(ctx context.Context) (any, error) { return nil, l.PutFacts(ctx, f) }}
		},
		func(_ *testing.T, l *ledger.Ledger) act {
			h := ledger.Host{Account: Account, Name: string(s.ID), Ref: "{}"}
			return act{"host", func(ctx context.Context) (any, error) {
				v, err := l.PutHost(ctx, h)
				v.CreatedAt, v.UpdatedAt, v.Existed = Start, Start, false // a repetition finds its own row
				return v, err
			}}
		},
	}
}

// fail does one change, which fails at point if it comes by there, and does it again. It returns whether it came by.
func fail(t *testing.T, l *ledger.Ledger, point string, make func(*testing.T, *ledger.Ledger) act) (hit bool) {
	t.Helper()
	a := make(t, l)
	ctx := context.Background()
	before := must(l.Head(ctx, "acme"))(t)
	_, err := a.do(failpointtest.Inject(ctx, point, func() error {
		hit = true
		return failpointtest.ErrInjected
	}))
	if hit != errors.Is(err, failpointtest.ErrInjected) || !hit && err != nil {
		t.Fatalf("%s at %s: hit %t, %v", a.name, point, hit, err)
	}
	middle := must(l.Head(ctx, "acme"))(t)
	if committed := !hit || point == "ledger.committed"; committed != (middle.Seq == before.Seq+1) {
		t.Fatalf("%s at %s: events went from %d to %d", a.name, point, before.Seq, middle.Seq)
	}
	verified(t, l, before)
	first := must(a.do(ctx))(t)
	again := must(a.do(ctx))(t)
	if d := cmp.Diff(first, again); d != "" {
		t.Fatalf("%s at %s, repeated (-first +again):\n%s", a.name, point, d)
	}
	if end := must(l.Head(ctx, "acme"))(t); end.Seq != before.Seq+1 {
		t.Fatalf("%s at %s: done %d times", a.name, point, end.Seq-before.Seq)
	}
	return hit
}
