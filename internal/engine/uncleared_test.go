package engine_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// What could not be ended before it was to be made again goes on, and so does
// its price, until its end: by a destroy, by another try, or by who cleans up
// after a run that died.
func TestWhatCouldNotBeEndedToBeMadeAgainIsStillPaidFor(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) { isStillPaidFor(t, b, 0) })
}

// A price of each creation is of those, and not of what went on.
func TestWhatGoesOnWasCreatedOnce(t *testing.T) {
	t.Parallel()
	const components = "  - { component: sandbox, unit: sandbox-hour, price: \"1\" }\n  - { component: creation, unit: creation, price: " +
		"\"0.50\" }\n"
	onBoth(t, map[string]string{"prices/mine.yaml": prices("ext.mine", components)},
		func(t *testing.T, b *bench) { isStillPaidFor(t, b, dollar/2) })
}

func isStillPaidFor(t *testing.T, b *bench, creation int64) {
	t.Helper()
	b.grant(20 * dollar)
	ctx := t.Context()
	names := []string{"destroyed", "again", "died"}
	made := map[string]engine.Sandbox{}
	for _, name := range names {
		s := b.create(engine.Request{Profile: "profile.mine", Name: name, TTL: "3h"})
		made[name] = s
	}
	e := b.later(time.Hour)
	b.script(saasstub.Rule{Op: vendor.OpDelete, Do: vendor.DoUnauthorized})
	for _, name := range names[:2] {
		left, err := e.Recreate(ctx, made[name].Receipt, nil, nil)
		if err == nil || left.ID != made[name].ID {
			t.Fatalf("%+v, %s", left, told(err))
		}
		made[name] = left
	}
	b.script()
	dying, over := b.reopen(), make(chan struct{})
	go func() {
		defer close(over)
		_, err := dying.Recreate(failpointtest.Inject(ctx, "engine.destroy.begun", func() error { runtime.Goexit(); return nil }),
			made["died"].Receipt, nil, nil)
		t.Errorf("it came to an end: %v", err)
	}()
	<-over
	if err := dying.Close(); err != nil {
		t.Fatal(err)
	}
	e = b.later(time.Hour)
	if err := e.Recover(ctx, nil); err != nil {
		t.Fatal(told(err))
	}
	if r, err := e.Destroy(ctx, made["destroyed"].Receipt, engine.DestroyOptions{}); err != nil || r.AlreadyGone {
		t.Fatalf("%+v, %s", r, told(err))
	}
	s, err := e.Recreate(ctx, made["again"].Receipt, nil, nil)
	if err == nil {
		_, err = e.Destroy(ctx, s.Receipt, engine.DestroyOptions{})
	}
	if err != nil {
		t.Fatal(told(err))
	}
	for _, name := range names {
		lives := int64(1)
		if name == "again" {
			lives = 2
		}
		b.costs(made[name], 2*dollar+lives*creation)
	}
	if n := len(b.alive()); n > 0 {
		t.Errorf("%d are left", n)
	}
}

// costs demands what a life comes to, but for the time that the test took, and
// that nothing is held for it any more.
func (b *bench) costs(s engine.Sandbox, want int64) {
	b.t.Helper()
	cs, err := b.book().Charges(b.t.Context(), s.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	sum := int64(0)
	for _, c := range cs {
		sum += c.Amount
	}
	if sum < want || sum > want+want/10 {
		b.t.Errorf("%s: %+v, want %d", s.Name, cs, want)
	}
	if held := b.held(s.ID); held != 0 {
		b.t.Errorf("%s: %d is held", s.Name, held)
	}
}
