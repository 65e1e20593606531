package exttest

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var describeChecks = []check{
	{name: "describe/valid", run: func(e *env) {
		if err := e.desc.Validate(); err != nil {
			e.Error(err)
		}
	}},
	{name: "describe/stable", run: func(e *env) {
		if again := e.ext.Describe(); !reflect.DeepEqual(again, e.desc) {
			e.Errorf("two descriptions differ:\n%+v\n%+v", e.desc, again)
		}
		if other := e.h.New(e).Describe(); !reflect.DeepEqual(other, e.desc) {
			e.Errorf("two values of the extension describe themselves differently:\n%+v\n%+v", e.desc, other)
		}
	}},
	{name: "describe/fields-documented", run: func(e *env) {
		for _, f := range append(slices.Clone(e.desc.Config), e.desc.Options...) {
			if f.Doc == "" || f.Name == "" || f.Type == "" {
				e.Errorf("the field %q has no name, type or doc", f.Name)
			}
		}
		for _, c := range e.desc.Credentials {
			if c.Doc == "" || c.Name == "" {
				e.Errorf("the credential %q has no name or doc", c.Name)
			}
		}
	}},
}

var coreChecks = []check{
	{name: "core/open-makes-nothing", hook: hookNamed("Residue", func(h Harness) bool { return h.Residue != nil }), run: func(e *env) {
		before := e.h.Residue(e, e.cfg)
		e.open()
		if after := e.h.Residue(e, e.cfg); !slices.Equal(before, after) {
			e.Errorf("opening left %q, before it was %q", after, before)
		}
	}},
	{name: "core/provision-ready", run: func(e *env) {
		spec, h, _ := e.ready()
		if o := e.wantPhase(h, extensions.PhaseReady); o.ID != spec.ID || o.Handle.Encode() != h.Encode() {
			e.Errorf("observed id %q and handle %s, want %q and %s", o.ID, o.Handle.Encode(), spec.ID, h.Encode())
		}
	}},
	{name: "core/provision-writes-identity", run: provisionWritesIdentity},
	{name: "core/provision-idempotent-by-id", run: provisionIdempotent},
	{name: "core/provision-keeps-spec", run: provisionKeepsSpec},
	{name: "core/provision-lost-answer-keeps-handle", hook: hookNamed("LoseAnswer", func(h Harness) bool { return h.LoseAnswer != nil }), run: provisionLostAnswer},
	{name: "core/provision-exhausted", hook: hookNamed("Exhaust", func(h Harness) bool { return h.Exhaust != nil }), run: func(e *env) {
		e.h.Exhaust(e, e.cfg)
		spec := e.spec()
		h, _, err := e.b.Provision(e.ctx(), spec)
		e.cleanUp(h)
		e.wantKind("provision without room", err, extensions.KindExhausted)
		if !h.IsZero() {
			e.Errorf("nothing was made, yet there is a handle: %s", h.Encode())
		}
		if _, there := e.list(e.b)[spec.ID]; there {
			e.Error("the refused sandbox is listed")
		}
	}},
	{name: "core/provision-invalid-id-refused", run: func(e *env) {
		for _, id := range []extensions.ID{"", "sbx-SHORT", "../../x"} {
			h, _, err := e.b.Provision(e.ctx(), e.spec(With(func(s *extensions.Spec) { s.ID = id })))
			e.cleanUp(h)
			e.wantKind("provision with the id "+string(id), err, extensions.KindInvalid)
		}
		if all := e.list(e.b); len(all) != 0 {
			e.Errorf("%d sandboxes exist after refusals", len(all))
		}
	}},
	{name: "core/provision-too-strong-isolation-refused", run: provisionTooStrong},
	{name: "core/provision-unenforceable-egress-refused", run: provisionUnenforceableEgress},
	{name: "core/wait-ready-ends-with-context", power: extensions.PowerExec, run: func(e *env) {
		spec := e.spec(With(func(s *extensions.Spec) {
			s.Readiness = &extensions.Probe{Command: []string{"false"}, Interval: extensions.Duration(50 * time.Millisecond), Timeout: extensions.Duration(time.Second)}
		}))
		h, o := e.provision(spec)
		if o.Phase == extensions.PhaseReady {
			e.Fatal("ready although the probe cannot succeed")
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := e.b.WaitReady(ctx, spec, h)
		e.wantKind("waiting for what never gets ready", err, extensions.KindTimeout)
	}},
	{name: "core/wait-ready-repeats-the-probe", power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready(With(func(s *extensions.Spec) {
			s.Readiness = &extensions.Probe{Command: []string{"sh", "-c", "test -f probed || { printf x >probed; exit 1; }"},
				Interval: extensions.Duration(50 * time.Millisecond), Timeout: extensions.Duration(5 * time.Second)}
		}))
		if got := e.sh(h, "cat probed"); got != "x" {
			e.Errorf("the probe left %q, want one run that failed before the one that succeeded", got)
		}
	}},
	{name: "core/probe-later-waits-for-wait-ready", power: extensions.PowerExec, run: probeLater},
	{name: "core/find-finds", run: func(e *env) {
		if e.desc.Find.Strength == extensions.FindNone {
			return
		}
		spec, h, _ := e.ready()
		e.settle()
		found, err := e.openAs(e.cfg).Find(e.ctx(), spec.ID)
		if err != nil {
			e.Fatalf("find: %v", err)
		}
		if found.Encode() != h.Encode() {
			e.Errorf("found %s, want %s", found.Encode(), h.Encode())
		}
	}},
	{name: "core/find-unknown-id", run: func(e *env) {
		want := extensions.KindIndeterminate
		if e.desc.Find.Strength == extensions.FindStrong {
			want = extensions.KindNotFound
		}
		h, err := e.b.Find(e.ctx(), e.newID())
		e.wantKind("find of an id that nothing has", err, want)
		if !h.IsZero() {
			e.Errorf("nothing was found, yet there is a handle: %s", h.Encode())
		}
	}},
	{name: "core/expires-at-its-deadline", run: expires},
	{name: "core/expired-can-be-torn-down", run: func(e *env) {
		if e.desc.Capabilities.Expiry == extensions.ExpirySweep {
			return
		}
		_, h, _ := e.ready(WithTTL(e.shortTTL()))
		e.advance(e.shortTTL() + time.Second)
		e.teardown(h)
		e.wantPhase(h, extensions.PhaseAbsent)
	}},
	{name: "core/parallel-calls", run: parallelCalls},
	{name: "core/close-keeps-sandboxes", run: func(e *env) {
		b := e.b
		_, h, _ := e.ready()
		if err := b.Close(); err != nil {
			e.Fatalf("close: %v", err)
		}
		e.open()
		e.wantPhase(h, extensions.PhaseReady)
	}},
}

