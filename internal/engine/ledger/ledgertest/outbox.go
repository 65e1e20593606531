package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func outbox(t *testing.T, address NewAddress) {
	t.Run("begins with the chain and moves on", func(t *testing.T) { t.Parallel(); outboxMoves(t, address) })
	t.Run("gives up after a day", func(t *testing.T) { t.Parallel(); outboxExpires(t, address) })
	t.Run("takes back what was not sent", func(t *testing.T) { t.Parallel(); outboxWithdraws(t, address) })
	t.Run("refuses what is not in the chain", func(t *testing.T) { t.Parallel(); outboxRefuses(t, address) })
	t.Run("is moved at once or not at all", func(t *testing.T) { t.Parallel(); outboxFails(t, address) })
	t.Run("is shared by several", func(t *testing.T) { t.Parallel(); outboxShared(t, address) })
	t.Run("is what was said of it", func(t *testing.T) { t.Parallel(); outboxModel(t, address) })
}

// chainOf returns a ledger with the number of events in the stream acme.
func chainOf(t testing.TB, address NewAddress, clock *Clock, events int) *ledger.Ledger {
	t.Helper()
	l := open(t, address(t), sqlstore.Options{Now: clock.Now})
	for i := range events {
		must(l.PutHost(context.Background(), ledger.Host{Account: Account, Name: fmt.Sprint("h", i), Ref: "{}"}))(t)
	}
	return l
}

func moved(t testing.TB, l *ledger.Ledger, step ledger.OutboxStep) ledger.Outbox {
	t.Helper()
	step.Sink, step.Stream = "hub", "acme"
	o := must(l.MoveOutbox(context.Background(), step))(t)
	if seen := must(l.Outbox(context.Background(), "hub", "acme"))(t); !cmp.Equal(seen, o) {
		t.Fatalf("read and written differ:\n%s", cmp.Diff(o, seen))
	}
	return o
}

func rejected(seqs ...int64) (out []ledger.Withheld) {
	for _, s := range seqs {
		out = append(out, ledger.Withheld{Seq: s, State: ledger.WithheldRejected, Reason: "no"})
	}
	return out
}

func heldSeqs(o ledger.Outbox) (out []int64) {
	for _, h := range o.Withheld {
		out = append(out, h.Seq)
	}
	return out
}

func outboxMoves(t *testing.T, address NewAddress) {
	ctx := context.Background()
	l := chainOf(t, address, &Clock{at: Start}, 9)
	if o := must(l.Outbox(ctx, "hub", "acme"))(t); !cmp.Equal(o, ledger.Outbox{Sink: "hub", Stream: "acme"}) {
		t.Fatalf("%+v", o)
	}
	o := moved(t, l, ledger.OutboxStep{Attempt: 5})
	if o.Attempted != 5 || o.Delivered != 0 || o.Attempts != 1 || o.FirstAttemptAt.IsZero() {
		t.Fatalf("%+v", o)
	}
	first := o.FirstAttemptAt
	o = moved(t, l, ledger.OutboxStep{Withhold: rejected(2), Delivered: 3})
	if o.Delivered != 3 || o.Attempted != 5 || !o.FirstAttemptAt.Equal(first) || o.Withheld[0].Reason != "no" || o.Withheld[0].Attempts != 1 {
		t.Fatalf("%+v", o)
	}
	if o = moved(t, l, ledger.OutboxStep{Attempt: 5}); o.Attempts != 2 || !o.FirstAttemptAt.Equal(first) {
		t.Fatalf("%+v", o)
	}
	for range 2 {
		if o = moved(t, l, ledger.OutboxStep{Delivered: 5}); o.Delivered != 5 || o.Attempted != 5 || o.Attempts != 0 ||
			!o.FirstAttemptAt.IsZero() {
			t.Fatalf("%+v", o)
		}
	}
	// A late step changes nothing.
	if late := moved(t, l, ledger.OutboxStep{Attempt: 4, Delivered: 2}); !cmp.Equal(late, o) {
		t.Fatalf("%+v", late)
	}
	if o = moved(t, l, ledger.OutboxStep{Release: []int64{2}}); len(o.Withheld) != 0 {
		t.Fatalf("%+v", o)
	}
	for _, other := range []ledger.Outbox{must(l.Outbox(ctx, "audit", "acme"))(t), must(l.Outbox(ctx, "hub", "umbrella"))(t)} {
		if other.Delivered != 0 {
			t.Errorf("one sink's deliveries took another's: %+v", other)
		}
	}
	verified(t, l)
}

