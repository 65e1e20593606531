package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// lost makes a sandbox and lets its vendor lose it.
func (b *bench) lost(name string) engine.Sandbox {
	b.t.Helper()
	s := b.create(engine.Request{Profile: "profile.stub", Name: name})
	b.script(saasstub.Rule{Op: vendor.OpExec, Do: vendor.DoVanish, Times: 1})
	_, _ = b.Exec(context.Background(), s.Receipt, engine.ExecRequest{Command: []string{"true"}}) // whatever it answers, it is gone
	b.script()
	return s
}

func TestATakenNameNamesItsOwnerOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(engine.Request{Name: "one"})
	_, err := b.reopen().Create(t.Context(), engine.Request{Profile: b.profile, Name: "one"}, nil, nil)
	if !extensions.IsKind(err, extensions.KindConflict) || strings.Count(err.Error(), string(s.ID)) != 1 {
		t.Error(told(err))
	}
	b.end(s)
	b.clean()
}

func TestANameThatCannotBeSettledIsToldAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.lost("one")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	full := failpointtest.Inject(ctx, "ledger.meter.close", func() error { return errors.New("the disk is full") })
	e := b.reopen() // one engine: another would wait for this one's open operation
	_, err := e.Create(full, engine.Request{Profile: "profile.stub", Name: "one"}, nil, nil)
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), string(s.ID)) || !strings.Contains(err.Error(), "the disk is full") {
		t.Fatalf("create over what cannot be settled: %v (%v)", err, ctx.Err())
	}
	if _, err := e.Create(ctx, engine.Request{Profile: "profile.stub", Name: "one"}, nil, nil); err != nil {
		t.Errorf("once it can: %v", err)
	}
	b.clean()
}

func TestASweepTellsWhatItCouldNotSettle(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.lost("one")
	full := failpointtest.Inject(context.Background(), "ledger.meter.close", func() error { return errors.New("the disk is full") })
	e := b.reopen()
	r, err := e.Sweep(full, false, nil)
	if err != nil || len(r.Failures) != 1 || len(r.Settled)+len(r.Ended) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestASweepTellsWhatADeadRunLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.run(order{Do: "create", Profile: "profile.stub", Name: "one"}, failpointtest.Env+"=engine.create.handle:kill", 0)
	left := b.left()
	if len(left) != 1 {
		t.Fatalf("the killed run left %v", left)
	}
	for _, dry := range []bool{true, false} {
		r, err := b.reopen().Sweep(context.Background(), dry, nil)
		if err != nil || !slices.Equal(r.Ended, []engine.ID{engine.ID(left[0])}) {
			t.Errorf("dry %v: %+v, %v", dry, r, err)
		}
		if there := len(b.left()) == 1; there != dry {
			t.Errorf("dry %v: there afterwards: %v", dry, there)
		}
	}
	b.clean()
}

func TestATTLOfWhatHasEndedIsRefusedInThePlan(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	req := engine.Request{Profile: "profile.stub", Name: "one", TTL: "1m"}
	s := b.create(req)
	e := b.later(2 * time.Minute)
	longer := req
	longer.TTL = "10m"
	if _, err := e.PlanUpdate(context.Background(), s.Receipt, req, longer); !extensions.IsKind(err, extensions.KindInvalid) ||
		extensions.FieldOf(err) != "ttl" {
		t.Errorf("%v", err)
	}
	if _, err := e.PlanUpdate(context.Background(), s.Receipt, req, req); err != nil {
		t.Errorf("left as it is: %v", err)
	}
}
