package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

func held(ttl string) engine.Request {
	return engine.Request{Scope: "shared", ShareKey: "team", TTL: ttl}
}

// A pause of it is refused as it is for a create, whoever asks and however many hold it now. A resume is not.
func TestNoHolderPausesASharedSandbox(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one := b.create(held("10m"))
	req := one.Request
	req.DesiredMode = "paused"
	_, planned := b.PlanUpdate(t.Context(), one.Receipt, one.Request, req)
	_, asked := b.SetMode(t.Context(), one.Receipt, engine.Paused, nil)
	_, byHand := b.SetMode(t.Context(), engine.Receipt{ID: one.ID}, engine.Paused, nil)
	for what, err := range map[string]error{"planned": planned, "asked for": asked, "by hand": byHand} {
		if !extensions.IsKind(err, extensions.KindInvalid) || extensions.FieldOf(err) != "desired_mode" || !strings.Contains(told(err), "scope session") {
			t.Errorf("%s: %s", what, told(err))
		}
	}
	if o := b.object(); o.State != vendor.StateRunning {
		t.Errorf("it is %s", o.State)
	}
	b.mode(b.Engine, one, engine.Running)
	b.end(one)
	b.clean()
}

func TestASharedSandboxLivesUntilItsLastHolderIsGone(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		ctx := context.Background()
		one := b.create(held("10m"))
		two := b.make(b.reopen(), held("1h"))
		if one.ID != two.ID || one.Name != two.Name || one.Receipt.Lease == two.Receipt.Lease || one.Receipt.Lease == "" || two.Receipt.Lease == "" {
			t.Fatalf("%s and %s (leases %q and %q)", one.ID, two.ID, one.Receipt.Lease, two.Receipt.Lease)
		}
		if age := two.ExpiresAt.Sub(one.CreatedAt); age < time.Hour || age > time.Hour+time.Minute {
			t.Errorf("it lives %s, want as long as the latest lease", age)
		}
		if n := len(b.meters(one.ID)); n != 1 {
			t.Errorf("%d meters", n)
		}
		seen, err := b.Get(ctx, one.Receipt)
		if err != nil || seen.State != "ready" || len(seen.Leases) != 2 || seen.Receipt.Lease != one.Receipt.Lease {
			t.Errorf("%+v, %v", seen.Leases, err)
		}
		if _, err := b.Destroy(ctx, engine.Receipt{ID: one.ID}, engine.DestroyOptions{}); !extensions.IsKind(err, extensions.KindConflict) {
			t.Errorf("by hand, while two hold it: %v", err)
		}
		r, err := b.Destroy(ctx, two.Receipt, engine.DestroyOptions{})
		if err != nil || !r.Released || len(b.alive()) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		if now, err := b.Get(ctx, one.Receipt); err != nil || !now.ExpiresAt.Equal(one.ExpiresAt) || len(now.Leases) != 1 {
			t.Errorf("what is left ends at %s, want %s (%v)", now.ExpiresAt, one.ExpiresAt, err)
		}
		if r, err := b.Destroy(ctx, two.Receipt, engine.DestroyOptions{}); err != nil || !r.Released || len(b.alive()) != 1 {
			t.Errorf("once more: %+v, %v", r, err)
		}
		if r, err := b.Destroy(ctx, one.Receipt, engine.DestroyOptions{}); err != nil || r.Released || len(b.alive()) != 0 {
			t.Errorf("the last one: %+v, %v", r, err)
		}
		if _, err := b.Get(ctx, two.Receipt); !extensions.IsKind(err, extensions.KindNotFound) {
			t.Errorf("what another ended: %v", err)
		}
		if again := b.create(held("10m")); again.ID == one.ID {
			t.Error("it was ended, and is found again")
		}
		b.verified()
	})
}

