package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// The last credit goes to as many as it is enough for, whoever asks first: four
// processes with six creates each.
func TestTheLastCreditThroughTheEngine(t *testing.T) {
	t.Parallel()
	startsProcesses(t)
	const enough, want = 7, "ext.mine needs 1.00 USD for a ttl of 1h, 0.50 available (limit: wallet of acme); a ttl of at most 30m fits"
	onBoth(t, nil, func(t *testing.T, b *bench) {
		b.grant(enough*dollar + dollar/2)
		outs := make([]string, 4)
		done := make(chan struct{})
		for i := range outs {
			go func() {
				defer func() { done <- struct{}{} }()
				var code int
				o := order{Do: "rush", Name: fmt.Sprint("p", i), TTL: "1h", Count: 6}
				if _, outs[i], code = b.run(o, "", 0); code != 0 {
					t.Errorf("process %d: %d", i, code)
				}
			}()
		}
		for range outs {
			<-done
		}
		all := strings.Join(outs, "")
		if won, lost := strings.Count(all, "made\n"), strings.Count(all, "refused exhausted "+want); won != enough || lost != 24-enough ||
			len(b.alive()) != enough {
			t.Errorf("%d won, %d were told of it, %v live:\n%s", won, lost, b.alive(), all)
		}
		b.pays("while they live", dollar/2, enough*dollar, 0)
	})
}

func TestALifeIsSettledHoweverItEnds(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		b.grant(10 * dollar)
		b.budget("month", 9*dollar, true)
		paid := int64(0)
		settled := func(how string, s engine.Sandbox, atMost int64) {
			t.Helper()
			cs, err := b.book().Charges(t.Context(), s.ID)
			if err != nil || len(cs) != 1 || cs[0].Amount <= 0 || cs[0].Amount > atMost {
				t.Fatalf("%s: charged %+v, %v", how, cs, err)
			}
			paid += cs[0].Amount
			b.pays(how, 10*dollar-paid, 0, paid)
			if m := b.theBudget("month"); m.Spent != paid || m.Reserved != 0 || m.Over != 0 {
				t.Errorf("%s: %+v", how, m)
			}
		}
		s := b.create(engine.Request{Name: "destroyed", TTL: "2h"})
		b.pays("while it lives", 8*dollar, 2*dollar, 0)
		e := b.later(time.Hour)
		if _, err := e.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil {
			t.Fatal(told(err))
		}
		settled("destroyed", s, dollar+dollar/60)

		s = b.make(e, engine.Request{Name: "expired", TTL: "2h"})
		e = b.later(3 * time.Hour)
		if r, err := e.Sweep(t.Context(), false, nil); err != nil || len(r.Failures) > 0 {
			t.Fatal(r, err)
		}
		settled("expired", s, 2*dollar)

		s = b.make(e, engine.Request{Name: "lost", TTL: "2h"})
		e = b.later(30 * time.Minute)
		if _, err := e.Exec(t.Context(), s.Receipt, engine.ExecRequest{Command: []string{"true"}}); err != nil {
			t.Fatal(told(err))
		}
		if there := b.alive(); len(there) != 1 {
			t.Fatal(there)
		}
		b.removed(saasstub.New())
		if r, err := e.Sweep(t.Context(), false, nil); err != nil || len(r.Settled) != 1 {
			t.Fatal(r, err)
		}
		settled("lost", s, dollar/2+dollar/60)
	})
}

func TestAKilledCreateHoldsNothingOnceItIsSettled(t *testing.T) {
	t.Parallel()
	killing(t)
	onBoth(t, nil, func(t *testing.T, b *bench) {
		b.grant(10 * dollar)
		for i, point := range failpointtest.Names("engine.create.") {
			b.killed(order{Do: "create", Name: fmt.Sprint("n", i), TTL: "1h"}, point)
			if w := b.balance(ledger.AccountWallet); point != "engine.create.prepared" && w.DebitsPending != dollar {
				t.Errorf("%s: %d is held after the death", point, w.DebitsPending)
			}
			for wait := time.Now(); ; time.Sleep(200 * time.Millisecond) {
				e := b.reopen()
				if _, err := e.Sweep(t.Context(), false, nil); err != nil {
					t.Fatal(told(err))
				}
				if list, err := e.List(t.Context(), false); err != nil {
					t.Fatal(err)
				} else if len(list) == 1 && list[0].State == "ready" { // finished, and not told
					if _, err := e.Destroy(t.Context(), list[0].Receipt, engine.DestroyOptions{}); err != nil {
						t.Fatal(told(err))
					}
				} else if len(list) == 0 {
					break
				}
				if time.Since(wait) > 30*time.Second {
					t.Fatalf("%s: not settled", point)
				}
			}
			if w := b.balance(ledger.AccountWallet); w.DebitsPending != 0 || len(b.alive()) != 0 {
				t.Errorf("%s: %+v is held, %v live", point, w, b.alive())
			}
		}
	})
}

