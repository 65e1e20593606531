package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/pgtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

var mine = engine.Request{Profile: "profile.mine", Name: "one", TTL: "10m"}

func TestTwoMachinesShareNamesAndSandboxes(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "")
	ctx := context.Background()
	a := f.Engine
	b := f.machine()
	s, err := a.Create(ctx, mine, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Create(ctx, mine, nil, nil); !extensions.IsKind(err, extensions.KindConflict) ||
		!strings.Contains(err.Error(), string(s.ID)) {
		t.Errorf("the name is taken elsewhere: %v", err)
	}
	if got, err := b.Lookup(ctx, "", "", "one"); err != nil || got.ID != s.ID {
		t.Errorf("looked up elsewhere: %v, %v", got.ID, err)
	}
	longer, err := b.ExtendTTL(ctx, s.Receipt, time.Hour)
	if err != nil || !longer.ExpiresAt.Equal(s.CreatedAt.Add(time.Hour)) {
		t.Errorf("extended elsewhere: %v, %v", longer.ExpiresAt, err)
	}
	if got, err := a.Get(ctx, s.Receipt); err != nil || !got.ExpiresAt.Equal(longer.ExpiresAt) {
		t.Errorf("read back: %v, %v", got.ExpiresAt, err)
	}
	taken, err := b.Create(ctx, engine.Request{Profile: "profile.mine", Name: "one", TTL: "1h", OnConflict: "adopt"}, nil, nil)
	if err != nil || taken.ID != s.ID {
		t.Fatalf("adopted: %v, %v", taken.ID, err)
	}
	if r, err := a.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil || !r.AlreadyGone || len(f.alive()) != 1 {
		t.Errorf("the former owner: %+v, %v", r, err)
	}
	if r, err := b.Destroy(ctx, taken.Receipt, engine.DestroyOptions{}); err != nil || r.AlreadyGone || len(f.alive()) != 0 {
		t.Errorf("the owner: %+v, %v", r, err)
	}
	if _, err := a.Create(ctx, mine, nil, nil); err != nil {
		t.Errorf("the name is free again: %v", err)
	}
	f.sound(true)
}

func TestOneNameOnThreeMachinesAtOnceIsMadeOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "")
	var engines []*engine.Engine
	for range 3 {
		engines = append(engines, f.machine())
	}
	var won atomic.Int32
	together(func(i int) {
		_, err := engines[i%3].Create(context.Background(), mine, nil, nil)
		switch {
		case err == nil:
			won.Add(1)
		case !extensions.IsKind(err, extensions.KindConflict):
			t.Errorf("a loser is told: %v", err)
		}
	})
	if n := len(f.alive()); won.Load() != 1 || n != 1 {
		t.Errorf("%d won, %d live", won.Load(), n)
	}
	f.sound(true)
}

// A ceiling on how many may live is one for all machines.
func TestMachinesShareTheRoomOfAPlace(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "capacity: { max_sandboxes: 4 }\n")
	a := f.Engine
	b := f.machine()
	var won atomic.Int32
	together(func(i int) {
		e := a
		if i%2 == 1 {
			e = b
		}
		_, err := e.Create(context.Background(), engine.Request{Profile: "profile.mine", Name: fmt.Sprint("n", i), TTL: "10m"}, nil, nil)
		switch {
		case err == nil:
			won.Add(1)
		case !extensions.IsKind(err, extensions.KindExhausted):
			t.Errorf("a loser is told: %v", err)
		}
	})
	if n := len(f.alive()); won.Load() != 4 || n != 4 {
		t.Errorf("%d won, %d live, want 4", won.Load(), n)
	}
	f.sound(true)
}

