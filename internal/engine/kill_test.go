package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
)

// converge creates name again after a crash: it works, or the one sandbox
// that was finished and never told is named with its import, and taken by it.
func (b *bench) converge(profile, name string) engine.Receipt {
	b.t.Helper()
	return b.convergeTo(order{Profile: profile, Name: name})
}

// convergeTo is converge for a create that says more.
func (b *bench) convergeTo(o order) engine.Receipt {
	b.t.Helper()
	name := o.Name
	rec, err := b.again(o)
	if err == nil {
		return rec
	}
	text := err.Error() + extensions.RemedyOf(err)
	if !strings.Contains(text, "import {") {
		b.t.Fatalf("the next run did not converge: %s", text)
	}
	s, err := b.reopen().Lookup(context.Background(), "", "", name)
	if err != nil || !strings.Contains(text, string(s.ID)) {
		b.t.Fatalf("import of %s: %v; the message was: %s", s.ID, err, text)
	}
	return s.Receipt
}

// expectHeld: the vendor was perhaps asked, and its list proves nothing. The
// name stays taken until the native deadline, and the message says so.
func (b *bench) expectHeld(profile, name string) {
	b.t.Helper()
	_, err := b.again(order{Do: "create", Profile: profile, Name: name})
	if !extensions.IsKind(err, extensions.KindIndeterminate) || !strings.Contains(extensions.RemedyOf(err), "or at its deadline") {
		b.t.Errorf("%v (%s)", err, extensions.RemedyOf(err))
	}
	if _, err := b.again(order{Do: "create", Profile: profile, Name: "other"}); err != nil {
		b.t.Errorf("another name: %v", err)
	}
	b.clean()
}

func (b *bench) expectOnly(rec engine.Receipt) {
	b.t.Helper()
	left := b.left()
	for wait := time.Now().Add(saasstub.Settle); len(left) == 0 && time.Now().Before(wait); left = b.left() {
		time.Sleep(50 * time.Millisecond) // an eventual list shows it in a moment
	}
	if len(left) != 1 || left[0] != string(rec.ID) {
		b.t.Errorf("the vendor holds %v, want %s alone", left, rec.ID)
	}
	got, err := b.reopen().Get(context.Background(), rec)
	if err != nil || got.State != "ready" {
		b.t.Errorf("after recovery: %+v, %v", got.State, err)
	}
	b.accounted()
	b.clean()
}

func TestAKillAtAnyStepOfCreateConverges(t *testing.T) {
	t.Parallel()
	killing(t)
	for _, point := range append(failpointtest.Names("engine.create."), failpointtest.Names("ledger.")...) {
		for _, profile := range []string{"profile.stub", "profile.eventual", "profile.quickstart"} {
			if profile != "profile.stub" && !strings.HasPrefix(point, "engine.") {
				continue
			}
			t.Run(point+"/"+profile, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				b.fund()
				_, stderr, code := b.run(order{Do: "create", Profile: profile, Name: "one"}, failpointtest.Env+"="+point+":kill", 0)
				if code == 0 {
					t.Skipf("the create does not pass %s", point)
				}
				if strings.Contains(stderr, "panic") {
					t.Fatal(stderr)
				}
				if profile == "profile.eventual" && point == "engine.create.placed" {
					b.expectHeld(profile, "one")
					return
				}
				b.expectOnly(b.converge(profile, "one"))
			})
		}
	}
}

func TestAKillAtAnyStepOfDestroyConverges(t *testing.T) {
	t.Parallel()
	killing(t)
	for _, point := range failpointtest.Names("engine.destroy.") {
		for _, profile := range []string{"profile.stub", "profile.quickstart"} {
			t.Run(point+"/"+profile, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				b.fund()
				rec := b.converge(profile, "one")
				b.run(order{Do: "destroy", Receipt: rec}, failpointtest.Env+"="+point+":kill", 0)
				if _, err := b.again(order{Do: "destroy", Receipt: rec}); err != nil {
					t.Fatalf("the next destroy: %v", err)
				}
				if left := b.left(); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
				b.accounted()
				b.clean()
			})
		}
	}
}

func TestAHundredRandomKillsLeaveNoOrphanAndNoDuplicate(t *testing.T) {
	t.Parallel()
	killing(t)
	for _, profile := range []string{"profile.stub", "profile.quickstart"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.fund()
			start := time.Now() // of a process, so that kills spread over all of its life
			whole, stderr, code := b.run(order{Do: "create", Profile: profile, Name: "one"}, "", 0)
			span := time.Since(start)
			if code != 0 {
				t.Fatal(stderr)
			}
			if _, err := b.Destroy(context.Background(), whole, engine.DestroyOptions{}); err != nil {
				t.Fatal(err)
			}
			for i := range 50 {
				b.randomKills(i, profile, span)
			}
			b.accounted()
			b.clean()
		})
	}
}

// randomKills kills one create and one destroy at any moment of theirs.
func (b *bench) randomKills(round int, profile string, span time.Duration) {
	b.t.Helper()
	b.run(order{Do: "create", Profile: profile, Name: "one"}, "", time.Duration(rand.Int64N(int64(span)))+1)
	rec := b.converge(profile, "one")
	if left := b.left(); len(left) != 1 || left[0] != string(rec.ID) {
		b.t.Fatalf("round %d: there is %v, want %s alone", round, left, rec.ID)
	}
	b.run(order{Do: "destroy", Receipt: rec}, "", time.Duration(rand.Int64N(int64(span)))+1)
	if _, err := b.again(order{Do: "destroy", Receipt: rec}); err != nil {
		b.t.Fatalf("round %d: the next destroy: %v", round, err)
	}
	if left := b.left(); len(left) > 0 {
		b.t.Fatalf("round %d: left behind: %v", round, left)
	}
}

func TestTwoProcessesCreatingAtOnceAreBothRight(t *testing.T) {
	t.Parallel()
	startsProcesses(t)
	b := newBench(t)
	var wg sync.WaitGroup
	codes := make([]int, 8)
	for i := range codes {
		wg.Add(1)
		go func() {
			defer wg.Done()
			name := fmt.Sprintf("n%d", i%4) // every name twice
			_, _, codes[i] = b.run(order{Do: "create", Profile: "profile.stub", Name: name}, "", 0)
		}()
	}
	wg.Wait()
	won := 0
	for _, c := range codes {
		if c == 0 {
			won++
		}
	}
	if left := b.left(); won != 4 || len(left) != 4 {
		t.Errorf("%d won and the vendor holds %v, want 4 of each", won, left)
	}
	b.clean()
}
