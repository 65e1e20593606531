package conformance

import (
	"context"
	"encoding/json"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var portChecks = []check{
	{name: "ports/dial", shares: true, power: extensions.PowerPorts,
		hook: hookNamed("Serve", func(h Harness) bool { return h.Serve != nil }),
		run: func(e *env) {
			_, h, _ := e.ready()
			service, port := e.h.Serve(e.TB, e.b, h)
			c, err := power[extensions.PortForwarder](e, e.b).Dial(e.ctx(), h, service, port)
			if err != nil {
				e.Fatalf("dial: %v", err)
			}
			defer func() { _ = c.Close() }()
			_ = c.SetDeadline(time.Now().Add(20 * time.Second))
			if _, err := io.WriteString(c, "there and back"); err != nil {
				e.Fatalf("send: %v", err)
			}
			got := make([]byte, len("there and back"))
			if _, err := io.ReadFull(c, got); err != nil {
				e.Fatalf("receive: %v", err)
			}
			equal(e, "what came back", got, []byte("there and back"))
		}},
	{name: "ports/outlives-its-call", shares: true, power: extensions.PowerPorts,
		hook: hookNamed("Serve", func(h Harness) bool { return h.Serve != nil }),
		run: func(e *env) {
			_, h, _ := e.ready()
			service, port := e.h.Serve(e.TB, e.b, h)
			ctx, cancel := context.WithCancel(e.ctx())
			c, err := power[extensions.PortForwarder](e, e.b).Dial(ctx, h, service, port)
			cancel()
			if err != nil {
				e.Fatalf("dial: %v", err)
			}
			defer func() { _ = c.Close() }()
			time.Sleep(300 * time.Millisecond)
			_ = c.SetDeadline(time.Now().Add(20 * time.Second))
			if _, err := io.WriteString(c, "still"); err != nil {
				e.Fatalf("send once the call's context had ended: %v", err)
			}
			got := make([]byte, len("still"))
			if _, err := io.ReadFull(c, got); err != nil {
				e.Fatalf("receive once the call's context had ended: %v", err)
			}
		}},
	{name: "ports/gone-is-not-found", shares: true, power: extensions.PowerPorts, run: func(e *env) {
		h := e.gone()
		c, err := power[extensions.PortForwarder](e, e.b).Dial(e.ctx(), h, "", 80)
		if err == nil {
			_ = c.Close()
		}
		e.wantKind("dial into what is gone", err, extensions.KindNotFound)
	}},
}

var probeChecks = []check{
	{name: "probe/facts", power: extensions.PowerProbe, run: func(e *env) {
		found, _, err := power[extensions.Prober](e, e.b).Probe(e.ctx())
		if err != nil {
			e.Fatalf("probe: %v", err)
		}
		if at, _ := e.desc.PlaceOf(e.cfg.Host); (at == extensions.PlaceAccount) != (found.Machine == nil) {
			e.Fatalf("at the place %q the probe describes the machine %+v", at, found.Machine)
		}
		if found.Machine == nil {
			return
		}
		c, f := e.desc.Capabilities, *found.Machine
		if f.OS == "" || f.Arch == "" || f.CPUs < 1 || f.MemoryMB < 1 {
			e.Errorf("facts %+v", f)
		}
		if !slices.Contains(c.OS, f.OS) && !slices.Contains(c.OS, "*") || !slices.Contains(c.Arch, f.Arch) && !slices.Contains(c.Arch, "*") {
			e.Errorf("the host is %s/%s, declared are %v/%v", f.OS, f.Arch, c.OS, c.Arch)
		}
	}},
	{name: "probe/narrows-to-the-machine", power: extensions.PowerProbe, run: func(e *env) {
		f, _, err := power[extensions.Prober](e, e.b).Probe(e.ctx())
		if err != nil {
			e.Fatalf("probe: %v", err)
		}
		n, m := f.Narrowing, f.Machine
		if m != nil && (!slices.Equal(n.OS, []string{m.OS}) || !slices.Equal(n.Arch, []string{m.Arch})) {
			e.Errorf("the machine is %s/%s, and the facts narrow to %v/%v", m.OS, m.Arch, n.OS, n.Arch)
		}
	}},
	{name: "probe/isolation-not-above-declared", power: extensions.PowerProbe, run: func(e *env) {
		f, _, err := power[extensions.Prober](e, e.b).Probe(e.ctx())
		if err != nil {
			e.Fatalf("probe: %v", err)
		}
		if f.Machine == nil {
			return
		}
		for _, l := range f.Machine.Isolation {
			if !slices.Contains(e.desc.Capabilities.IsolationLevels, l) {
				e.Errorf("isolation %q was found and is not declared", l)
			}
		}
	}},
	{name: "probe/only-narrows", power: extensions.PowerProbe, run: func(e *env) {
		f, _, err := power[extensions.Prober](e, e.b).Probe(e.ctx())
		if err != nil {
			e.Fatalf("probe: %v", err)
		}
		if _, err := e.desc.Capabilities.Narrow(f.Narrowing); err != nil {
			e.Errorf("the facts widen the declaration: %v", err)
		}
		for _, p := range f.Powers {
			if !e.desc.Has(p) {
				e.Errorf("the power %q was found and is not declared", p)
			}
		}
	}},
	{name: "probe/can-be-kept", power: extensions.PowerProbe, run: func(e *env) {
		f, _, err := power[extensions.Prober](e, e.b).Probe(e.ctx())
		if err != nil {
			e.Fatalf("probe: %v", err)
		}
		var again extensions.Facts
		text, err := json.Marshal(f)
		if err != nil || json.Unmarshal(text, &again) != nil {
			e.Fatalf("the facts %+v cannot be stored: %v", f, err)
		}
		f.Machine = nil
		if !reflect.DeepEqual(f, again) {
			e.Errorf("the facts %+v read back as %+v", f, again)
		}
		if len(text) > 16<<10 {
			e.Errorf("the facts have %d bytes, allowed are 16 KiB", len(text))
		}
	}},
	{name: "probe/tells-what-status-tells", power: extensions.PowerProbe, run: func(e *env) {
		e.ready()
		want := e.list(e.b)
		_, all, err := power[extensions.Prober](e, e.b).Probe(e.ctx())
		if err != nil {
			e.Fatalf("probe: %v", err)
		}
		if all != nil && len(all) != len(want) {
			e.Errorf("the probe tells of %d sandboxes, status of %d", len(all), len(want))
		}
		for _, o := range all {
			if w, ok := want[o.ID]; !ok || o.Phase != w.Phase || o.Handle.Encode() != w.Handle.Encode() {
				e.Errorf("the probe says %s of %s, status %s", o.Phase, o.Handle.Encode(), w.Phase)
			}
		}
	}},
}

var estimateChecks = []check{
	{name: "estimate/follows-the-duration", power: extensions.PowerEstimate, run: func(e *env) {
		p := power[extensions.Estimator](e, e.b)
		for _, d := range []time.Duration{0, time.Hour, 24 * time.Hour} {
			u, err := p.Estimate(e.ctx(), e.spec(), d)
			if err != nil || u.Running != d {
				e.Errorf("estimate for %s: running %s, %v", d, u.Running, err)
			}
		}
	}},
	{name: "estimate/makes-nothing", power: extensions.PowerEstimate, run: func(e *env) {
		if _, err := power[extensions.Estimator](e, e.b).Estimate(e.ctx(), e.spec(), time.Hour); err != nil {
			e.Fatalf("estimate: %v", err)
		}
		if all := e.list(e.b); len(all) != 0 {
			e.Errorf("%d sandboxes exist after an estimate", len(all))
		}
	}},
}

var sha256Digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

var imageChecks = []check{
	{name: "prepare-image/digest-is-stable", power: extensions.PowerPrepareImage, run: func(e *env) {
		spec := e.spec()
		first, err := power[extensions.ImagePreparer](e, e.b).PrepareImage(e.ctx(), spec)
		if err != nil {
			e.Fatalf("prepare image: %v", err)
		}
		second, err := power[extensions.ImagePreparer](e, e.openAs(e.cfg)).PrepareImage(e.ctx(), spec)
		if err != nil || second != first || !strings.HasPrefix(first, "sha256:") {
			e.Errorf("digest %q, then %q, %v", first, second, err)
		}
	}},
	{name: "prepare-image/digest-is-of-the-images", power: extensions.PowerPrepareImage, run: func(e *env) {
		var digests []string
		for _, spec := range []extensions.Spec{e.spec(), e.spec(With(func(s *extensions.Spec) { s.Name = "another" }))} {
			digest, err := power[extensions.ImagePreparer](e, e.b).PrepareImage(e.ctx(), spec)
			if err != nil {
				e.Fatalf("prepare image: %v", err)
			}
			digests = append(digests, digest)
		}
		if digests[0] != digests[1] || !sha256Digest.MatchString(digests[0]) {
			e.Errorf("two sandboxes of the same images give %q", digests)
		}
	}},
	{name: "prepare-image/create-follows", power: extensions.PowerPrepareImage, run: func(e *env) {
		spec := e.spec()
		if _, err := power[extensions.ImagePreparer](e, e.b).PrepareImage(e.ctx(), spec); err != nil {
			e.Fatalf("prepare image: %v", err)
		}
		h, _, err := e.b.Provision(e.ctx(), spec)
		e.cleanUp(h)
		if err != nil {
			e.Errorf("provision of what was prepared: %v", err)
		}
	}},
	{name: "prepare-image/canceled-starts-nothing", power: extensions.PowerPrepareImage, run: func(e *env) {
		ctx, cancel := context.WithCancel(e.ctx())
		cancel()
		if _, err := power[extensions.ImagePreparer](e, e.b).PrepareImage(ctx, e.spec()); err == nil {
			e.Errorf("prepare image with a canceled context succeeded")
		}
	}},
	{name: "prepare-image/makes-no-sandbox", power: extensions.PowerPrepareImage, run: func(e *env) {
		if _, err := power[extensions.ImagePreparer](e, e.b).PrepareImage(e.ctx(), e.spec()); err != nil {
			e.Fatalf("prepare image: %v", err)
		}
		if all := e.list(e.b); len(all) != 0 {
			e.Errorf("%d sandboxes exist after preparing an image", len(all))
		}
	}},
}

var generationChecks = []check{
	{name: "set-generation/raises", shares: true, power: extensions.PowerGenerationSet, run: func(e *env) {
		_, h, _ := e.ready()
		if err := power[extensions.GenerationSetter](e, e.b).SetGeneration(e.ctx(), h, 5); err != nil {
			e.Fatalf("set generation: %v", err)
		}
		if o := e.observeOn(e.openAs(e.cfg), h); o.Generation != 5 {
			e.Errorf("another process sees generation %d, want 5", o.Generation)
		}
	}},
	{name: "set-generation/never-lowers", shares: true, power: extensions.PowerGenerationSet, run: func(e *env) {
		_, h, _ := e.ready()
		now := e.observe(h).Generation
		for _, g := range []int64{now - 1, now} {
			e.wantKind("generation "+formatInt(g)+" over "+formatInt(now), power[extensions.GenerationSetter](e, e.b).SetGeneration(e.ctx(), h, g),
				extensions.KindConflict)
		}
		if o := e.observe(h); o.Generation != now {
			e.Errorf("generation %d, want %d", o.Generation, now)
		}
	}},
	{name: "set-generation/gone-is-not-found", shares: true, power: extensions.PowerGenerationSet, run: func(e *env) {
		h := e.gone()
		e.wantKind("generation of what is gone", power[extensions.GenerationSetter](e, e.b).SetGeneration(e.ctx(), h, 9), extensions.KindNotFound)
	}},
}

// implemented returns the powers that a backend's methods implement.
func implemented(b extensions.Backend) map[extensions.Power]bool {
	has := map[extensions.Power]bool{}
	_, has[extensions.PowerExec] = b.(extensions.Execer)
	_, has[extensions.PowerLogs] = b.(extensions.LogStreamer)
	_, has[extensions.PowerFiles] = b.(extensions.FileTransfer)
	_, has[extensions.PowerPorts] = b.(extensions.PortForwarder)
	_, has[extensions.PowerURL] = b.(extensions.URLGiver)
	_, has[extensions.PowerSnapshot] = b.(extensions.Snapshotter)
	_, has[extensions.PowerReadSnapshot] = b.(extensions.SnapshotReader)
	_, has[extensions.PowerFork] = b.(extensions.Forker)
	_, has[extensions.PowerPause] = b.(extensions.Pauser)
	_, has[extensions.PowerExtend] = b.(extensions.Extender)
	_, has[extensions.PowerUsage] = b.(extensions.UsageReader)
	_, has[extensions.PowerCapacity] = b.(extensions.CapacityReader)
	_, has[extensions.PowerProbe] = b.(extensions.Prober)
	_, has[extensions.PowerEstimate] = b.(extensions.Estimator)
	_, has[extensions.PowerPrepareImage] = b.(extensions.ImagePreparer)
	_, has[extensions.PowerGenerationSet] = b.(extensions.GenerationSetter)
	return has
}

var declaredChecks = []check{
	{name: "declared/is-implemented", run: func(e *env) {
		has := implemented(e.b)
		for _, p := range e.desc.Powers {
			if !has[p] {
				e.Errorf("%q is declared and not implemented", p)
			}
		}
	}},
	{name: "declared/implemented-is-declared", run: func(e *env) {
		for p, yes := range implemented(e.b) {
			if yes && !e.ext.Describe().Has(p) { // one type serves every binding
				e.Errorf("%q is implemented and not declared", p)
			}
		}
	}},
}