func provisionWritesIdentity(e *env) {
	spec := e.spec(With(func(s *extensions.Spec) { s.Generation = 3 }))
	h, _ := e.provision(spec)
	o, listed := e.list(e.openAs(e.cfg))[spec.ID]
	if !listed {
		e.Fatal("another process does not see the sandbox in the list")
	}
	if o.Generation != 3 {
		e.Errorf("generation %d, want 3", o.Generation)
	}
	if o.Handle.Encode() != h.Encode() {
		e.Errorf("listed as %s, want %s", o.Handle.Encode(), h.Encode())
	}
}

func provisionIdempotent(e *env) {
	spec, h, _ := e.ready()
	again, o, err := e.openAs(e.cfg).Provision(e.ctx(), spec)
	e.cleanUp(again)
	if err != nil {
		e.Fatalf("second provision: %v", err)
	}
	if again.Encode() != h.Encode() || o.ID != spec.ID {
		e.Errorf("second provision made %s, want to adopt %s", again.Encode(), h.Encode())
	}
	if all := e.list(e.b); len(all) != 1 {
		e.Errorf("%d sandboxes exist, want 1", len(all))
	}
}

func provisionKeepsSpec(e *env) {
	spec := e.spec(WithEnv("A", "1"), WithSecret("B", "2"))
	labels, env := len(spec.Labels), len(spec.Env)
	hash := spec.Hash()
	e.provision(spec)
	if len(spec.Labels) != labels || len(spec.Env) != env || len(spec.Secrets) != 1 || spec.Hash() != hash {
		e.Error("provision changed the spec it was given, which is frozen")
	}
}

