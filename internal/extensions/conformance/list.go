package conformance

import "github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"

func hookPages(h Harness) (string, bool) { return "Pages", h.Pages != nil }

var listChecks = []check{
	{name: "list/has-every-page", hook: hookPages, run: func(e *env) {
		made := e.pageful()
		all := e.list(e.openAs(e.cfg))
		for i, h := range made {
			if o, listed := all[h.ID]; !listed || o.Phase != extensions.PhaseReady || o.Handle.Encode() != h.Encode() {
				e.Errorf("sandbox %d of %d is listed: %t, as %s %s", i+1, len(made), listed, o.Phase, o.Handle.Encode())
			}
		}
		if len(all) != len(made) {
			e.Errorf("%d sandboxes are listed, want %d", len(all), len(made))
		}
		for i, h := range made {
			if found, err := e.b.Find(e.ctx(), h.ID); e.desc.Find.Strength != extensions.FindNone && (err != nil || found.Encode() != h.Encode()) {
				e.Errorf("sandbox %d of %d is found as %s, %v", i+1, len(made), found.Encode(), err)
			}
		}
	}},
	{name: "list/a-broken-one-is-an-error",
		hook: hookNamed("Pages and BreakPages", func(h Harness) bool { return h.Pages != nil && h.BreakPages != nil }), run: func(e *env) {
			made := e.pageful()
			for how, breaks := range e.h.BreakPages {
				breaks(e.TB, e.cfg)
				all, err := e.b.Status(e.ctx(), nil)
				if err == nil {
					e.Errorf("%s: %d of %d sandboxes are listed as if they were all", how, len(all), len(made))
					continue
				}
				e.wantKind(how, err, extensions.KindUnavailable, extensions.KindIndeterminate)
			}
		}},
	{name: "list/as-fresh-as-declared", run: func(e *env) {
		spec, h, _ := e.ready()
		listed := func() bool {
			all, err := e.b.Status(e.ctx(), nil)
			if err != nil {
				e.Fatalf("status of everything: %v", err)
			}
			for _, o := range all {
				if o.ID == spec.ID {
					return true
				}
			}
			return false
		}
		e.settleList()
		if !listed() {
			e.Errorf("a new sandbox is not listed after %s", e.desc.List.Lag)
		}
		e.teardown(h)
		e.settleList()
		if listed() {
			e.Errorf("a sandbox that was torn down is still listed after %s", e.desc.List.Lag)
		}
	}},
}

// pageful makes the sandboxes that need a second page.
func (e *env) pageful() (made []extensions.Handle) {
	e.Helper()
	for range e.h.Pages(e.TB, e.cfg) {
		_, h, _ := e.ready()
		made = append(made, h)
	}
	e.settleList()
	e.settle()
	return made
}
