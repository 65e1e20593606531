package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func compareAndSet(t *testing.T, address NewAddress) {
	ctx := context.Background()
	t.Run("what is not as expected changes nothing", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		s := made(t, l, "n")
		before := must(l.Head(ctx, "acme"))(t)
		for name, c := range map[string]ledger.Change{
			"state":      {Expect: ledger.Expect{States: []lifecycle.State{lifecycle.Requested, lifecycle.Failed}}},
			"generation": {Expect: ledger.Expect{Generation: 2}},
			"fence":      {Expect: ledger.Expect{Fence: 7}},
			"holder":     {Expect: ledger.Expect{Holder: "someone"}},
			"edge":       {To: lifecycle.Requested},
			"no intent":  {Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed}},
			"metered":    {Meter: ledger.MeterOps{Open: meterOpen(Start)}},
		} {
			c.ID, c.Key = s.ID, "k/"+name
			c.Patch.Reason = ptr("must not be written")
			_, err := l.Apply(ctx, c)
			var stale *ledger.Stale
			if !errors.As(err, &stale) || !extensions.IsKind(err, extensions.KindConflict) {
				t.Errorf("%s: want stale, got %v", name, err)
			}
		}
		if after := must(l.Head(ctx, "acme"))(t); after != before {
			t.Fatalf("events were appended: %+v", after)
		}
		if d := cmp.Diff(s, must(l.Get(ctx, s.ID))(t)); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
		verified(t, l)
	})
	t.Run("nothing begins on what is over", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		s := gone(t, l, made(t, l, "n"))
		var stale *ledger.Stale
		_, err := l.Apply(ctx, ledger.Change{ID: s.ID, Key: "late",
			Intent: &ledger.OpenIntent{Kind: ledger.IntentDestroy, Holder: holderOf(t, l)}})
		if !errors.As(err, &stale) || stale.Current.State != lifecycle.Destroyed {
			t.Fatalf("want stale, got %v", err)
		}
	})
	t.Run("who expects no operation is refused during one", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		s := must(l.Begin(ctx, want(newID(t), holderOf(t, l), "n")))(t)
		if _, err := l.Apply(ctx, ledger.Change{ID: s.ID, Key: "k", Expect: ledger.Expect{NoIntent: true}}); !extensions.IsKind(err,
			extensions.KindConflict) {
			t.Fatalf("want conflict, got %v", err)
		}
	})
	t.Run("only one of many at once wins", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		s := made(t, l, "n")
		won := make(chan bool, 16)
		for i := range cap(won) {
			go func() {
				_, err := l.Apply(ctx, ledger.Change{ID: s.ID, Key: fmt.Sprint("try", i),
					Expect: ledger.Expect{States: []lifecycle.State{lifecycle.Ready}}, To: lifecycle.Active})
				won <- err == nil
			}()
		}
		n := 0
		for range cap(won) {
			if <-won {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("%d won", n)
		}
		verified(t, l)
	})
	t.Run("the same key again is once", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		s := made(t, l, "n")
		d := destroying(s, holderOf(t, l))
		first := must(l.Apply(ctx, d))(t)
		for range 3 {
			if diff := cmp.Diff(first, must(l.Apply(ctx, d))(t)); diff != "" {
				t.Fatalf("a replay changed something (-first +again):\n%s", diff)
			}
		}
		end := must(l.Apply(ctx, destroyed(first)))(t)
		if diff := cmp.Diff(end, must(l.Apply(ctx, d))(t)); diff != "" {
			t.Fatalf("a late replay changed something (-now +again):\n%s", diff)
		}
		if n := len(must(l.Charges(ctx, s.ID))(t)); n != 1 {
			t.Fatalf("%d charges", n)
		}
		other := made(t, l, "m")
		if _, err := l.Apply(ctx, ledger.Change{ID: other.ID, Key: d.Key}); !extensions.IsKind(err, extensions.KindConflict) {
			t.Fatalf("another sandbox used the key: %v", err)
		}
		verified(t, l)
	})
	t.Run("every edge of the table and no other", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		for _, from := range lifecycle.States {
			for _, to := range lifecycle.States {
				if from == to {
					continue
				}
				s := in(t, l, from)
				c := into(s, to, holderOf(t, l))
				_, err := l.Apply(ctx, c)
				if ok := err == nil; ok != lifecycle.Can(from, to) {
					t.Errorf("%s -> %s: %v", from, to, err)
				}
				if s = must(l.Get(ctx, s.ID))(t); s.State != lifecycle.Destroyed && s.State != lifecycle.Expired {
					bury(t, l, s)
				}
			}
		}
		verified(t, l)
	})
	t.Run("no state without who and what belongs to it", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		s := made(t, l, "n")
		p := must(l.Apply(ctx, provisioning(must(l.Begin(ctx, want(newID(t), holderOf(t, l), "m")))(t))))(t)
		r := ready(p)
		r.Meter = ledger.MeterOps{}
		d := must(l.Apply(ctx, destroying(made(t, l, "o"), holderOf(t, l))))(t)
		metered, claimed := destroyed(d), destroyed(d)
		metered.Meter, claimed.Finish = ledger.MeterOps{}, nil
		for name, c := range map[string]ledger.Change{
			"destroying without an intent":      {ID: s.ID, Key: "k1", To: lifecycle.Destroying},
			"provisioning, intent finished":     {ID: p.ID, Key: "k2", Finish: &ledger.FinishIntent{Outcome: ledger.Failed}},
			"ready without a meter":             r,
			"destroyed and metered":             metered,
			"destroyed and in someone's hands":  claimed,
			"an outcome that is none":           {ID: p.ID, Key: "k3", Finish: &ledger.FinishIntent{Outcome: ledger.Dispatched}},
			"a usable one whose meter is ended": {ID: s.ID, Key: "k4", Meter: ledger.MeterOps{Close: meterClose(Start)}},
		} {
			if _, err := l.Apply(ctx, c); !extensions.IsKind(err, extensions.KindInvalid) {
				t.Errorf("%s: want invalid, got %v", name, err)
			}
		}
		verified(t, l)
	})
}

