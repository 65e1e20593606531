package conformance

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var describeChecks = []check{
	{name: "describe/valid", run: func(e *env) {
		if err := e.ext.Describe().Validate(); err != nil {
			e.Error(err)
		}
	}},
	{name: "describe/stable", run: func(e *env) {
		first := e.ext.Describe()
		if again := e.ext.Describe(); !reflect.DeepEqual(again, first) {
			e.Errorf("two descriptions differ:\n%+v\n%+v", first, again)
		}
		if other := e.h.New(e.TB).Describe(); !reflect.DeepEqual(other, first) {
			e.Errorf("two values of the extension describe themselves differently:\n%+v\n%+v", first, other)
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
		before := e.h.Residue(e.TB, e.cfg)
		e.open()
		if after := e.h.Residue(e.TB, e.cfg); !slices.Equal(before, after) {
			e.Errorf("opening left %q, before it was %q", after, before)
		}
	}},
	{name: "core/provision-ready", shares: true, run: func(e *env) {
		spec, h, _ := e.ready()
		if o := e.wantPhase(h, extensions.PhaseReady); o.ID != spec.ID || o.Handle.Encode() != h.Encode() {
			e.Errorf("observed id %q and handle %s, want %q and %s", o.ID, o.Handle.Encode(), spec.ID, h.Encode())
		}
	}},
	{name: "core/provision-writes-identity", shares: true, run: provisionWritesIdentity},
	{name: "core/provision-idempotent-by-id", shares: true, run: provisionIdempotent},
	{name: "core/provision-keeps-spec", run: provisionKeepsSpec},
	{name: "core/provision-lost-answer-keeps-handle", hook: hookNamed("LoseAnswer", func(h Harness) bool { return h.LoseAnswer != nil }),
		run: provisionLostAnswer},
	{name: "core/provision-exhausted", hook: hookNamed("Exhaust", func(h Harness) bool { return h.Exhaust != nil }), run: func(e *env) {
		e.h.Exhaust(e.TB, e.cfg)
		e.refused("provision without room", e.spec(), extensions.KindExhausted)
	}},
	{name: "core/provision-not-here-makes-nothing", hook: hookNamed("NotHere", func(h Harness) bool { return h.NotHere != nil }),
		run: provisionNotHere},
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
	{name: "core/provision-gpu-refused", run: provisionGPU},
	{name: "core/provision-gpu-model-refused", run: provisionGPUModel},
	{name: "core/provision-unenforceable-egress-refused", run: provisionUnenforceableEgress},
	{name: "core/wait-ready-ends-with-context", power: extensions.PowerExec, run: func(e *env) {
		spec := e.spec(With(func(s *extensions.Spec) {
			s.Readiness = &extensions.Probe{Command: []string{"false"}, Interval: extensions.Duration(50 * time.Millisecond),
				Timeout: extensions.Duration(time.Second)}
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
	{name: "core/wait-ready-observes", run: waitReadyObserves},
	{name: "core/allocates-what-was-asked-for", run: allocates},
	{name: "core/allocates-in-steps", run: allocatesInSteps},
	{name: "core/unenforceable-limits-refused", run: unenforceableLimits},
	{name: "core/desktop-runs", run: desktopRuns},
	{name: "core/probe-later-waits-for-wait-ready", power: extensions.PowerExec, run: probeLater},
	{name: "core/find-finds", shares: true, run: func(e *env) {
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
	{name: "core/deadline-within-its-grain", shares: true, run: func(e *env) {
		if e.desc.Capabilities.Expiry == extensions.ExpirySweep {
			return
		}
		spec, h, _ := e.ready()
		e.wantEnd(h, spec.Deadline)
	}},
	{name: "core/expired-can-be-torn-down", run: func(e *env) {
		if e.desc.Capabilities.Expiry == extensions.ExpirySweep {
			return
		}
		spec, h := e.brief()
		e.outlive(spec)
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
	spec, h, _ := e.ready()
	o, listed := e.list(e.openAs(e.cfg))[spec.ID]
	if !listed {
		e.Fatal("another process does not see the sandbox in the list")
	}
	if o.Generation != spec.Generation {
		e.Errorf("generation %d, want %d", o.Generation, spec.Generation)
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
	e.h.LoseAnswer(e.TB, e.cfg)
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

func provisionNotHere(e *env) {
	residue := func() []string {
		if e.h.Residue == nil {
			return nil
		}
		return e.h.Residue(e.TB, e.cfg)
	}
	spec := e.h.NotHere(e.TB, e.cfg, e.spec())
	before := residue()
	e.refused("provision of what the place does not offer", spec, extensions.KindUnsupported)
	if after := residue(); !slices.Equal(before, after) {
		e.Errorf("the refusal left %q, before it was %q", after, before)
	}
}

func provisionTooStrong(e *env) {
	levels := e.desc.Capabilities.IsolationLevels
	above := slices.Index(extensions.IsolationLevels, levels[len(levels)-1]) + 1
	for _, level := range extensions.IsolationLevels[above:] { // each, since a place may not know one of them
		spec := e.spec(With(func(s *extensions.Spec) { s.Isolation = level }))
		e.refused("provision with isolation "+string(level), spec, extensions.KindUnsupported)
	}
}

func provisionGPU(e *env) {
	if e.capabilities().GPU {
		return
	}
	spec := e.spec(With(func(s *extensions.Spec) { s.Resources.GPU = &extensions.GPU{Count: 1} }))
	e.refused("provision with a GPU, which is not declared", spec, extensions.KindUnsupported)
}

func provisionGPUModel(e *env) {
	if c := e.capabilities(); !c.GPU || c.GPUModels == nil {
		return
	}
	spec := e.spec(With(func(s *extensions.Spec) { s.Resources.GPU = &extensions.GPU{Model: "conformance-1", Count: 1} }))
	e.refused("provision with a model of GPU that is not declared", spec, extensions.KindUnsupported)
}

func provisionUnenforceableEgress(e *env) {
	policies := []extensions.Network{
		{Default: "deny"},
		{Default: "deny", Egress: []extensions.EgressRule{{CIDR: "192.0.2.0/24", Port: 443}}},
		{Default: "deny", Egress: []extensions.EgressRule{{Domain: "example.org", Port: 443}}},
		{Default: "deny", Egress: []extensions.EgressRule{{CIDR: "192.0.2.0/24", Port: 443}, {Domain: "example.org", Port: 443}}},
	}
	for _, n := range policies {
		if e.capabilities().Egress.Includes(n.Needs()) {
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
	spec, h := e.brief()
	e.wantEnd(h, spec.Deadline)
	o := e.wantExpiry(h, life(spec))
	if o.Phase == extensions.PhaseExpired && o.EndedAt.IsZero() {
		e.Error("it expired, and no end is told")
	}
	if late := o.EndedAt.Sub(spec.Deadline); !o.EndedAt.IsZero() && (late < -time.Second || late > endPatience) {
		e.Errorf("it ended at %s, %s after its deadline", o.EndedAt, late)
	}
}

func waitReadyObserves(e *env) {
	spec := e.spec()
	h, _ := e.provision(spec)
	got, err := e.b.WaitReady(e.ctx(), spec, h)
	if err != nil {
		e.Fatalf("wait ready: %v", err)
	}
	want := e.observe(h)
	if got.Phase != extensions.PhaseReady || got.ID != spec.ID || !got.StartedAt.Equal(want.StartedAt) || !got.Deadline.Equal(want.Deadline) ||
		!reflect.DeepEqual(got.Allocated, want.Allocated) || !reflect.DeepEqual(got.Reachability, want.Reachability) {
		e.Errorf("when it was ready it was %+v, and then %+v", got, want)
	}
}

// sized reports whether the place gives the sizes that are asked for. Elsewhere a template or the machine decides, and
// what it gave is told.
func (e *env) sized() bool {
	l := e.desc.Capabilities.Limits
	return slices.Contains(l, extensions.LimitCPU) && slices.Contains(l, extensions.LimitMemory)
}

func allocates(e *env) {
	if !e.sized() {
		return
	}
	cpu, memory := extensions.Milli(2000), int64(1024)
	_, h, _ := e.ready(With(func(s *extensions.Spec) {
		s.Resources = extensions.Resources{CPU: &cpu, MemoryMB: &memory, BestEffort: true}
	}))
	got := e.observe(h).Allocated
	if got.CPU != nil && *got.CPU < cpu || got.MemoryMB != nil && *got.MemoryMB < memory {
		given, _ := json.Marshal(got) // plain numbers
		e.Errorf("asked for 2000 milli-vCPU and 1024 MiB, it was given %s", given)
	}
}

func allocatesInSteps(e *env) {
	if !e.sized() {
		return
	}
	cpu, memory := extensions.Milli(1100), int64(700)
	asked := extensions.Resources{CPU: &cpu, MemoryMB: &memory, BestEffort: true}
	_, h, _ := e.ready(With(func(s *extensions.Spec) { s.Resources = asked }))
	got, want := e.observe(h).Allocated, asked.RoundUp(e.desc.Capabilities)
	if got.CPU != nil && *got.CPU != *want.CPU || got.MemoryMB != nil && *got.MemoryMB != *want.MemoryMB {
		given, _ := json.Marshal(got) // plain numbers
		e.Errorf("asked for 1100 milli-vCPU and 700 MiB, it was given %s, want %d and %d by its steps", given, *want.CPU, *want.MemoryMB)
	}
}

func unenforceableLimits(e *env) {
	one, milli := int64(1024), extensions.Milli(1000)
	for limit, r := range map[extensions.Limit]extensions.Resources{
		extensions.LimitCPU: {CPU: &milli}, extensions.LimitMemory: {MemoryMB: &one},
		extensions.LimitDisk: {DiskMB: &one}, extensions.LimitPids: {Pids: &one},
	} {
		if slices.Contains(e.desc.Capabilities.Limits, limit) {
			continue
		}
		h, _, err := e.b.Provision(e.ctx(), e.spec(With(func(s *extensions.Spec) { s.Resources = r })))
		e.cleanUp(h)
		e.wantKind("a limit on "+string(limit)+", which is not declared", err, extensions.KindUnsupported)
	}
}

func parallelCalls(e *env) {
	const n = 4
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
