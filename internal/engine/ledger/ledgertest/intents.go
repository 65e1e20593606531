package ledgertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func intents(t *testing.T, address NewAddress) {
	ctx := context.Background()
	t.Run("one lives as long as its ledger is open", func(t *testing.T) {
		t.Parallel()
		at := address(t)
		l := open(t, at, sqlstore.Options{})
		other := must(sqlstore.Open(ctx, at, sqlstore.Options{Lease: testLease}))(t)
		h := holderOf(t, other)
		if again := holderOf(t, other); again != h || h == holderOf(t, l) {
			t.Fatalf("a ledger has one holder of its own: %s, %s", h, again)
		}
		readOnly := open(t, at, sqlstore.Options{ReadOnly: true})
		for _, view := range []*ledger.Ledger{l, other, readOnly} {
			if !must(view.HolderAlive(ctx, h))(t) {
				t.Fatal("a living holder is taken for dead")
			}
		}
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		for _, view := range []*ledger.Ledger{readOnly, l} {
			if must(view.HolderAlive(ctx, h))(t) || must(view.HolderAlive(ctx, "never-was"))(t) || must(view.HolderAlive(ctx, "../x"))(t) {
				t.Fatal("a dead holder is taken for alive")
			}
		}
		if _, err := readOnly.Holder(ctx); !extensions.IsKind(err, extensions.KindUnsupported) {
			t.Fatalf("a reader became a holder: %v", err)
		}
	})
	t.Run("that of a living holder is not taken over", func(t *testing.T) {
		t.Parallel()
		at := address(t)
		l, other := open(t, at, sqlstore.Options{}), open(t, at, sqlstore.Options{})
		s := must(other.Begin(ctx, want(newID(t), holderOf(t, other), "n")))(t)
		_, err := l.Apply(ctx, destroying(s, holderOf(t, l)))
		var busy *ledger.Busy
		if !errors.As(err, &busy) || !extensions.IsKind(err, extensions.KindConflict) || busy.Intent.Kind != ledger.IntentCreate ||
			busy.Intent.Subject != string(s.ID) {
			t.Fatalf("want busy, got %v", err)
		}
		verified(t, l)
	})
	t.Run("that of a dead holder is, and the dead one's steps are fenced off", func(t *testing.T) {
		t.Parallel()
		at := address(t)
		l := open(t, at, sqlstore.Options{})
		other := must(sqlstore.Open(ctx, at, sqlstore.Options{Lease: testLease}))(t)
		s := must(other.Begin(ctx, want(newID(t), holderOf(t, other), "n")))(t)
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		left := must(l.OpenIntents(ctx, ledger.IntentFilter{Account: Account, Subject: string(s.ID)}))(t)
		if len(left) != 1 || left[0].Kind != ledger.IntentCreate || left[0].Fence != 1 || left[0].Generation != 1 {
			t.Fatalf("%+v", left)
		}
		took := must(l.Apply(ctx, ledger.Change{ID: s.ID, Key: "takeover", To: lifecycle.Provisioning,
			Intent: &ledger.OpenIntent{Kind: ledger.IntentAdopt, Holder: holderOf(t, l), Detail: []byte(`{"on":"ext.local"}`)}}))(t)
		if took.Fence != 2 {
			t.Fatalf("the fence is %d", took.Fence)
		}
		all := must(l.Intents(ctx, string(s.ID)))(t)
		if len(all) != 2 || all[0].State != ledger.Abandoned || all[1].Kind != ledger.IntentAdopt || all[1].State != ledger.Dispatched {
			t.Fatalf("%+v", all)
		}
		old, now := must(l.Intent(ctx, string(s.ID)+"/create"))(t), must(l.Intent(ctx, "takeover"))(t)
		if old.State != ledger.Abandoned || old.FinishedAt.IsZero() || now.State != ledger.Dispatched ||
			string(now.Detail) != `{"on":"ext.local"}` {
			t.Fatalf("old %+v, new %+v", old, now)
		}
		if _, err := l.Apply(ctx, provisioning(s)); !extensions.IsKind(err, extensions.KindConflict) {
			t.Fatalf("a step of the dead one went through: %v", err)
		}
		verified(t, l)
	})
	t.Run("one's own is given up only on purpose", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		s := must(l.Begin(ctx, want(newID(t), holderOf(t, l), "n")))(t)
		c := destroying(s, holderOf(t, l))
		c.Intent.Supersede = false
		if _, err := l.Apply(ctx, c); !extensions.IsKind(err, extensions.KindConflict) {
			t.Fatalf("want busy, got %v", err)
		}
		c.Intent.Supersede = true
		s = must(l.Apply(ctx, c))(t)
		must(l.Apply(ctx, destroyed(s)))(t)
		verified(t, l)
	})
	t.Run("failed and begun anew in one step", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		s := must(l.Begin(ctx, want(newID(t), holderOf(t, l), "n")))(t)
		c := destroying(s, holderOf(t, l))
		c.Intent.Supersede = false
		c.Finish = &ledger.FinishIntent{Outcome: ledger.Failed, Reason: "no room"}
		must(l.Apply(ctx, c))(t)
		if i := must(l.Intent(ctx, string(s.ID)+"/create"))(t); i.State != ledger.Failed || i.Reason != "no room" {
			t.Fatalf("%+v", i)
		}
		if open := must(l.OpenIntents(ctx, ledger.IntentFilter{}))(t); len(open) != 1 || open[0].Kind != ledger.IntentDestroy {
			t.Fatalf("%+v", open)
		}
		verified(t, l)
	})
}

