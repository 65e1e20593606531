package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// forkOf is a request that forks a sandbox.
func forkOf(s engine.Sandbox, name string) engine.Request {
	return engine.Request{Name: name, FromSandbox: string(s.ID)}
}

func TestForksHaveTheFilesOfTheirSourceAndTheirOwnSecrets(t *testing.T) {
	t.Parallel()
	takesLong(t)
	for _, profile := range []string{"profile.stub", "profile.eventual"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, func(b *bench) { b.profile = profile })
			b.fund()
			source := b.create(engine.Request{Name: "source", Secrets: map[string]extensions.Secret{"KEY": extensions.NewSecret("first")}})
			b.sh(source.Receipt, "printf shared >f")
			forks := make([]engine.Sandbox, 5)
			var wg sync.WaitGroup
			for i := range forks {
				wg.Go(func() {
					req := forkOf(source, fmt.Sprint("fork-", i))
					req.Profile, req.TTL = profile, "20m"
					if i > 0 { // the names of secrets may differ, too
						req.Secrets = map[string]extensions.Secret{"KEY": extensions.NewSecret(fmt.Sprint("anew-", i))}
					}
					var err error
					if forks[i], err = b.Create(context.Background(), req, nil, nil); err != nil {
						t.Error(told(err))
					}
				})
			}
			wg.Wait()
			for i, f := range forks {
				want := "unset"
				if i > 0 {
					want = fmt.Sprint("anew-", i)
				}
				if got := b.sh(f.Receipt, `cat f; printf " ${KEY-unset}"`); got != "shared "+want {
					t.Errorf("fork %d reads %q", i, got)
				}
			}
			b.end(source)
			b.sh(forks[0].Receipt, "printf x >>f")
			b.end(forks...)
			b.accounted()
			b.clean()
		})
	}
}

func TestAForkIsOfALiveSandboxWithItsSpecAtItsPlace(t *testing.T) {
	t.Parallel()
	b := newBench(t, onFiles(map[string]string{
		"profiles/other.yaml":      profile("profile.other", "extension: ext.saas-stub\n"),
		"profiles/elsewhere.yaml":  profile("profile.elsewhere", "extension: ext.dear\n"),
		"profiles/either.yaml":     profile("profile.either", "route: { fallback: [ext.dear] }\nextension: ext.saas-stub\n"),
		"extensions/ext.dear.yaml": bound("ext.dear", "$DEAR", ""),
	}))
	b.fund()
	source := b.create(engine.Request{Name: "source", Env: map[string]string{"A": "1"}})
	gone := b.create(engine.Request{Name: "gone"})
	b.end(gone)
	theirs := b.make(b.reopen(as("other/team")), engine.Request{Name: "theirs"})
	both := b.create(engine.Request{Name: "both", Profile: "profile.either"})
	same := map[string]string{"A": "1"}
	for name, c := range map[string]struct {
		req         engine.Request
		field, want string
	}{
		"unknown":         {engine.Request{FromSandbox: "sbx-aaaaaaaaaaaaaaaaaaaa"}, "from_sandbox", "does not know it"},
		"gone":            {engine.Request{FromSandbox: string(gone.ID)}, "from_sandbox", "it has ended"},
		"another account": {engine.Request{FromSandbox: string(theirs.ID)}, "from_sandbox", "it belongs to the account other/team"},
		"another profile": {engine.Request{FromSandbox: string(source.ID), Env: same, Profile: "profile.other"}, "profile", "in profile"},
		"other variables": {engine.Request{FromSandbox: string(source.ID), Env: map[string]string{"A": "2"}}, "env", "in env"},
		"no variables":    {engine.Request{FromSandbox: string(source.ID)}, "env", "in env"},
		"other inputs":    {engine.Request{FromSandbox: string(source.ID), Env: same, Inputs: map[string]any{"ref": "x"}}, "inputs", "in inputs"},
		"a sandbox and a snapshot": {engine.Request{FromSandbox: string(source.ID), Env: same, FromSnapshot: "snp-aaaaaaaaaaaaaaaaaaaa"},
			"from_snapshot", "conflicts"},
	} {
		c.req.Name = "fork"
		if c.req.Profile == "" {
			c.req.Profile = b.profile
		}
		_, planned := b.Plan(t.Context(), c.req)
		_, made := b.Create(t.Context(), c.req, nil, nil)
		for verb, err := range map[string]error{"plan": planned, "create": made} {
			if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), c.want) || extensions.FieldOf(err) != c.field ||
				extensions.RemedyOf(err) == "" {
				t.Errorf("%s: %s: %v at %q (%s)", name, verb, err, extensions.FieldOf(err), extensions.RemedyOf(err))
			}
		}
	}
	planned, err := b.Plan(t.Context(), engine.Request{Profile: b.profile, Name: "fork", FromSandbox: string(source.ID), Env: same, TTL: "10m"})
	if err != nil || planned.EstimateKnown || planned.Pinned {
		t.Errorf("a fork: estimate known %t, pinned %t, %v", planned.EstimateKnown, planned.Pinned, err)
	}
	// Its source's place is full: no other one has its files.
	b.script(saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoQuota})
	if _, err := b.Create(t.Context(), engine.Request{Profile: "profile.either", Name: "fork", FromSandbox: string(both.ID)}, nil,
		nil); !extensions.IsKind(err, extensions.KindExhausted) {
		t.Errorf("a fork where its source's place is full: %v", err)
	}
	b.script()
	if made := b.holds(b.dear); len(made) != 0 {
		t.Errorf("elsewhere there is %v", made)
	}
	b.end(source, theirs, both)
	b.clean()
}

