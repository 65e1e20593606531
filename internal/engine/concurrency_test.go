package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// hooked is another process, with a hook where the stub vendor is opened.
func (b *bench) hooked(open func(ctx context.Context) error) *engine.Engine {
	b.t.Helper()
	return b.reopen(func(b *bench) {
		b.Extensions = []extensions.Extension{&hooked{before: open}, saasstub.NewEventual(), local.New()}
	})
}

// together runs f ten times at once, as Terraform does.
func together(f func(i int)) {
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			f(i)
		}()
	}
	wg.Wait()
}

func TestTenAtOnceInOneEngineAreAllRight(t *testing.T) {
	t.Parallel()
	takesLong(t)
	for _, profile := range []string{"profile.stub", "profile.quickstart"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			ctx := context.Background()
			made := make([]engine.Sandbox, 10)
			together(func(i int) {
				var err error
				if made[i], err = b.Create(ctx, engine.Request{Profile: profile, Name: fmt.Sprintf("n%d", i)}, nil, nil); err != nil {
					t.Errorf("create %d: %v", i, err)
				}
			})
			if left := b.left(); len(left) != 10 {
				t.Fatalf("there are %v", left)
			}
			together(func(i int) {
				if got, err := b.Get(ctx, made[i].Receipt); err != nil || got.State != "ready" || got.ID != made[i].ID {
					t.Errorf("get %d: %s %v", i, got.State, err)
				}
				if res, err := b.Exec(ctx, made[i].Receipt, engine.ExecRequest{Command: []string{"echo", "hi"}}); err != nil ||
					string(res.Stdout) != "hi\n" {
					t.Errorf("exec %d: %v", i, err)
				}
			})
			together(func(i int) {
				if r, err := b.Destroy(ctx, made[i].Receipt, engine.DestroyOptions{}); err != nil || r.AlreadyGone {
					t.Errorf("destroy %d: %+v %v", i, r, err)
				}
			})
			if left := b.left(); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			b.clean()
		})
	}
}

func TestDestroyingOneTenTimesAtOnceSucceedsTenTimes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(engine.Request{Profile: "profile.stub", Name: "one"})
	other := b.reopen()
	together(func(i int) {
		e := b.Engine
		if i%2 == 1 {
			e = other
		}
		if _, err := e.Destroy(context.Background(), s.Receipt, engine.DestroyOptions{}); err != nil {
			t.Errorf("destroy %d: %v", i, err)
		}
	})
	cs, err := b.Charges(context.Background(), s.ID)
	seen := map[string]bool{}
	for _, c := range cs {
		if seen[c.Component] {
			t.Errorf("%s was charged twice", c.Component)
		}
		seen[c.Component] = true
	}
	if err != nil || len(cs) == 0 || len(b.left()) > 0 {
		t.Errorf("charges %v, left %v, %v", cs, b.left(), err)
	}
	b.clean()
}

func TestOneNameTenTimesAtOnceIsMadeOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var won atomic.Int32
	together(func(int) {
		_, err := b.Create(context.Background(), engine.Request{Profile: "profile.stub", Name: "one"}, nil, nil)
		switch {
		case err == nil:
			won.Add(1)
		case !extensions.IsKind(err, extensions.KindConflict):
			t.Errorf("a loser is told: %v", err)
		}
	})
	if left := b.left(); won.Load() != 1 || len(left) != 1 {
		t.Errorf("%d won, there is %v", won.Load(), left)
	}
	b.clean()
}

func TestADestroyWaitsForTheCreateAndFindsItsPlace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	begun := make(chan engine.Sandbox, 1)
	hold := make(chan struct{})
	cctx := failpointtest.Inject(ctx, "engine.create.begun", func() error { <-hold; return nil })
	created := make(chan error, 1)
	go func() {
		_, err := b.Create(cctx, engine.Request{Profile: "profile.stub", Name: "one"}, func(s engine.Sandbox) { begun <- s }, nil)
		created <- err
	}()
	early := <-begun
	for name, e := range map[string]*engine.Engine{"the same engine": b.Engine, "another": b.reopen()} {
		dctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		if _, err := e.Destroy(dctx, early.Receipt, engine.DestroyOptions{}); err == nil {
			t.Errorf("%s ended what is being made", name)
		}
		cancel()
	}
	ended := make(chan error, 1)
	go func() {
		_, err := b.reopen().Destroy(ctx, early.Receipt, engine.DestroyOptions{Notify: func(engine.Notice) {
			select {
			case <-hold:
			default:
				close(hold) // it is waiting: go on
			}
		}})
		ended <- err
	}()
	if err := errors.Join(<-created, <-ended); err != nil {
		t.Fatal(err)
	}
	if left := b.left(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	b.clean()
}