func provisionLostAnswer(e *env) {
	e.h.LoseAnswer(e, e.cfg)
	spec := e.spec()
	h, _, err := e.b.Provision(e.ctx(), spec)
	e.cleanUp(h)
	e.wantKind("provision whose answer is lost", err, extensions.KindIndeterminate, extensions.KindTimeout)
	if h.IsZero() || h.ID != spec.ID {
		e.Errorf("the sandbox may exist, yet the handle is %q", h.Encode())
	}
	e.settle()
	found, _, err := e.b.Provision(e.ctx(), spec)
	e.cleanUp(found)
	if err != nil {
		e.Fatalf("provision after a lost answer: %v", err)
	}
	if all := e.list(e.b); len(all) != 1 {
		e.Errorf("%d sandboxes exist, want 1", len(all))
	}
}

func provisionTooStrong(e *env) {
	levels := e.desc.Capabilities.IsolationLevels
	above := slices.Index(extensions.IsolationLevels, levels[len(levels)-1]) + 1
	if above == len(extensions.IsolationLevels) {
		return // nothing is stronger
	}
	spec := e.spec(With(func(s *extensions.Spec) { s.Isolation = extensions.IsolationLevels[above] }))
	h, _, err := e.b.Provision(e.ctx(), spec)
	e.cleanUp(h)
	e.wantKind("provision with isolation "+string(spec.Isolation), err, extensions.KindUnsupported)
	if _, there := e.list(e.b)[spec.ID]; there {
		e.Error("the refused sandbox is listed")
	}
}

func provisionUnenforceableEgress(e *env) {
	policies := []extensions.Network{
		{Default: "deny"},
		{Default: "deny", Egress: []extensions.EgressRule{{CIDR: "192.0.2.0/24", Port: 443}}},
		{Default: "deny", Egress: []extensions.EgressRule{{Domain: "example.org", Port: 443}}},
	}
	for _, n := range policies {
		if e.desc.Capabilities.Egress.Includes(n.Needs()) {
			continue
		}
		spec := e.spec(With(func(s *extensions.Spec) { s.Network = n }))
		h, _, err := e.b.Provision(e.ctx(), spec)
		e.cleanUp(h)
		e.wantKind("provision with egress that needs "+string(n.Needs()), err, extensions.KindUnsupported)
	}
}

func expires(e *env) {
	if e.desc.Capabilities.Expiry == extensions.ExpirySweep {
		return
	}
	spec, h, _ := e.ready(WithTTL(e.shortTTL()))
	if o := e.observe(h); o.Deadline.Sub(spec.Deadline).Abs() > time.Second {
		e.Errorf("the place will end it at %s, want %s", o.Deadline, spec.Deadline)
	}
	e.advance(e.shortTTL() + time.Second)
	o := e.wantPhase(h, extensions.PhaseExpired, extensions.PhaseAbsent)
	if o.Phase == extensions.PhaseExpired && o.EndedAt.IsZero() {
		e.Error("it expired, and no end is told")
	}
	if late := o.EndedAt.Sub(spec.Deadline); !o.EndedAt.IsZero() && (late < -time.Second || late > 10*time.Second) {
		e.Errorf("it ended at %s, %s after its deadline", o.EndedAt, late)
	}
}

func parallelCalls(e *env) {
	const n = 6
	var wg sync.WaitGroup
	for range n {
		spec := e.spec()
		wg.Go(func() {
			h, _, err := e.b.Provision(e.ctx(), spec)
			e.cleanUp(h)
			if err != nil {
				e.Errorf("provision: %v", err)
				return
			}
			if _, err := e.b.WaitReady(e.ctx(), spec, h); err != nil {
				e.Errorf("wait ready: %v", err)
			}
		})
	}
	wg.Wait()
	if all := e.list(e.b); len(all) != n {
		e.Errorf("%d sandboxes exist, want %d", len(all), n)
	}
}