// The files of a fork are its source's, so that the request's folder may be gone by then; where its origin is gone, it is
// changed like any other, and its record of it stays.
func TestTheOriginOfAForkIsHistory(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fund()
	source := b.create(engine.Request{Name: "source"})
	req := forkOf(source, "fork")
	req.Profile = b.profile
	fork := b.create(req)
	b.end(source)
	if got, err := b.Get(t.Context(), fork.Receipt); err != nil || len(got.Notices) != 0 || got.State != "ready" {
		t.Errorf("%s, %+v, %v", got.State, got.Notices, err)
	}
	for _, origin := range []string{string(source.ID), ""} { // as it was configured, and without it
		now := req
		now.FromSandbox, now.TTL = origin, "90m"
		if ns, err := b.PlanUpdate(t.Context(), fork.Receipt, req, now); err != nil || len(ns) != 0 {
			t.Errorf("plan: %+v, %v", ns, err)
		}
		s, err := b.Update(t.Context(), fork.Receipt, now, nil)
		if err != nil {
			t.Fatal(told(err))
		}
		if ns, err := b.PlanUpdate(t.Context(), s.Receipt, now, now); err != nil || len(ns) != 0 {
			t.Errorf("next plan: %+v, %v", ns, err)
		}
		if found, err := b.Lookup(t.Context(), fork.ID, "", ""); err != nil || found.Request.FromSandbox != string(source.ID) {
			t.Errorf("an import tells of %q, %v", found.Request.FromSandbox, err)
		}
	}
	b.end(fork)
	b.accounted()
	b.clean()
}

func TestAKillAtAnyStepOfAForkConverges(t *testing.T) {
	t.Parallel()
	killing(t)
	for _, point := range failpointtest.Names("engine.create.") {
		for _, profile := range []string{"profile.stub", "profile.quickstart"} {
			t.Run(point+"/"+profile, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, func(b *bench) { b.profile = profile })
				b.fund()
				source := b.create(engine.Request{Name: "source", TTL: "10m"})
				b.sh(source.Receipt, "printf kept >f")
				o := order{Do: "create", Profile: profile, Name: "one", Fork: source.ID}
				b.killed(o, point)
				rec, err := b.again(o)
				if err != nil {
					if text := err.Error() + extensions.RemedyOf(err); !strings.Contains(text, "import {") {
						t.Fatalf("the next run did not converge: %s", text)
					}
					s, err := b.reopen().Lookup(t.Context(), "", "", "one")
					if err != nil {
						t.Fatal(err)
					}
					rec = s.Receipt
				}
				if got := b.sh(rec, "cat f"); got != "kept" {
					t.Errorf("the fork reads %q", got)
				}
				left := b.left()
				slices.Sort(left)
				want := []string{string(source.ID), string(rec.ID)}
				slices.Sort(want)
				if !slices.Equal(left, want) {
					t.Errorf("there is %v, want %v", left, want)
				}
				b.end(source, engine.Sandbox{Receipt: rec})
				if left := b.left(); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
				b.accounted()
				b.clean()
			})
		}
	}
}