func TestAPlaceIsOpenedOnceForAllAndClosedWithTheEngine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(engine.Request{Profile: "profile.stub", Name: "one"})
	var opened atomic.Int32
	e := b.hooked(func(context.Context) error { opened.Add(1); time.Sleep(20 * time.Millisecond); return nil })
	together(func(int) {
		if _, err := e.Get(context.Background(), s.Receipt); err != nil {
			t.Error(err)
		}
	})
	if n := opened.Load(); n != 1 {
		t.Errorf("opened %d times", n)
	}
}

func TestACallerThatGivesUpDoesNotTakeTheOthersAlong(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(engine.Request{Profile: "profile.stub", Name: "one"})
	entered, hold := make(chan struct{}), make(chan struct{})
	e := b.hooked(func(ctx context.Context) error {
		close(entered)
		select {
		case <-hold:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	first := make(chan error, 1)
	go func() { _, err := e.Get(ctx, s.Receipt); first <- err }()
	<-entered
	cancel()
	if err := <-first; err == nil {
		t.Error("the one who gave up got an answer")
	}
	close(hold)
	if _, err := e.Get(context.Background(), s.Receipt); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

func TestAClosedEngineOpensNothingAndLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(engine.Request{Profile: "profile.stub", Name: "one"})
	entered := make(chan struct{})
	e := b.hooked(func(ctx context.Context) error { close(entered); <-ctx.Done(); return ctx.Err() })
	got := make(chan error, 1)
	go func() { _, err := e.Get(context.Background(), s.Receipt); got <- err }()
	<-entered
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err == nil {
		t.Error("a place was opened in a closed engine")
	}
	if _, err := e.Create(context.Background(), engine.Request{Profile: "profile.stub", Name: "two"}, nil, nil); err == nil {
		t.Error("a closed engine made a sandbox")
	}
	if _, err := e.List(context.Background(), true); err == nil {
		t.Error("a closed engine opened the ledger again")
	}
}

func TestARecoveryThatWasCutOffIsTakenUpByTheNextCaller(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.run(order{Do: "create", Profile: "profile.stub", Name: "one"}, failpointtest.Env+"=engine.create.handle:kill", 0)
	b.script(saasstub.Rule{Op: vendor.OpDelete, Do: vendor.DoDelay, Delay: vendor.Duration(300 * time.Millisecond)})
	e := b.reopen()
	ctx, cancel := context.WithTimeout(context.Background(), 150*time.Millisecond)
	defer cancel()
	if _, err := e.Create(ctx, engine.Request{Profile: "profile.stub", Name: "two"}, nil, nil); err == nil {
		t.Fatal("it was not cut off")
	}
	s, err := e.Create(context.Background(), engine.Request{Profile: "profile.stub", Name: "three"}, nil, nil)
	if err != nil {
		t.Fatalf("the next caller: %v", err)
	}
	if left := b.left(); len(left) != 1 || left[0] != string(s.ID) {
		t.Errorf("there is %v, want %s alone", left, s.ID)
	}
	b.clean()
}

func TestAGhostOfAListIsNotReadAsReady(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	s := b.create(engine.Request{Profile: "profile.eventual", Name: "one"})
	// The list goes on showing what was deleted; the handle does not.
	dir := vendor.At(b.StateDir + "/saas-stub-eventual")
	if err := saasstub.WriteScript(b.StateDir+"/saas-stub-eventual", saasstub.Script{Ghosts: vendor.Duration(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	other := b.elsewhere()
	if _, err := other.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil {
		t.Fatal(err)
	}
	if objs, err := dir.Objects(); err != nil || len(objs) > 0 {
		t.Fatalf("%v, %v", objs, err)
	}
	if got, err := b.elsewhere().Get(ctx, s.Receipt); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Errorf("a ghost of the list reads as %s, %v", got.State, err)
	}
}