func meters(t *testing.T, address NewAddress) {
	ctx := context.Background()
	change := func(s ledger.Sandbox, key string, ops ledger.MeterOps) ledger.Change {
		return ledger.Change{ID: s.ID, Key: step(s, key), Meter: ops}
	}
	t.Run("segments are contiguous and their sum is the life", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		s := made(t, l, "n") // metered from Start + 1 s
		pause := ledger.MeterOps{Switch: &bank.MeterSwitch{At: Start.Add(time.Minute), Mode: ledger.Paused,
			Sizes: map[string]int64{"memory_mib": 64}}}
		must(l.Apply(ctx, change(s, "pause", pause)))(t)
		early := ledger.MeterOps{Switch: &bank.MeterSwitch{At: Start, Mode: ledger.Running, Sizes: sizes}}
		must(l.Apply(ctx, change(s, "resume", early)))(t)
		gone(t, l, s)
		m := must(l.Meters(ctx, s.ID))(t)[0]
		var sum time.Duration
		for _, seg := range m.Segments {
			sum += seg.EndedAt.Sub(seg.StartedAt)
		}
		if len(m.Segments) != 3 || sum != m.ClosedAt.Sub(m.OpenedAt) || sum != time.Hour-time.Second {
			t.Fatalf("%+v", m)
		}
		if p := m.Segments[1]; p.Mode != ledger.Paused || p.Sizes["memory_mib"] != 64 || !p.EndedAt.Equal(p.StartedAt) {
			t.Fatalf("a switch before the segment began was not moved to its start: %+v", p)
		}
		if cs := must(l.Charges(ctx, s.ID))(t); len(cs) != 1 || cs[0].Quantity != sum.Milliseconds() {
			t.Fatalf("%+v", cs)
		}
		verified(t, l)
	})
	t.Run("each attempt has one, and its place says when it began", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		s := must(l.Begin(ctx, want(newID(t), holderOf(t, l), "n")))(t)
		s = must(l.Apply(ctx, provisioning(s)))(t)
		ours := meterOpen(Start.Add(2 * time.Second))
		ours.Source = "ours"
		s = must(l.Apply(ctx, change(s, "made", ledger.MeterOps{Began: ours})))(t)
		s = must(l.Apply(ctx, change(s, "told", ledger.MeterOps{Began: &ledger.MeterOpen{At: Start.Add(time.Second), Source: "backend"}})))(t)
		ours = meterOpen(Start.Add(3 * time.Second))
		ours.Source = "ours" // corrects nothing
		s = must(l.Apply(ctx, change(s, "over", ledger.MeterOps{Began: ours, Close: meterClose(Start.Add(5 * time.Second))})))(t)
		larger := meterOpen(Start.Add(6 * time.Second))
		larger.Sizes = map[string]int64{"memory_mib": 64}
		c := ready(s)
		c.Meter = ledger.MeterOps{Began: larger}
		s = must(l.Apply(ctx, c))(t)
		ms := must(l.Meters(ctx, s.ID))(t)
		if len(ms) != 2 || ms[0].ID != string(s.ID)+"/1" || ms[1].ID != string(s.ID)+"/1.2" || ms[1].Generation != 1 || !ms[1].Open() ||
			ms[1].Segments[0].Sizes["memory_mib"] != 64 {
			t.Fatalf("%+v", ms)
		}
		if first := ms[0]; !first.OpenedAt.Equal(Start.Add(time.Second)) || first.StartSource != "backend" ||
			!first.Segments[0].StartedAt.Equal(first.OpenedAt) || !first.ClosedAt.Equal(Start.Add(5*time.Second)) {
			t.Fatalf("the first: %+v", first)
		}
		if cs := must(l.Charges(ctx, s.ID))(t); len(cs) != 1 || cs[0].Quantity != (4*time.Second).Milliseconds() {
			t.Fatalf("the first is charged for %+v", cs)
		}
		// Once a second segment has begun, nothing moves the start.
		must(l.Apply(ctx, change(s, "pause", ledger.MeterOps{Switch: &bank.MeterSwitch{At: Start.Add(7 * time.Second), Mode: ledger.Paused}})))(t)
		must(l.Apply(ctx, change(s, "late", ledger.MeterOps{Began: meterOpen(Start)})))(t)
		if m := must(l.Meters(ctx, s.ID))(t)[1]; !m.OpenedAt.Equal(Start.Add(6 * time.Second)) {
			t.Fatalf("a start told later moved it to %s", m.OpenedAt)
		}
		verified(t, l)
	})
	t.Run("an end before the start is the start", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		s := must(l.Apply(ctx, destroying(made(t, l, "n"), holderOf(t, l))))(t)
		c := destroyed(s)
		c.Meter.Close.At, c.Meter.Close.Estimated = Start.Add(-time.Hour), true
		must(l.Apply(ctx, c))(t)
		if m := must(l.Meters(ctx, s.ID))(t)[0]; !m.ClosedAt.Equal(m.OpenedAt) || !m.EndEstimated {
			t.Fatalf("%+v", m)
		}
		verified(t, l)
	})
	t.Run("a price that fails leaves everything as it was", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		s := must(l.Apply(ctx, destroying(made(t, l, "n"), holderOf(t, l))))(t)
		measured := destroyed(s)
		measured.Meter.Close = &ledger.MeterClose{Usage: &extensions.Usage{CPUMillis: ptr(int64(-1))}}
		if _, err := l.Apply(ctx, measured); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("a negative quantity: %v", err)
		}
		for name, cs := range map[string][]ledger.Charge{
			"no such segment":     {{Segment: 2, Currency: "USD"}},
			"a negative amount":   {{Segment: 1, Currency: "USD", Amount: -1}},
			"a negative count":    {{Segment: 1, Currency: "USD", Quantity: -1}},
			"the same line twice": {{Segment: 1, Currency: "USD"}, {Segment: 1, Currency: "USD"}},
		} {
			c := charging(destroyed(s), cs...)
			c.Meter.Close = &ledger.MeterClose{}
			if _, err := l.Apply(ctx, c); !extensions.IsKind(err, extensions.KindInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		bills.Drop(s.ID)
		if m := must(l.Meters(ctx, s.ID))(t)[0]; !m.Open() {
			t.Fatalf("closed all the same: %+v", m)
		}
		must(l.Apply(ctx, destroyed(s)))(t)
		verified(t, l)
	})
	t.Run("closing what does not run is nothing", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		s := must(l.Begin(ctx, want(newID(t), holderOf(t, l), "n")))(t)
		s = gone(t, l, s)
		if ms := must(l.Meters(ctx, s.ID))(t); len(ms) != 0 {
			t.Fatalf("%+v", ms)
		}
		if _, err := l.Apply(ctx, change(s, "late", ledger.MeterOps{Switch: &bank.MeterSwitch{}})); !extensions.IsKind(err,
			extensions.KindConflict) {
			t.Fatalf("switched what does not run: %v", err)
		}
		verified(t, l)
	})
}