// What a machine left that died is settled by another one, once the lease of
// the dead one is over and not before.
func TestAnotherMachineSettlesWhatADeadOneLeft(t *testing.T) {
	t.Parallel()
	points := failpointtest.Names("engine.create.")
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, "", waking)
			f.killed(order{Do: "create", Name: "one", Dir: t.TempDir()}, point)
			died := time.Now()
			b := f.machine()
			told := make(chan string, 100)
			s, err := b.Create(context.Background(), mine, nil, func(n engine.Notice) { told <- n.Summary })
			waited := time.Since(died)
			switch point {
			case "engine.create.prepared":
				if err != nil {
					t.Errorf("nothing was recorded: %v", err)
				}
			case "engine.create.confirmed":
				if !extensions.IsKind(err, extensions.KindConflict) || !strings.Contains(extensions.RemedyOf(err), "import {") {
					t.Errorf("it was finished: %v", err)
				}
			default:
				if err != nil || waited < fleetLease/2 || len(told) == 0 {
					t.Errorf("after %s, told of %d: %v", waited, len(told), err)
				}
			}
			if left := f.alive(); len(left) != 1 || err == nil && left[0] != string(s.ID) {
				t.Errorf("%v live, made was %s", left, s.ID)
			}
			f.sound(true)
		})
	}
}

// A machine that is truncated from the ledger while it makes something gives up
// before others may take it for dead, and leaves nothing behind.
func TestAMachineCutOffGivesUpBeforeItIsTakenForDead(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "", waking)
	cut := pgtest.NewCutter(t, f.Ledger)
	a := f.machine(onLedger(cut.Address))
	b := f.machine()
	ctx := context.Background()
	f.script(saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoDelay, Delay: vendor.Duration(time.Minute), Times: 1})
	started := time.Now()
	s, err := a.Create(failpointtest.Inject(ctx, "engine.create.placed", func() error { cut.Off(); return nil }), mine, nil, nil)
	if err == nil || time.Since(started) > 30*time.Second {
		t.Fatalf("it took %s: %v", time.Since(started), err)
	}
	if !strings.Contains(err.Error(), "consider this one dead") {
		t.Errorf("it is not told why: %v", err)
	}
	if left := f.alive(); len(left) != 0 {
		t.Errorf("%v live", left)
	}
	other, err := b.Create(ctx, mine, nil, nil)
	if err != nil || other.ID == s.ID {
		t.Fatalf("the other machine: %v", err)
	}
	cut.On()
	if _, err := a.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil {
		t.Errorf("the tainted one is destroyed: %v", err)
	}
	if left := f.alive(); len(left) != 1 || left[0] != string(other.ID) {
		t.Errorf("%v live, want %s alone", left, other.ID)
	}
	f.sound(true)
}

// What has been taken over is out of the former one's hands, though it lives.
func TestALateHolderIsFencedOff(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "")
	a := f.Engine
	b := f.machine()
	ctx := context.Background()
	lost := errors.New("stopped")
	var first engine.Sandbox
	actx := failpointtest.Inject(ctx, "engine.create.handle", func() error {
		// Everybody takes it for dead, as during a long sleep of its machine.
		pgtest.Exec(t, f.Ledger, `CREATE TABLE asleep AS SELECT id FROM holders;
			CREATE FUNCTION sleep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				IF NEW.id IN (SELECT id FROM asleep) THEN NEW.expires_at = 0; END IF; RETURN NEW; END $$;
			CREATE TRIGGER sleep BEFORE UPDATE ON holders FOR EACH ROW EXECUTE FUNCTION sleep();
			UPDATE holders SET expires_at = 0`)
		if _, err := b.Create(ctx, mine, nil, nil); err != nil {
			lost = err
		}
		return nil
	})
	_, err := a.Create(actx, mine, func(s engine.Sandbox) { first = s }, nil)
	if err == nil || lost.Error() != "stopped" {
		t.Fatalf("a: %v, b: %v", err, lost)
	}
	if left := f.alive(); len(left) != 1 || left[0] == string(first.ID) {
		t.Errorf("%v live, %s was taken over", left, first.ID)
	}
	pgtest.Exec(t, f.Ledger, "DROP FUNCTION sleep CASCADE; DROP TABLE asleep") // or they are found
	f.sound(true)
}