func TestALaterEndIsPaidForFirst(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		b.grant(3 * dollar)
		s := b.create(engine.Request{Name: "one", TTL: "1h"})
		change := func(ttl string) (engine.Sandbox, error) {
			return b.Update(t.Context(), s.Receipt, engine.Request{Profile: "profile.mine", Name: "one", TTL: ttl}, nil)
		}
		_, err := change("4h")
		for _, want := range []string{"needs 2.99", // and not 3.00: some of the first hour has passed
			"USD more for a ttl of 4h (1.00 is already set aside), 2.00 available (limit: wallet of acme); a ttl of at most 3h fits",
			"set ttl to at most 3h"} {
			if !extensions.IsKind(err, extensions.KindExhausted) || !strings.Contains(told(err), want) {
				t.Errorf("told %q, want %q", told(err), want)
			}
		}
		if got, err := b.Get(t.Context(), s.Receipt); err != nil || !got.ExpiresAt.Equal(s.ExpiresAt) {
			t.Errorf("refused, it ends at %s, not %s (%v)", got.ExpiresAt, s.ExpiresAt, err)
		}
		if _, err := b.PlanUpdate(t.Context(), s.Receipt, engine.Request{Profile: "profile.mine", Name: "one", TTL: "1h"},
			engine.Request{Profile: "profile.mine", Name: "one", TTL: "4h"}); !strings.Contains(told(err), "a ttl of at most 3h fits") {
			t.Errorf("the plan does not tell: %s", told(err))
		}
		b.pays("after a refusal", 2*dollar, dollar, 0)
		// The vendor refuses: what was set aside for it is free again.
		b.script(saasstub.Rule{Op: vendor.OpExtend, Do: vendor.DoInvalid})
		if _, err := change("2h"); err == nil {
			t.Error("extended")
		}
		b.script()
		b.pays("after the vendor refused", 2*dollar, dollar, 0)
		if _, err := change("3h"); err != nil {
			t.Fatal(told(err))
		}
		if held := b.held(s.ID); held > 3*dollar || held < 3*dollar-dollar/60 {
			t.Errorf("%d is held for three hours", held)
		}
		if _, err := change("1h"); err != nil {
			t.Fatal(told(err))
		}
		b.pays("shortened", 2*dollar, dollar, 0)
		if _, err := b.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil || b.held(s.ID) != 0 {
			t.Error(err)
		}
	})
}

// A later end that a run died over is taken back, and so is what was set aside.
func TestAKilledExtensionHoldsNothing(t *testing.T) {
	t.Parallel()
	killing(t)
	onBoth(t, nil, func(t *testing.T, b *bench) {
		b.grant(5 * dollar)
		s := b.create(engine.Request{Name: "one", TTL: "1h"})
		for _, point := range []string{"engine.extend.begun", "engine.extend.moved"} {
			b.killed(order{Do: "extend", Receipt: s.Receipt, TTL: "3h"}, point)
			if held := b.held(s.ID); held < 2*dollar {
				t.Errorf("%s: %d is held", point, held)
			}
			for wait := time.Now(); b.held(s.ID) != dollar; time.Sleep(200 * time.Millisecond) {
				if err := b.reopen().Recover(t.Context(), nil); err != nil {
					t.Fatal(told(err))
				}
				if time.Since(wait) > 30*time.Second {
					t.Fatalf("%s: %d is held for good", point, b.held(s.ID))
				}
			}
		}
	})
}

// What was used beyond all that was set aside is owed, and nothing new begins.
func TestOverageIsOwedAndRefusesTheNext(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		b.grant(2 * dollar)
		b.budget("month", 4*dollar, true)
		s := b.create(engine.Request{Name: "one", TTL: "1h"})
		h, err := extensions.DecodeHandle(s.Handle)
		if err != nil {
			t.Fatal(err)
		}
		be, err := saasstub.New().Open(t.Context(),
			extensions.Config{Binding: "ext.mine", Account: "acme/web", StateDir: b.StateDir, Values: map[string]any{"dir": b.vendor}})
		if err == nil {
			err = be.(extensions.Extender).Extend(t.Context(), h, s.ExpiresAt.Add(10*time.Hour)) // the vendor lets it run
		}
		if err != nil {
			t.Fatal(err)
		}
		e := b.later(5 * time.Hour)
		if _, err := e.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil {
			t.Fatal(told(err))
		}
		b.pays("overdrawn by none", 0, 0, 2*dollar)
		owed, m := b.balance(ledger.AccountReceivable).DebitsPosted, b.theBudget("month")
		if owed < 3*dollar || m.Spent != owed+2*dollar || m.Over != owed+dollar || m.Reserved != 0 {
			t.Errorf("owed %d, %+v", owed, m)
		}
		b.refused(e, engine.Request{Name: "two"}, extensions.KindExhausted, "0.00 available (limit: ")
		b.grant(10 * dollar)
		b.refused(e, engine.Request{Name: "two"}, extensions.KindExhausted, "0.00 available (limit: budget month of acme/web)")
	})
}

func TestTheNextPlaceIsPaidForToo(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		b.grant(2 * dollar)
		b.script(saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoNoCapacity})
		b.refused(b.Engine, engine.Request{Profile: "profile.either", Name: "one"}, extensions.KindExhausted,
			"no capacity", "ext.dear needs 2.00 USD more for a ttl of 1h (1.00 is already set aside), 1.00 available (limit: wallet of acme); a "+
				"ttl of at most 40m fits")
		b.pays("refused", 2*dollar, 0, 0)
		b.grant(dollar)
		s := b.create(engine.Request{Profile: "profile.either", Name: "one"})
		if s.Extension != "ext.dear" {
			t.Errorf("made at %s", s.Extension)
		}
		b.pays("at the dear place", 0, 3*dollar, 0)
		if _, err := b.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil ||
			b.balance(ledger.AccountWallet).DebitsPending != 0 {
			t.Error(err)
		}
	})
}