func outboxExpires(t *testing.T, address NewAddress) {
	clock := &Clock{at: Start}
	l := chainOf(t, address, clock, 9)
	moved(t, l, ledger.OutboxStep{Attempt: 4, Withhold: rejected(2), Delivered: 2})
	clock.at = clock.at.Add(24*time.Hour - time.Minute)
	if o := moved(t, l, ledger.OutboxStep{Attempt: 4}); o.Attempts != 2 || len(o.Withheld) != 1 {
		t.Fatalf("%+v", o)
	}
	clock.at = clock.at.Add(2 * time.Minute)
	seen := must(l.Outbox(context.Background(), "hub", "acme"))(t)
	if seen.Delivered != 4 || seen.Attempted != 4 || !slices.Equal(heldSeqs(seen), []int64{2, 3, 4}) ||
		seen.Withheld[2].State != ledger.WithheldAmbiguous || seen.Withheld[2].Attempts != 2 {
		t.Fatalf("a delivery is repeated for ever: %+v", seen)
	}
	o := moved(t, l, ledger.OutboxStep{Attempt: 6})
	if o.Delivered != 4 || o.Attempted != 6 || o.Attempts != 1 || !cmp.Equal(o.Withheld, seen.Withheld) {
		t.Fatalf("%s", cmp.Diff(seen, o))
	}
	// A clock that was ahead at the first attempt makes no day longer.
	clock.at = clock.at.Add(-400 * 24 * time.Hour)
	back := clock.at
	if o = moved(t, l, ledger.OutboxStep{Attempt: 6}); o.FirstAttemptAt.After(back.Add(time.Minute)) {
		t.Fatalf("%+v", o)
	}
	// The sink's answer overrides a guess, never the other way round.
	o = moved(t, l, ledger.OutboxStep{Withhold: rejected(3)})
	if o.Withheld[1].State != ledger.WithheldRejected || o.Withheld[1].Attempts != 2 {
		t.Fatalf("%+v", o)
	}
	o = moved(t, l, ledger.OutboxStep{Withhold: []ledger.Withheld{{Seq: 3, State: ledger.WithheldAmbiguous}}})
	if o.Withheld[1].State != ledger.WithheldRejected {
		t.Fatalf("%+v", o)
	}
	verified(t, l)
}

func outboxWithdraws(t *testing.T, address NewAddress) {
	l := chainOf(t, address, &Clock{at: Start}, 9)
	moved(t, l, ledger.OutboxStep{Attempt: 4, Delivered: 2})
	if o := moved(t, l, ledger.OutboxStep{Withdraw: 4}); o.Delivered != 2 || o.Attempted != 2 || !o.FirstAttemptAt.IsZero() {
		t.Fatalf("%+v", o)
	}
	// Another exporter's attempt may have arrived.
	moved(t, l, ledger.OutboxStep{Attempt: 4})
	moved(t, l, ledger.OutboxStep{Attempt: 4})
	if o := moved(t, l, ledger.OutboxStep{Withdraw: 4}); o.Attempted != 4 || o.FirstAttemptAt.IsZero() {
		t.Fatalf("%+v", o)
	}
	// So may the next attempt, which another exporter has made since.
	moved(t, l, ledger.OutboxStep{Delivered: 4})
	moved(t, l, ledger.OutboxStep{Attempt: 7})
	if o := moved(t, l, ledger.OutboxStep{Withdraw: 4}); o.Attempted != 7 || o.FirstAttemptAt.IsZero() {
		t.Fatalf("%+v", o)
	}
	if o := moved(t, l, ledger.OutboxStep{Withdraw: 7}); o.Attempted != 4 || !o.FirstAttemptAt.IsZero() {
		t.Fatalf("%+v", o)
	}
}

func outboxRefuses(t *testing.T, address NewAddress) {
	l := chainOf(t, address, &Clock{at: Start}, 2)
	for name, step := range map[string]ledger.OutboxStep{
		"attempt after the end":   {Attempt: 3},
		"delivered after the end": {Delivered: 3},
		"withdrawn after the end": {Withdraw: 3},
		"negative":                {Delivered: -1},
		"held after the end":      {Withhold: rejected(3)},
		"held of nothing":         {Withhold: rejected(0)},
		"held as something":       {Withhold: []ledger.Withheld{{Seq: 1, State: "new"}}},
		"released after the end":  {Release: []int64{3}},
	} {
		step.Sink, step.Stream = "hub", "acme"
		if _, err := l.MoveOutbox(context.Background(), step); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, step := range []ledger.OutboxStep{{Stream: "acme"}, {Sink: "hub"}, {Sink: "a\nb", Stream: "acme"}} {
		if _, err := l.MoveOutbox(context.Background(), step); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%+v: %v", step, err)
		}
	}
}

