package conformance

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var extendChecks = []check{
	{name: "extend/earlier-is-refused-where-only-later-is-declared", shares: true, power: extensions.PowerExtend, run: func(e *env) {
		if e.desc.Capabilities.ExtendTTL != extensions.ExtendLater {
			return
		}
		spec, h, _ := e.ready()
		e.wantKind("an earlier deadline", power[extensions.Extender](e, e.b).Extend(e.ctx(), h, spec.Deadline.Add(-sandboxTTL/2)),
			extensions.KindUnsupported)
		e.wantEnd(h, spec.Deadline)
	}},
	{name: "extend/moves-the-deadline", shares: true, power: extensions.PowerExtend, run: func(e *env) {
		spec, h, _ := e.ready()
		ways := []time.Time{spec.Deadline.Add(sandboxTTL / 2), spec.Deadline.Add(-sandboxTTL / 2)}
		if e.desc.Capabilities.ExtendTTL == extensions.ExtendLater {
			ways = ways[:1]
		}
		for _, to := range ways {
			if err := power[extensions.Extender](e, e.b).Extend(e.ctx(), h, to); err != nil {
				e.Fatalf("extend to %s: %v", to, err)
			}
			e.wantEnd(h, to)
		}
	}},
	{name: "extend/right-after-provision", power: extensions.PowerExtend, run: func(e *env) {
		spec := e.spec(WithTTL(sandboxTTL / 2))
		h, _ := e.provision(spec)
		to := spec.Deadline.Add(sandboxTTL)
		if err := power[extensions.Extender](e, e.b).Extend(e.ctx(), h, to); err != nil {
			e.Fatalf("extend before it is ready: %v", err)
		}
		e.wantEnd(h, to)
	}},
	{name: "extend/later-keeps-it", power: extensions.PowerExtend, run: func(e *env) {
		spec, h := e.brief()
		if err := power[extensions.Extender](e, e.b).Extend(e.ctx(), h, spec.Deadline.Add(time.Minute)); err != nil {
			e.Fatalf("extend: %v", err)
		}
		e.outlive(spec)
		e.wantPhase(h, extensions.PhaseReady)
	}},
	{name: "extend/earlier-ends-it", power: extensions.PowerExtend, run: func(e *env) {
		if e.desc.Capabilities.Expiry == extensions.ExpirySweep || e.desc.Capabilities.ExtendTTL != extensions.ExtendBoth {
			return
		}
		spec, h, _ := e.ready()
		end := time.Now().Add(e.shortTTL())
		if err := power[extensions.Extender](e, e.b).Extend(e.ctx(), h, end); err != nil {
			e.Fatalf("extend: %v", err)
		}
		e.wantExpiry(h, end.Sub(spec.CreatedAt))
	}},
	{name: "extend/ended-is-not-found", shares: true, power: extensions.PowerExtend, run: func(e *env) {
		h := e.gone()
		e.wantKind("extending what is gone", power[extensions.Extender](e, e.b).Extend(e.ctx(), h, time.Now().Add(time.Hour)),
			extensions.KindNotFound)
		if e.desc.Capabilities.Expiry == extensions.ExpirySweep {
			return
		}
		spec, expired := e.brief()
		e.wantExpiry(expired, life(spec))
		e.wantKind("extending what has expired", power[extensions.Extender](e, e.b).Extend(e.ctx(), expired, spec.Deadline.Add(time.Hour)),
			extensions.KindNotFound)
	}},
}

var usageChecks = []check{
	{name: "usage/grows", shares: true, power: extensions.PowerUsage, run: func(e *env) {
		_, h, _ := e.ready()
		first := e.usage(h)
		e.advance(time.Second)
		second := e.usage(h)
		if first.StartedAt.IsZero() || !first.StartedAt.Equal(second.StartedAt) || !second.EndedAt.IsZero() {
			e.Errorf("started %s, then %s; ended %s while it lives", first.StartedAt, second.StartedAt, second.EndedAt)
		}
		if grown := second.Running - first.Running; grown < 500*time.Millisecond || grown > time.Minute {
			e.Errorf("running %s, a second later %s", first.Running, second.Running)
		}
	}},
	{name: "usage/ends-with-the-sandbox", power: extensions.PowerUsage, run: func(e *env) {
		if e.desc.Capabilities.Expiry != extensions.ExpiryNative {
			return
		}
		spec, h := e.brief()
		e.advance(life(spec) + time.Minute)
		u := e.usage(h)
		if u.EndedAt.IsZero() || (u.EndedAt.Sub(u.StartedAt)-u.Running-u.Paused).Abs() > time.Second {
			e.Errorf("from %s to %s it ran %s", u.StartedAt, u.EndedAt, u.Running)
		}
	}},
	{name: "usage/teardown-returns-it", shares: true, power: extensions.PowerUsage, run: func(e *env) {
		_, h, _ := e.ready()
		e.advance(time.Second)
		r := e.teardown(h)
		_, err := power[extensions.UsageReader](e, e.b).Usage(e.ctx(), h)
		if err == nil {
			return // the place remembers it
		}
		e.wantKind("usage of what is gone", err, extensions.KindNotFound)
		if r.Usage == nil || r.Usage.Running < 500*time.Millisecond || r.Usage.EndedAt.IsZero() {
			e.Errorf("the place forgets, and the report's usage is %+v", r.Usage)
		}
	}},
}

func (e *env) usage(h extensions.Handle) extensions.Usage {
	e.Helper()
	u, err := power[extensions.UsageReader](e, e.b).Usage(e.ctx(), h)
	if err != nil {
		e.Fatalf("usage: %v", err)
	}
	return u
}

var capacityChecks = []check{
	{name: "capacity/counts", power: extensions.PowerCapacity, run: func(e *env) {
		before := e.capacity()
		_, h, _ := e.ready()
		during := e.capacity()
		e.teardown(h)
		after := e.capacity()
		if before.Used == nil || during.Used == nil || after.Used == nil {
			return // unknown is allowed
		}
		if !during.SharedByOthers && (*during.Used != *before.Used+1 || *after.Used != *before.Used) || *during.Used <= *before.Used {
			e.Errorf("used %d, with one more %d, after it %d", *before.Used, *during.Used, *after.Used)
		}
	}},
	{name: "capacity/is-dated", power: extensions.PowerCapacity, run: func(e *env) {
		if c := e.capacity(); time.Since(c.ObservedAt).Abs() > time.Minute {
			e.Errorf("observed at %s", c.ObservedAt)
		}
	}},
	{name: "capacity/not-above-declared", power: extensions.PowerCapacity, run: func(e *env) {
		c, declared := e.capacity(), e.desc.Capabilities.MaxConcurrent
		if c.Max != nil && declared != nil && *c.Max > *declared {
			e.Errorf("room for %d, declared are %d", *c.Max, *declared)
		}
	}},
}

func (e *env) capacity() extensions.Capacity {
	e.Helper()
	c, err := power[extensions.CapacityReader](e, e.b).Capacity(e.ctx())
	if err != nil {
		e.Fatalf("capacity: %v", err)
	}
	return c
}