// in creates a sandbox in the state.
func in(t *testing.T, l *ledger.Ledger, state lifecycle.State) ledger.Sandbox {
	t.Helper()
	h := holderOf(t, l)
	s := must(l.Begin(context.Background(), want(newID(t), h, "n")))(t)
	path := map[lifecycle.State][]lifecycle.State{
		lifecycle.Provisioning: {lifecycle.Provisioning},
		lifecycle.Ready:        {lifecycle.Provisioning, lifecycle.Ready},
		lifecycle.Active:       {lifecycle.Provisioning, lifecycle.Ready, lifecycle.Active},
		lifecycle.Expired:      {lifecycle.Provisioning, lifecycle.Expired},
		lifecycle.Failed:       {lifecycle.Failed},
		lifecycle.Destroying:   {lifecycle.Destroying},
		lifecycle.Destroyed:    {lifecycle.Destroyed},
	}
	for _, to := range path[state] {
		s = must(l.Apply(context.Background(), into(s, to, h)))(t)
	}
	return s
}

// into returns a change with all that the state requires.
func into(s ledger.Sandbox, to lifecycle.State, h ledger.HolderID) ledger.Change {
	c := ledger.Change{ID: s.ID, Key: step(s, fmt.Sprintf("%s-%s-%d", s.State, to, s.Generation)), To: to}
	open := lifecycle.Unsettled(s.State)
	switch {
	case lifecycle.Unsettled(to) && !(s.State == lifecycle.Requested && to == lifecycle.Provisioning):
		c.Intent = &ledger.OpenIntent{Kind: ledger.IntentDestroy, Holder: h, Supersede: true}
		if to == lifecycle.Provisioning {
			c.NextGeneration, c.Intent.Kind = true, ledger.IntentRecreate
			c.Meter.Close = meterClose(Start)
		}
	case open && !lifecycle.Unsettled(to):
		c.Finish = &ledger.FinishIntent{Outcome: ledger.Confirmed}
	}
	if to == lifecycle.Ready && s.State == lifecycle.Provisioning {
		c.Meter.Open = meterOpen(Start)
	}
	if to == lifecycle.Destroyed || to == lifecycle.Expired {
		c.Meter.Close = meterClose(Start.Add(time.Minute))
	}
	return c
}

func bury(t *testing.T, l *ledger.Ledger, s ledger.Sandbox) {
	t.Helper()
	h := holderOf(t, l)
	if s.State != lifecycle.Destroying {
		s = must(l.Apply(context.Background(), into(s, lifecycle.Destroying, h)))(t)
	}
	must(l.Apply(context.Background(), into(s, lifecycle.Destroyed, h)))(t)
}