func outboxFails(t *testing.T, address NewAddress) {
	l := chainOf(t, address, &Clock{at: Start}, 9)
	moved(t, l, ledger.OutboxStep{Withhold: rejected(1), Delivered: 1})
	step := ledger.OutboxStep{Sink: "hub", Stream: "acme", Attempt: 4, Withhold: rejected(2), Delivered: 2, Release: []int64{1}}
	for _, point := range append(failpointtest.Names("outbox."), "ledger.begin", "ledger.commit") {
		before := must(l.Outbox(context.Background(), "hub", "acme"))(t)
		_, err := l.MoveOutbox(failpointtest.Inject(context.Background(), point, func() error { return failpointtest.ErrInjected }), step)
		if !errors.Is(err, failpointtest.ErrInjected) {
			t.Fatalf("%s: %v", point, err)
		}
		if after := must(l.Outbox(context.Background(), "hub", "acme"))(t); !cmp.Equal(before, after) {
			t.Fatalf("%s left a trace:\n%s", point, cmp.Diff(before, after))
		}
	}
	if o := moved(t, l, step); o.Delivered != 2 || o.Attempted != 4 || !slices.Equal(heldSeqs(o), []int64{2}) {
		t.Fatalf("%+v", o)
	}
}

func outboxShared(t *testing.T, address NewAddress) {
	const events = int64(40)
	at := address(t)
	ls := []*ledger.Ledger{open(t, at, sqlstore.Options{}), open(t, at, sqlstore.Options{})}
	for i := range events {
		must(ls[0].PutHost(context.Background(), ledger.Host{Account: Account, Name: fmt.Sprint("h", i), Ref: "{}"}))(t)
	}
	var wg sync.WaitGroup
	for _, l := range ls {
		for range 2 {
			wg.Go(func() {
				for to := int64(3); ; to = min(to+3, events) {
					_, err := l.MoveOutbox(context.Background(), ledger.OutboxStep{Sink: "hub", Stream: "acme", Attempt: to})
					if err != nil {
						t.Error(err)
						return
					}
					step := ledger.OutboxStep{Sink: "hub", Stream: "acme", Withhold: rejected(to), Delivered: to}
					if o, err := l.MoveOutbox(context.Background(), step); err != nil || o.Delivered < to {
						t.Error(o, err)
						return
					}
					if to == events {
						return
					}
				}
			})
		}
	}
	wg.Wait()
	o := must(ls[1].Outbox(context.Background(), "hub", "acme"))(t)
	if o.Delivered != events || o.Attempted != events || len(o.Withheld) != 14 {
		t.Fatalf("%+v", o)
	}
	verified(t, ls[0])
}

// outboxModel moves at random: nothing is lost, nothing goes back, and the time of the first attempt is never later than
// that attempt.
func outboxModel(t *testing.T, address NewAddress) {
	const events = 12
	clock := &Clock{at: Start}
	l := chainOf(t, address, clock, events)
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		sink := fmt.Sprint("hub", round)
		sent := map[int64]time.Time{} // the time of each unanswered event's first attempt
		var before ledger.Outbox
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			step := ledger.OutboxStep{Sink: sink, Stream: "acme"}
			clock.at = clock.at.Add(time.Duration(rapid.IntRange(0, 30).Draw(rt, "hours")) * time.Hour)
			switch rapid.IntRange(0, 2).Draw(rt, "kind") {
			case 0:
				step.Attempt = rapid.Int64Range(1, events).Draw(rt, "attempt")
			case 1:
				step.Delivered = rapid.Int64Range(1, events).Draw(rt, "delivered")
			case 2:
				step.Withhold = rejected(rapid.Int64Range(1, events).Draw(rt, "held"))
				step.Delivered = step.Withhold[0].Seq
			}
			o, err := l.MoveOutbox(context.Background(), step)
			if err != nil {
				rt.Fatal(err)
			}
			for seq := o.Delivered + 1; seq <= o.Attempted; seq++ {
				if _, again := sent[seq]; !again {
					sent[seq] = clock.at
				}
				if o.FirstAttemptAt.After(sent[seq]) {
					rt.Fatalf("event %d was first sent at %s, not at %s", seq, sent[seq], o.FirstAttemptAt)
				}
			}
			if o.Delivered < before.Delivered || o.Attempted < o.Delivered || len(o.Withheld) < len(before.Withheld) {
				rt.Fatalf("went back from %+v to %+v", before, o)
			}
			if o.Attempted > o.Delivered && clock.at.Sub(o.FirstAttemptAt) > 24*time.Hour {
				rt.Fatalf("still repeated: %+v", o)
			}
			before = o
		}
	})
	verified(t, l)
}