func TestManyWhoAskForOneSharedSandboxAtOnceGetOne(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	engines := []*engine.Engine{b.Engine, b.reopen(), b.reopen()}
	var mu sync.Mutex
	var all []engine.Sandbox
	together(func(i int) {
		s, err := engines[i%3].Create(ctx, engine.Request{Profile: "profile.stub", Scope: "shared", ShareKey: "team", TTL: "10m"}, nil, nil)
		if err != nil {
			t.Error(told(err))
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, s)
	})
	for _, s := range all {
		if s.ID != all[0].ID {
			t.Fatalf("%s and %s", s.ID, all[0].ID)
		}
	}
	if n := len(b.alive()); n != 1 {
		t.Fatalf("%d live", n)
	}
	var ended int
	together(func(i int) {
		r, err := engines[i%3].Destroy(ctx, all[i].Receipt, engine.DestroyOptions{})
		if err != nil {
			t.Error(told(err))
		}
		mu.Lock()
		defer mu.Unlock()
		if !r.Released {
			ended++
		}
	})
	if n := len(b.alive()); n != 0 || ended != 1 {
		t.Errorf("%d live, %d ended it", n, ended)
	}
	b.verified()
}

func TestAHolderHasTheSpecificationOfTheOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	one := b.create(held("10m"))
	other := held("10m")
	other.Profile, other.Env = "profile.stub", map[string]string{"A": "b"}
	for name, ask := range map[string]func() error{
		"plan":  func() error { _, err := b.Plan(ctx, other); return err },
		"apply": func() error { _, err := b.Create(ctx, other, nil, nil); return err },
	} {
		if err := ask(); !extensions.IsKind(err, extensions.KindConflict) || !strings.Contains(told(err), string(one.ID)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	replaced := other
	replaced.Former = one.Receipt
	if _, err := b.Plan(ctx, replaced); err != nil {
		t.Errorf("the only holder replaces it: %s", told(err))
	}
	same := held("10m")
	same.Profile, same.ShareKey = "profile.stub", "another"
	if s := b.create(same); s.ID == one.ID {
		t.Error("another share_key finds the same sandbox")
	}
	agent := same
	agent.Scope, agent.ShareKey, agent.Consumer.Harness = "agent", "", "glas"
	first := b.create(agent)
	agent.Consumer.RunID = "another run"
	if s := b.create(agent); s.ID != first.ID {
		t.Error("one agent gets two")
	}
	agent.Consumer.Harness = "other"
	if s := b.create(agent); s.ID == first.ID {
		t.Error("two agents get one")
	}
}

func TestWhatDoesNotFitTheScopeIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for field, spoil := range map[string]func(*engine.Request){
		"share_key":    func(r *engine.Request) { r.ShareKey = "" },
		"scope":        func(r *engine.Request) { r.Scope = "session" }, // told at share_key
		"name":         func(r *engine.Request) { r.Name = "mine" },
		"name_prefix":  func(r *engine.Request) { r.NamePrefix = "mine" },
		"on_conflict":  func(r *engine.Request) { r.OnConflict = "adopt" },
		"from_sandbox": func(r *engine.Request) { r.FromSandbox = "sbx-aaaaaaaaaaaaaaaaaaaa" },
		"desired_mode": func(r *engine.Request) { r.DesiredMode = "paused" },
	} {
		req := held("10m")
		req.Profile = "profile.stub"
		spoil(&req)
		if field == "scope" {
			field = "share_key"
		}
		_, err := b.Plan(context.Background(), req)
		var x *extensions.Error
		if !errors.As(err, &x) || x.Kind != extensions.KindInvalid || !strings.Contains(told(err), field) || extensions.RemedyOf(err) == "" {
			t.Errorf("%s: %v", field, err)
		}
	}
	agent := engine.Request{Profile: "profile.stub", Scope: "agent"}
	if _, err := b.Plan(context.Background(), agent); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("an agent without a name: %v", err)
	}
}

func TestALeaseThatLapsedHoldsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	short, long := b.create(held("10m")), b.create(held("2h"))
	e := b.later(time.Hour)
	s, err := e.Get(ctx, short.Receipt)
	if err != nil || s.State != "expired" || len(s.Leases) != 1 {
		t.Errorf("%s (%s), %v, %v", s.State, s.Reason, s.Leases, err)
	}
	if s, err := e.Get(ctx, long.Receipt); err != nil || s.State != "ready" {
		t.Errorf("the other: %s, %v", s.State, err)
	}
	if _, err := e.Update(ctx, short.Receipt, held("10m"), nil); err == nil {
		t.Error("a lease that lapsed was changed")
	}
	if r, err := e.Destroy(ctx, short.Receipt, engine.DestroyOptions{}); err != nil || !r.Released {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := e.Destroy(ctx, long.Receipt, engine.DestroyOptions{}); err != nil || r.Released || len(b.alive()) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestAHoldersTTLMovesItsLease(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	one, two := b.create(held("10m")), b.create(held("20m"))
	longer := held("30m")
	longer.Profile = "profile.stub"
	s, err := b.Update(ctx, one.Receipt, longer, nil)
	if err != nil || s.Receipt.Lease != one.Receipt.Lease || s.ExpiresAt.Sub(one.CreatedAt) != 30*time.Minute {
		t.Errorf("%s, %s", s.ExpiresAt, told(err))
	}
	shorter := longer
	shorter.TTL = "5m"
	if s, err = b.Update(ctx, one.Receipt, shorter, nil); err != nil || !s.ExpiresAt.Equal(two.ExpiresAt) {
		t.Errorf("%s, want %s: %s", s.ExpiresAt, two.ExpiresAt, told(err))
	}
	if _, err := b.Recreate(ctx, one.Receipt, nil, nil); !extensions.IsKind(err, extensions.KindConflict) || len(b.alive()) != 1 {
		t.Errorf("re-created under another's feet: %v", err)
	}
	if _, err := b.Destroy(ctx, two.Receipt, engine.DestroyOptions{}); err != nil {
		t.Fatal(told(err))
	}
	again, err := b.Recreate(ctx, one.Receipt, nil, nil)
	if err != nil || again.ID != one.ID || again.Generation != one.Generation+1 || again.Receipt.Lease != one.Receipt.Lease {
		t.Fatalf("%+v, %v", again, err)
	}
	if r, err := b.Destroy(ctx, again.Receipt, engine.DestroyOptions{}); err != nil || r.Released || len(b.alive()) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	b.verified()
}

func TestWithoutTheLedgerALeaseIsReleasedByANote(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	one, two := b.create(held("10m")), b.create(held("10m"))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	back := b.away()
	e := b.reopen()
	for _, s := range []engine.Sandbox{one, two} {
		r, err := e.Destroy(ctx, s.Receipt, engine.DestroyOptions{})
		if err != nil || !r.Released || len(b.alive()) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	back()
	r, err := b.reopen().Sweep(ctx, false, nil)
	if err != nil || !slices.Equal(r.Ended, []engine.ID{one.ID}) || len(b.alive()) != 0 || len(b.notes()) != 0 {
		t.Errorf("%+v, %v; notes %v", r, err, b.notes())
	}
	b.verified()
}

func TestAKillAtAnyStepOfAJoinOrAReleaseLeavesNoOrphan(t *testing.T) {
	t.Parallel()
	killing(t)
	ledgers := []string{"ledger.lease", "ledger.sandbox", "ledger.event"}
	for do, points := range map[string][]string{
		"create":  append(failpointtest.Names("engine.create."), ledgers...),
		"join":    append(failpointtest.Names("engine.extend."), append(ledgers, "engine.create.prepared")...),
		"release": append(failpointtest.Names("engine.extend."), ledgers...),
		"end":     append(failpointtest.Names("engine.destroy."), ledgers...),
	} {
		for _, point := range points {
			t.Run(point+"/"+do, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				ctx := context.Background()
				b.fund()
				create := order{Do: "create", Profile: "profile.stub", Share: "team"}
				var recs []engine.Receipt
				for range map[string]int{"create": 0, "join": 1, "end": 1, "release": 2}[do] {
					rec, err := b.again(create)
					if err != nil {
						t.Fatal(err)
					}
					recs = append(recs, rec)
				}
				o := create
				if o.TTL = "20m"; do == "release" || do == "end" {
					o = order{Do: "destroy", Receipt: recs[len(recs)-1]}
				}
				b.killed(o, point)
				rec, err := b.again(create)
				if err != nil {
					t.Fatal(told(err))
				}
				if left := b.left(); len(left) != 1 || left[0] != string(rec.ID) {
					t.Fatalf("the vendor holds %v, want %s alone", left, rec.ID)
				}
				e := b.reopen()
				for _, r := range append(recs, rec) {
					if _, err := e.Destroy(ctx, r, engine.DestroyOptions{}); err != nil {
						t.Error(told(err))
					}
				}
				// The lease of the run that died lapses with its ttl, at the latest.
				if _, err := b.later(30*time.Minute).Sweep(ctx, false, nil); err != nil {
					t.Error(told(err))
				}
				if left := b.left(); len(left) != 0 {
					t.Errorf("the vendor holds %v", left)
				}
				b.accounted()
				b.verified()
			})
		}
	}
}
