package engine_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// newSwept has a place, ext.swept, that ends nothing by itself.
func newSwept(t *testing.T, more ...with) *bench {
	t.Helper()
	swept := &hooked{handler: "swept", says: func(d *extensions.Descriptor) {
		d.NamedOnly, d.Capabilities.Expiry, d.Capabilities.ExtendTTL = false, extensions.ExpirySweep, extensions.ExtendNone
		d.Capabilities.PricingModel, d.Capabilities.CapacityQuery = extensions.PricingSelfHosted, false
		d.Powers = []extensions.Power{extensions.PowerExec}
		d.Capabilities.FsSnapshot = false
	}, does: func(c *calls, _ extensions.Config) {
		make := c.Provision
		c.Provision = func(ctx context.Context, s extensions.Spec) (extensions.Handle, extensions.Observation, error) {
			s.Deadline = time.Now().Add(12 * time.Hour) // the vendor's own is of no interest
			return make(ctx, s)
		}
	}}
	return newBench(t, append([]with{having(swept), onFiles(map[string]string{
		"extensions/ext.swept.yaml": "id: ext.swept\ntitle: Swept\nhandler: swept\nconfig: { dir: \"$VENDOR\" }\n",
		"profiles/t.yaml":           "id: profile.t\nversion: \"1.0.0\"\nextension: ext.swept\n" + common,
	}), func(b *bench) { b.profile = "profile.t" }}, more...)...)
}

func TestARunThatChangesAnythingEndsWhatIsOverdueWhereNobodyElseDoes(t *testing.T) {
	t.Parallel()
	b := newSwept(t)
	b.create(engine.Request{Name: "short", TTL: "5m"})
	long := b.create(engine.Request{Name: "long", TTL: "2h"})
	next := b.reopen(ahead(func() time.Duration { return 10 * time.Minute }))
	if _, err := next.Get(t.Context(), long.Receipt); err != nil || len(b.alive()) != 2 {
		t.Fatalf("a read ended something: %v, %v", err, b.alive())
	}
	var heard []string
	third, err := next.Create(t.Context(), engine.Request{Profile: "profile.t", Name: "third"}, nil, func(n notice.Notice) {
		heard = append(heard, n.Summary+": "+n.Detail)
	})
	if err != nil {
		t.Fatal(told(err))
	}
	if there := b.alive(); len(there) != 2 || !strings.Contains(strings.Join(heard, "\n"), "Ending overdue sandboxes: ") {
		t.Errorf("%v are there; heard %q", there, heard)
	}
	s, err := next.Lookup(t.Context(), "", "", "short")
	if err == nil && s.State != "destroyed" {
		t.Errorf("the overdue one is %s", s.State)
	}
	b.Engine = next
	b.end(long, third)
	b.clean()
}

// An engine that lives for days, as a server does, is no shelter for what becomes overdue meanwhile.
func TestAnEngineThatLivesOnEndsWhatIsOverdueWhereNobodyElseDoes(t *testing.T) {
	t.Parallel()
	var passed time.Duration
	b := newSwept(t, ahead(func() time.Duration { return passed }))
	short := b.create(engine.Request{Name: "short", TTL: "5m"})
	passed = 10 * time.Minute
	b.create(engine.Request{Name: "long"})
	if got, err := b.Lookup(t.Context(), short.ID, "", ""); err != nil || got.State != "destroyed" || len(b.alive()) != 1 {
		t.Errorf("the overdue one is %s, %s; %v are there", got.State, told(err), b.alive())
	}
	b.clean()
}

func TestWhatIsOverdueAndCannotBeEndedStopsNoOtherRun(t *testing.T) {
	t.Parallel()
	b := newSwept(t)
	b.create(engine.Request{Name: "short", TTL: "5m"})
	b.script(saasstub.Rule{Op: vendor.OpDelete, Do: vendor.DoInvalid})
	b.Engine = b.reopen(ahead(func() time.Duration { return 10 * time.Minute }))
	s := b.create(engine.Request{Name: "other"})
	b.script()
	b.end(s)
	report, err := b.Sweep(t.Context(), false, nil)
	if err != nil || len(b.alive()) != 0 {
		t.Errorf("the next sweep: %+v, %v; %v are there", report, err, b.alive())
	}
	b.clean()
}

func TestASweepListsWhatItEndsWhereNobodyElseDoes(t *testing.T) {
	t.Parallel()
	b := newSwept(t)
	short := b.create(engine.Request{Name: "short", TTL: "5m"})
	b.Engine = b.reopen(ahead(func() time.Duration { return 10 * time.Minute }))
	for _, dry := range []bool{true, false} {
		report, err := b.Sweep(t.Context(), dry, nil)
		if err != nil || !slices.Equal(report.Ended, []extensions.ID{short.ID}) || report.Settled != nil {
			t.Errorf("dry %v: %+v, %s", dry, report, told(err))
		}
	}
	b.clean()
}

