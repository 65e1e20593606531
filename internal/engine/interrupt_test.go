package engine_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// interruption is one way in which a step does not go on.
type interruption struct {
	point string
	hit   int32 // at which passing of the point; 0 = at every one
	how   string
}

const (
	howCancel = "cancelled"
	howFail   = "failed"
	howBoth   = "cancelled and failed"
)

var errStop = errors.New("stopped here")

// arm gives a context that is interrupted so.
func (i interruption) arm(t *testing.T) (_ context.Context, passed *atomic.Int32) {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	passed = &atomic.Int32{}
	return failpointtest.Inject(ctx, i.point, func() error {
		if n := passed.Add(1); i.hit != 0 && n != i.hit {
			return nil
		}
		if i.how != howFail {
			cancel()
		}
		if i.how == howCancel {
			return nil
		}
		return errStop
	}), passed
}

// interruptions goes through every step of an operation.
func interruptions(t *testing.T, prefix string, run func(t *testing.T, i interruption)) {
	t.Helper()
	var all []interruption
	for _, point := range failpointtest.Names(prefix) {
		for _, how := range []string{howCancel, howFail, howBoth} {
			all = append(all, interruption{point, 1, how})
		}
	}
	if prefix == "engine.create." || prefix == "engine.destroy." {
		for _, point := range failpointtest.Names("ledger.") {
			if point == "ledger.host" || point == "ledger.outbox" || point == "ledger.snapshot" {
				continue
			}
			for hit := range int32(3) {
				all = append(all, interruption{point, hit, howFail})
			}
		}
	}
	for n, i := range all {
		if exttest.Detector && n%4 != 0 { // a fraction of them shows it what it can find
			continue
		}
		t.Run(fmt.Sprintf("%s %s at %d", i.point, i.how, i.hit), func(t *testing.T) {
			t.Parallel()
			run(t, i)
		})
	}
}

// settled demands that what is left of an interrupted operation is nothing,
// or what the returned sandbox names, and that everything goes on from there.
func (b *bench) settled(s engine.Sandbox, err error) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	left := b.left()
	if s.ID == "" && len(left) > 0 {
		b.t.Errorf("nothing is named, and there is %v: %v", left, err)
	}
	if s.ID != "" {
		if len(left) > 1 || len(left) == 1 && left[0] != string(s.ID) {
			b.t.Errorf("%s is named, and there is %v: %v", s.ID, left, err)
		}
		if _, err := b.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil {
			b.t.Errorf("destroy of what is named: %v", err)
		}
	}
	if left := b.left(); len(left) > 0 {
		b.t.Errorf("left behind: %v", left)
	}
	again, err := b.Create(ctx, engine.Request{Profile: "profile.stub", Name: "one"}, nil, nil)
	if err != nil {
		b.t.Fatalf("the name is not free: %v", err)
	}
	if _, err := b.Destroy(ctx, again.Receipt, engine.DestroyOptions{}); err != nil {
		b.t.Errorf("destroy: %v", err)
	}
	b.clean()
}

func TestAnInterruptedCreateLeavesNothingOrSaysWhat(t *testing.T) {
	t.Parallel()
	takesLong(t)
	interruptions(t, "engine.create.", func(t *testing.T, i interruption) {
		b := newBench(t)
		ctx, passed := i.arm(t)
		s, err := b.Create(ctx, engine.Request{Profile: "profile.stub", Name: "one"}, nil, nil)
		if err == nil && (passed.Load() >= max(i.hit, 1)) && i.how != howFail && i.point != "engine.create.confirmed" {
			t.Errorf("it went on")
		}
		b.settled(s, err)
	})
}

func TestAnInterruptedDestroyCanBeRepeated(t *testing.T) {
	t.Parallel()
	takesLong(t)
	interruptions(t, "engine.destroy.", func(t *testing.T, i interruption) {
		b := newBench(t)
		s := b.create(engine.Request{Profile: "profile.stub", Name: "one"})
		ctx, _ := i.arm(t)
		_, err := b.Destroy(ctx, s.Receipt, engine.DestroyOptions{})
		if left := b.left(); err == nil && len(left) > 0 {
			t.Errorf("it claims success and left %v", left)
		}
		b.settled(s, err)
	})
}

