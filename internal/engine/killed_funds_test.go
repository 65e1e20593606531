package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// dead waits until those who died are known to be dead.
func (b *bench) dead() {
	b.t.Helper()
	for wait := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		intents, err := b.book().OpenIntents(b.t.Context(), ledger.IntentFilter{Account: "acme/web"})
		if err != nil {
			b.t.Fatal(err)
		}
		alive := false
		for _, in := range intents {
			is, err := b.book().HolderAlive(b.t.Context(), in.Holder)
			if err != nil {
				b.t.Fatal(err)
			}
			alive = alive || is
		}
		if !alive {
			return
		}
		if time.Since(wait) > 30*time.Second {
			b.t.Fatal("a dead run is taken for a living one")
		}
	}
}

// What a run that died has set aside is free again before the next one begins
// anything, so it keeps no plan from being applied.
func TestAPlanGoesOnAfterARunThatDiedWithTheLastCredit(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		b.grant(dollar + dollar/2)
		ask := func(when string) {
			t.Helper()
			b.dead()
			if w := b.balance(ledger.AccountWallet); w.DebitsPending == 0 {
				t.Fatalf("%s: nothing is held", when)
			}
			if _, err := b.Plan(t.Context(), engine.Request{Profile: "profile.mine", Name: "another", TTL: "1h"}); err != nil {
				t.Errorf("%s: the plan is refused: %s", when, told(err))
			}
			if w := b.balance(ledger.AccountWallet); w.DebitsPending == 0 {
				t.Errorf("%s: the plan has written", when)
			}
		}
		for i, point := range []string{"engine.create.begun", "engine.create.provisioned"} {
			b.killed(order{Do: "create", Name: fmt.Sprint("n", i), TTL: "1h"}, point)
			ask(point)
			if _, err := b.reopen().Sweep(t.Context(), false, nil); err != nil {
				t.Fatal(told(err))
			}
		}
		s := b.make(b.reopen(), engine.Request{Name: "two", TTL: "1h"})
		b.killed(order{Do: "destroy", Receipt: s.Receipt}, "engine.destroy.torn")
		ask("destroy")
		made := b.make(b.reopen(), engine.Request{Name: "another", TTL: "1h"})
		if b.held(s.ID) != 0 || b.held(made.ID) == 0 {
			t.Errorf("%d is held for the old one, %d for the new one", b.held(s.ID), b.held(made.ID))
		}
	})
}

// A sandbox whose destroy died is not lost: it stays somebody's to end, so that
// what is set aside for it is settled.
func TestADestroyThatDiedIsStillToBeDone(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		b.grant(2 * dollar)
		s := b.create(engine.Request{Name: "one", TTL: "1h"})
		b.killed(order{Do: "destroy", Receipt: s.Receipt}, "engine.destroy.torn")
		if len(b.alive()) != 0 {
			t.Fatal("it was not ended at the vendor")
		}
		b.dead()
		e := b.reopen()
		if got, err := e.Get(t.Context(), s.Receipt); err != nil || got.State != "destroying" {
			t.Errorf("it is told as %q, %v", got.State, err)
		}
		if _, err := e.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil {
			t.Fatal(told(err))
		}
		if w := b.balance(ledger.AccountWallet); w.DebitsPending != 0 || w.DebitsPosted == 0 {
			t.Errorf("not settled: %+v", w)
		}
	})
}

// A lost sandbox that nobody makes again under its name is settled by a sweep,
// and who finds it lost is told so.
func TestWhoFindsALostSandboxIsToldHowItIsSettled(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		b.grant(2 * dollar)
		s := b.create(engine.Request{Name: "one", TTL: "1h"})
		if err := vendor.At(b.vendor).Vanish(string(s.ID)); err != nil {
			t.Fatal(err)
		}
		_, err := b.Get(t.Context(), s.Receipt)
		if !extensions.IsKind(err, extensions.KindNotFound) || !strings.Contains(told(err), "sandboxer sweep") {
			t.Errorf("told %q", told(err))
		}
		if _, err := b.reopen().Sweep(t.Context(), false, nil); err != nil || b.held(s.ID) != 0 {
			t.Errorf("%d is held, %v", b.held(s.ID), err)
		}
	})
}
