package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// What is made again after its profile was raised is of the new version, and so
// is what it is charged as.
func TestAProfileThatWasRaisedIsThatOfTheNextLife(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const file = "profiles/profile.v.yaml"
	text := func(version, most string) string {
		return "id: profile.v\nversion: \"" + version + "\"\nextends: profile.quickstart\nttl: { default: 10m, max: " + most + " }\n"
	}
	b := newBench(t, onFiles(map[string]string{file: text("1.0.0", "1h")}))
	s := b.create(engine.Request{Profile: "profile.v", Name: "one"})
	write(t, b.catalog, file, text("2.0.0", "20m"))
	e := b.reopen()
	again, err := e.Recreate(ctx, s.Receipt, nil, nil)
	if err != nil || again.Version != "2.0.0" {
		t.Fatalf("%s, %s", again.Version, told(err))
	}
	if m := b.meters(s.ID); len(m) != 2 || m[0].For.ProfileVersion != "1.0.0" || m[1].For.ProfileVersion != "2.0.0" {
		t.Errorf("%+v", m)
	}
	if _, err := e.ExtendTTL(ctx, again.Receipt, 30*time.Minute); err == nil {
		t.Error("it may live longer than its profile allows by now")
	}
	if _, err := e.Destroy(ctx, again.Receipt, engine.DestroyOptions{}); err != nil {
		t.Error(told(err))
	}
}

// remakePoints are the steps of making a sandbox again.
var remakePoints = []string{"engine.destroy.begun", "engine.create.placed", "engine.create.provisioned", "engine.create.handle",
	"engine.create.ready", "engine.create.confirmed"}

// Whoever makes a sandbox again may die with the receipt of its former life: it stays the owner.
func TestAKillWhileItIsMadeAgainLeavesItToItsOwner(t *testing.T) {
	t.Parallel()
	for _, point := range remakePoints {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.fund()
			rec := b.converge("profile.stub", "one")
			b.remakeKilled(point, rec)
			if _, err := b.again(order{Do: "destroy", Receipt: rec}); err != nil {
				t.Errorf("destroy: %s", told(err))
			}
			if left := b.left(); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			b.end(b.create(engine.Request{Profile: "profile.stub", Name: "one"}))
			b.accounted()
			b.closed()
		})
	}
}

// remakeKilled makes a sandbox again in a process that dies at a point, and demands that its owner reads it as whole, or as failed.
func (b *bench) remakeKilled(point string, rec engine.Receipt) {
	b.t.Helper()
	b.killed(order{Do: "recreate", Receipt: rec}, point)
	want := "failed"
	if point == "engine.create.confirmed" {
		want = "ready"
	}
	s, err := b.reopen().Get(context.Background(), rec)
	if err != nil || s.State != want || s.Generation != rec.Generation+1 || s.Receipt.Generation != s.Generation {
		b.t.Errorf("%s: its owner reads %s, generation %d, with a receipt of %d: %s", point, s.State, s.Generation, s.Receipt.Generation, told(err))
	}
}

// An adoption ends what a receipt is good for, also when the sandbox is made again afterwards.
func TestAFormerOwnerGetsNothingBackWhenItIsMadeAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	former := b.create(engine.Request{Name: "one"})
	owner := b.create(engine.Request{Name: "one", OnConflict: "adopt"})
	again, err := b.Recreate(ctx, owner.Receipt, nil, nil)
	if err != nil {
		t.Fatal(told(err))
	}
	if _, err := b.Get(ctx, former.Receipt); !extensions.IsKind(err, extensions.KindConflict) {
		t.Errorf("the former owner reads: %v", err)
	}
	if r, err := b.Destroy(ctx, former.Receipt, engine.DestroyOptions{}); err != nil || !r.AlreadyGone || len(b.left()) != 1 {
		t.Errorf("the former owner destroys: %+v, %v", r, err)
	}
	if s, err := b.Get(ctx, owner.Receipt); err != nil || s.Generation != again.Generation {
		t.Errorf("the owner reads generation %d: %v", s.Generation, err)
	}
	b.end(owner)
	b.closed()
}