func TestAnInterruptedRecreateCanBeRepeatedOrDestroyed(t *testing.T) {
	t.Parallel()
	takesLong(t)
	interruptions(t, "engine.", func(t *testing.T, i interruption) {
		b := newBench(t)
		s := b.create(engine.Request{Profile: "profile.stub", Name: "one"})
		ctx, passed := i.arm(t)
		again, err := b.Recreate(ctx, s.Receipt, nil, nil)
		if passed.Load() == 0 {
			return // a recreate does not pass it
		}
		b.settled(again, err)
	})
	interruptions(t, "ledger.c", func(t *testing.T, i interruption) {
		b := newBench(t)
		s := b.create(engine.Request{Profile: "profile.stub", Name: "one"})
		i.hit = 0
		ctx, _ := i.arm(t)
		again, err := b.Recreate(ctx, s.Receipt, nil, nil)
		b.settled(again, err)
	})
}

func TestAnInterruptedSnapshotLeavesNothingOrSaysWhat(t *testing.T) {
	t.Parallel()
	takesLong(t)
	interruptions(t, "engine.snapshot.", func(t *testing.T, i interruption) {
		b := newBench(t)
		s := b.create(engine.Request{Profile: "profile.stub", Name: "one"})
		ctx, _ := i.arm(t)
		snap, err := b.Snapshot(ctx, s.Receipt, engine.SnapshotRequest{Name: "kept"})
		if err == nil && snap.ID == "" || err != nil && snap.ID == "" && b.snapshots() > 0 {
			t.Errorf("%d are kept and none is named: %v", b.snapshots(), err)
		}
		if snap.ID != "" {
			if _, err := b.DeleteSnapshot(context.Background(), snap, false); err != nil {
				t.Errorf("delete of what is named: %v", err)
			}
		}
		if n := b.snapshots(); n > 0 {
			t.Errorf("%d are left", n)
		}
		b.settled(s, err)
	})
}

func TestAnInterruptedExtensionKeepsLedgerAndVendorAgreed(t *testing.T) {
	t.Parallel()
	takesLong(t)
	interruptions(t, "engine.extend.", func(t *testing.T, i interruption) {
		b := newBench(t)
		s := b.create(engine.Request{Profile: "profile.stub", Name: "one", TTL: "10m"})
		ctx, _ := i.arm(t)
		_, err := b.Update(ctx, s.Receipt, engine.Request{Profile: "profile.stub", Name: "one", TTL: "20m"}, nil)
		// What this run could not write, the next one brings in line.
		next := b.reopen()
		if cerr := b.Close(); cerr != nil {
			t.Fatal(cerr)
		}
		b.Engine = next
		if rerr := next.Recover(context.Background(), nil); rerr != nil {
			t.Fatal(rerr)
		}
		row, lerr := next.Lookup(context.Background(), s.ID, "", "")
		if lerr != nil {
			t.Fatal(lerr)
		}
		if d := b.deadline(s.ID); d.Sub(row.ExpiresAt).Abs() > time.Millisecond {
			t.Errorf("the vendor ends it at %s, the ledger says %s (%v)", d, row.ExpiresAt, err)
		}
		b.settled(s, err)
	})
}

// deadline is the end that the vendor enforces.
func (b *bench) deadline(id engine.ID) time.Time {
	b.t.Helper()
	for _, o := range b.observations() {
		if o.ID == id {
			return o.Deadline
		}
	}
	b.t.Fatalf("the vendor does not have %s", id)
	return time.Time{}
}

// snapshots counts what the stub vendor keeps.
func (b *bench) snapshots() int {
	b.t.Helper()
	kept, err := vendor.At(filepath.Join(b.StateDir, "saas-stub")).Snapshots()
	if err != nil {
		b.t.Fatal(err)
	}
	return len(kept)
}