// What breaks its own end inside lives on where the place leaves that to what runs inside. On this machine a run sees it,
// with one list; it leaves what ended, or ends in time, alone, and what its place ends later.
func TestARunEndsWhatOutlivedItsDeadlineOnThisMachine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		later time.Duration
		says  time.Duration // how much later its place will end it
		over  bool          // its place has ended it
		ends  bool
	}{
		"lives":             {later: 15 * time.Minute, ends: true},
		"is about to end":   {later: 6 * time.Minute},
		"ends later":        {later: 15 * time.Minute, says: time.Hour},
		"ended in due time": {later: 15 * time.Minute, over: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			due := map[extensions.ID]time.Time{}
			var looks atomic.Int32
			machine := &hooked{handler: "machine", says: func(d *extensions.Descriptor) {
				d.NamedOnly, d.Places, d.Capabilities.Expiry = false, []extensions.Place{extensions.PlaceMachine}, extensions.ExpiryHost
				d.Capabilities.ExtendTTL, d.Capabilities.FsSnapshot = extensions.ExtendNone, false
				d.Capabilities.PricingModel, d.Capabilities.CapacityQuery = extensions.PricingSelfHosted, false
				d.Powers = []extensions.Power{extensions.PowerExec}
			}, does: func(x *calls, _ extensions.Config) {
				make, status := x.Provision, x.Status
				x.Provision = func(ctx context.Context, s extensions.Spec) (extensions.Handle, extensions.Observation, error) {
					due[s.ID] = s.Deadline
					s.Deadline = s.Deadline.Add(12 * time.Hour)
					return make(ctx, s)
				}
				x.Status = func(ctx context.Context, hs []extensions.Handle) ([]extensions.Observation, error) {
					looks.Add(1)
					all, err := status(ctx, hs)
					for i, o := range all {
						all[i].Deadline = due[o.ID].Add(c.says)
						if c.over && due[o.ID].Before(time.Now().Add(c.later)) {
							all[i].Phase = extensions.PhaseExpired
						}
					}
					return all, err
				}
			}}
			b := newBench(t, having(machine), onFiles(map[string]string{
				"extensions/ext.machine.yaml": "id: ext.machine\ntitle: Machine\nhandler: machine\nconfig: { dir: \"$VENDOR\" }\n",
				"profiles/t.yaml":             "id: profile.t\nversion: \"1.0.0\"\nextension: ext.machine\n" + common,
			}), func(b *bench) { b.profile = "profile.t" })
			short := b.create(engine.Request{Name: "short", TTL: "5m"})
			b.create(engine.Request{Name: "shorter", TTL: "5m"})
			b.Engine = b.reopen(ahead(func() time.Duration { return c.later }))
			looks.Store(0)
			if err := b.Recover(t.Context(), nil); err != nil {
				t.Fatal(told(err))
			}
			if n := looks.Load(); n > 1 && !c.ends {
				t.Errorf("it was asked %d times", n)
			}
			if got, err := b.Lookup(t.Context(), short.ID, "", ""); err != nil || (got.State == "destroyed") != c.ends || (len(b.alive()) == 0) != c.ends {
				t.Errorf("it is %s, %s; %v are there", got.State, told(err), b.alive())
			}
		})
	}
}

func TestADeadlineThatOnlyTheLedgerKeepsIsMovedThere(t *testing.T) {
	t.Parallel()
	b := newSwept(t)
	s := b.create(engine.Request{Name: "one", TTL: "5m"})
	notices, err := b.PlanUpdate(t.Context(), s.Receipt, engine.Request{Profile: "profile.t", Name: "one", TTL: "5m"},
		engine.Request{Profile: "profile.t", Name: "one", TTL: "3h"})
	if err != nil {
		t.Fatalf("planned: %s, %+v", told(err), notices)
	}
	longer, err := b.Update(t.Context(), s.Receipt, engine.Request{Profile: "profile.t", Name: "one", TTL: "3h"}, nil)
	if err != nil || !longer.ExpiresAt.Equal(s.CreatedAt.Add(3*time.Hour)) {
		t.Errorf("%s: until %s", told(err), longer.ExpiresAt)
	}
	b.Engine = b.reopen(ahead(func() time.Duration { return time.Hour }))
	b.create(engine.Request{Name: "another"})
	if there := b.alive(); len(there) != 2 {
		t.Errorf("after an hour only %v are there", there)
	}
	b.clean()
}

// What a binding's own probe found at a host decides who ends its sandboxes there: neither what another binding found
// there, nor what held when the host was registered.
func TestWhatAHostNoLongerEndsIsEndedByARun(t *testing.T) {
	t.Parallel()
	sweep := extensions.ExpirySweep
	byHost := extensions.HostFacts{OS: "linux", Arch: "amd64", Expiry: extensions.ExpiryHost}
	byRuns := extensions.HostFacts{OS: "linux", Arch: "amd64", Expiry: extensions.ExpirySweep}
	ends, leaves := extensions.Facts{Machine: &byHost}, extensions.Facts{Machine: &byRuns, Narrowing: extensions.Narrowing{Expiry: &sweep}}
	for name, c := range map[string]struct {
		registered, later extensions.Facts
		swept             bool
	}{
		"never was":     {leaves, leaves, true},
		"is no more":    {ends, leaves, true},
		"ends them":     {ends, ends, false},
		"ends them now": {leaves, ends, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFacts(t, extensions.PlaceHost, twoBindings("", ""))
			b.x.set("ext.first", c.registered)
			b.x.set("ext.second", ends)
			host := onSSH(false)
			if _, err := b.RegisterHost(t.Context(), host, ""); err != nil {
				t.Fatal(told(err))
			}
			b.x.set("ext.first", c.later)
			b.next(25 * time.Hour)
			req := engine.Request{Profile: "profile.first", Name: "one", TTL: "20m", Hosts: []string{host.Ref()}}
			s, err := b.Create(t.Context(), req, nil, nil)
			if err != nil {
				t.Fatal(told(err))
			}
			b.next(time.Hour)
			req.Name = "two"
			if _, err := b.makes(req); err != nil {
				t.Fatal(told(err))
			}
			if s, err = b.Lookup(t.Context(), s.ID, "", ""); err != nil || (s.State == "destroyed") != c.swept {
				t.Errorf("a run ended it: want %v; it is %q, %s", c.swept, s.State, told(err))
			}
		})
	}
}