// A source that ends meanwhile leaves a whole fork or none.
func TestAForkOfWhatIsBeingDestroyedIsWholeOrNone(t *testing.T) {
	t.Parallel()
	takesLong(t)
	b := newBench(t)
	b.fund()
	for round := range 8 {
		source := b.create(engine.Request{Name: "source"})
		b.sh(source.Receipt, "printf kept >f")
		var fork engine.Sandbox
		var err error
		var wg sync.WaitGroup
		wg.Go(func() {
			req := forkOf(source, "fork")
			req.Profile = b.profile
			fork, err = b.Create(context.Background(), req, nil, nil)
		})
		time.Sleep(time.Duration(round) * 4 * time.Millisecond)
		b.end(source)
		wg.Wait()
		if err != nil {
			if fork.ID != "" || len(b.left()) > 0 {
				t.Errorf("after %v there is %v", err, b.left())
			}
			continue
		}
		if got := b.sh(fork.Receipt, "cat f"); got != "kept" {
			t.Errorf("the fork reads %q", got)
		}
		b.end(fork)
	}
	b.accounted()
	b.clean()
}

// A request that names no hosts gets its source's.
func TestAForkIsOnTheHostOfItsSource(t *testing.T) {
	t.Parallel()
	b := newHosts(t, map[string]string{"profiles/profile.h.yaml": "id: profile.h\nversion: \"1.0.0\"\nextension: ext.hosted\n" + contained})
	b.profile = "profile.h"
	far, near := onSSH(false), onSSH(false)
	near.Name, near.SSH = "near", &extensions.SSH{Address: "192.0.2.2", User: "u", HostKey: "ssh-ed25519 AAAA"}
	source := b.create(engine.Request{Name: "source", Hosts: []string{far.Ref()}})
	fork := b.create(forkOf(source, "fork"))
	if fork.Host != far.Ref() {
		t.Errorf("the fork is on %s", fork.Host)
	}
	other := forkOf(source, "other")
	other.Profile, other.Hosts = b.profile, []string{near.Ref()}
	if _, err := b.Plan(t.Context(), other); err == nil || !strings.Contains(told(err), "the sandbox to fork lives on host far") {
		t.Errorf("on another host: %v", err)
	}
	b.end(source, fork)
	b.clean()
}

func TestWhereForksHoldMemoryThePlanTellsOfSecrets(t *testing.T) {
	t.Parallel()
	x := &hooked{handler: "memory", says: func(d *extensions.Descriptor) { d.NamedOnly, d.Forks.HoldsSecrets = false, true }}
	b := newBench(t, having(x), onFiles(map[string]string{
		"extensions/ext.memory.yaml": "id: ext.memory\ntitle: Memory\nhandler: memory\nconfig: { dir: \"$VENDOR\" }\n",
		"profiles/m.yaml":            "id: profile.m\nversion: \"1.0.0\"\nextension: ext.memory\n" + common,
	}), func(b *bench) { b.profile = "profile.m" })
	for name, secrets := range map[string]map[string]extensions.Secret{"with": {"KEY": extensions.NewSecret("x")}, "without": nil} {
		source := b.create(engine.Request{Name: name, Secrets: secrets})
		req := forkOf(source, "fork")
		req.Profile = b.profile
		planned, err := b.Plan(t.Context(), req)
		if err != nil {
			t.Fatal(told(err))
		}
		warned := slices.ContainsFunc(planned.Notices, func(n engine.Notice) bool { return strings.Contains(n.Detail, "KEY") })
		if warned != (secrets != nil) {
			t.Errorf("%s secrets: %+v", name, planned.Notices)
		}
		b.end(source)
	}
	b.clean()
}

func TestWherePausedSourcesCannotBeForkedThePlanTells(t *testing.T) {
	t.Parallel()
	x := &hooked{handler: "awake", says: func(d *extensions.Descriptor) { d.NamedOnly, d.Forks.RunningOnly = false, true }}
	b := newBench(t, having(x), onFiles(map[string]string{
		"extensions/ext.awake.yaml": "id: ext.awake\ntitle: Awake\nhandler: awake\nconfig: { dir: \"$VENDOR\" }\n",
		"profiles/m.yaml":           "id: profile.m\nversion: \"1.0.0\"\nextension: ext.awake\n" + common,
	}), func(b *bench) { b.profile = "profile.m" })
	source := b.create(engine.Request{Name: "source"})
	req := forkOf(source, "fork")
	req.Profile = b.profile
	for _, mode := range []engine.Mode{engine.Running, engine.Paused} {
		source = b.mode(b.Engine, source, mode)
		planned, err := b.Plan(t.Context(), req)
		if err != nil {
			t.Fatal(told(err))
		}
		warned := slices.ContainsFunc(planned.Notices, func(n engine.Notice) bool { return n.Summary == "The fork's source is paused" })
		if warned != (mode == engine.Paused) {
			t.Errorf("%s: %+v", mode, planned.Notices)
		}
	}
	b.end(source)
	b.clean()
}
