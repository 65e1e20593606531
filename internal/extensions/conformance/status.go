package conformance

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var statusChecks = []check{
	{name: "core/status-keeps-order", shares: true, run: func(e *env) {
		_, a, _ := e.ready()
		_, b, _ := e.another()
		gone := e.gone()
		want := []extensions.Handle{b, a, gone, b, a}
		got, err := e.b.Status(e.ctx(), want)
		if err != nil {
			e.Fatalf("status: %v", err)
		}
		if len(got) != len(want) {
			e.Fatalf("%d observations of %d handles", len(got), len(want))
		}
		for i := range want {
			phase := extensions.PhaseReady
			if want[i].ID == gone.ID {
				phase = extensions.PhaseAbsent
			}
			if got[i].ID != want[i].ID || got[i].Phase != phase {
				e.Errorf("observation %d: %s %s, want %s %s", i, got[i].ID, got[i].Phase, want[i].ID, phase)
			}
		}
	}},
	{name: "core/status-nil-lists-ours", shares: true, run: func(e *env) {
		spec, _, _ := e.ready()
		other := e.cfg
		other.Account = "another/account"
		theirs := e.spec(With(func(s *extensions.Spec) { s.Account = other.Account }))
		b := e.openAs(other)
		h, _, err := b.Provision(e.ctx(), theirs)
		e.Cleanup(func() { _, _ = b.Teardown(e.ctx(), h) })
		if err != nil {
			e.Fatalf("provision for another account: %v", err)
		}
		all := e.list(e.b)
		if o, ok := all[spec.ID]; !ok || len(all) != 1 {
			e.Errorf("the list has %d entries, want our one", len(all))
		} else if o.Handle.ID != spec.ID || o.Phase != extensions.PhaseReady {
			e.Errorf("listed with handle %s in phase %s", o.Handle.Encode(), o.Phase)
		}
	}},
	{name: "core/status-empty-is-empty", shares: true, run: func(e *env) {
		e.ready()
		e.settle()
		all, err := e.b.Status(e.ctx(), []extensions.Handle{})
		if err != nil || len(all) != 0 {
			e.Errorf("status of no handles: %d observations, %v", len(all), err)
		}
	}},
	{name: "core/status-start-is-told-truly", shares: true, run: func(e *env) {
		spec, h, _ := e.ready()
		before := spec.CreatedAt
		o := e.observe(h)
		if !o.StartedAt.IsZero() && (o.StartedAt.Before(before.Add(-5*time.Second)) || o.StartedAt.After(time.Now().Add(5*time.Second))) {
			e.Errorf("started at %s, made after %s", o.StartedAt, before)
		}
		if !o.EndedAt.IsZero() {
			e.Errorf("a live sandbox ended at %s", o.EndedAt)
		}
	}},
	{name: "core/status-vanished-is-absent", hook: hookNamed("Vanish", func(h Harness) bool { return h.Vanish != nil }), run: func(e *env) {
		_, h, _ := e.ready()
		e.h.Vanish(e.TB, e.cfg, h)
		e.wantPhase(h, extensions.PhaseAbsent, extensions.PhaseFailed)
	}},
}

// gone returns the handle of a torn-down sandbox: of a new one, or of the group's if the check shares it.
func (e *env) gone() extensions.Handle {
	e.Helper()
	if e.common != nil {
		return e.common.gone(e)
	}
	_, h, _ := e.ready()
	e.teardown(h)
	return h
}

var teardownChecks = []check{
	{name: "core/teardown-removes", shares: true, run: func(e *env) {
		spec, h, _ := e.ready()
		if r := e.teardown(h); r.AlreadyGone {
			e.Error("the report says that a live sandbox was gone already")
		}
		e.wantPhase(h, extensions.PhaseAbsent)
		if _, there := e.list(e.b)[spec.ID]; there {
			e.Error("the list still shows it")
		}
	}},
	{name: "core/teardown-gone-is-success", shares: true, run: func(e *env) {
		h := e.gone()
		r, err := e.b.Teardown(e.ctx(), h)
		if err != nil {
			e.Fatalf("teardown of what is gone: %v", err)
		}
		if !r.AlreadyGone {
			e.Error("the report does not say that it was gone already")
		}
	}},
	{name: "core/teardown-foreign-refused", shares: true, run: func(e *env) {
		_, h, _ := e.ready()
		foreign := h
		foreign.ID = e.newID()
		_, err := e.b.Teardown(e.ctx(), foreign)
		e.wantKind("teardown with a handle that has another id than the object", err, extensions.KindConflict, extensions.KindInvalid)
		e.wantPhase(h, extensions.PhaseReady)
	}},
	{name: "core/teardown-relabelled-refused", shares: true, hook: hookNamed("Relabel", func(h Harness) bool { return h.Relabel != nil }),
		run: func(e *env) {
			_, h, _ := e.ready()
			e.h.Relabel(e.TB, e.cfg, h, e.newID())
			_, err := e.b.Teardown(e.ctx(), h)
			e.wantKind("teardown of an object that carries another id", err, extensions.KindConflict)
			e.h.Relabel(e.TB, e.cfg, h, h.ID)
			e.wantPhase(h, extensions.PhaseReady)
		}},
	{name: "core/teardown-vanished-is-success", hook: hookNamed("Vanish", func(h Harness) bool { return h.Vanish != nil }), run: func(e *env) {
		_, h, _ := e.ready()
		e.h.Vanish(e.TB, e.cfg, h)
		if _, err := e.b.Teardown(e.ctx(), h); err != nil {
			e.Errorf("teardown of what vanished: %v", err)
		}
	}},
	{name: "core/teardown-tells-times", shares: true, run: func(e *env) {
		_, h, _ := e.ready()
		started := e.observe(h).StartedAt
		r := e.teardown(h)
		if !started.IsZero() && !r.StartedAt.Equal(started) {
			e.Errorf("the report says started at %s, status said %s", r.StartedAt, started)
		}
		if !r.EndedAt.IsZero() && r.EndedAt.Before(r.StartedAt) {
			e.Errorf("ended at %s, before the start at %s", r.EndedAt, r.StartedAt)
		}
	}},
	{name: "core/teardown-leaves-nothing", hook: hookNamed("Residue", func(h Harness) bool { return h.Residue != nil }), run: func(e *env) {
		before := e.h.Residue(e.TB, e.cfg)
		var filled []Option // with files, where they can come inside
		if e.desc.Has(extensions.PowerExec) || e.desc.Has(extensions.PowerFiles) {
			filled = append(filled, WithWorkspace(extensions.AccessRW, map[string]string{"a/b": "c"}))
		}
		_, h, _ := e.ready(filled...)
		e.teardown(h)
		if after := e.h.Residue(e.TB, e.cfg); len(after) != len(before) {
			e.Errorf("left behind: %q, before it was %q", after, before)
		}
	}},
}
