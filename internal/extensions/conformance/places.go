package conformance

import (
	"os"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var placeChecks = []check{
	{name: "places/runs-at-each", run: func(e *env) {
		here, ok := e.desc.PlaceOf(e.cfg.Host)
		if !ok {
			e.Fatalf("the harness's place is none of the declared %v", e.desc.Places)
		}
		for _, p := range e.desc.Places {
			if p != here {
				e.at(p).runsHere()
			}
		}
	}},
	{name: "places/refuses-others", run: func(e *env) {
		if e.desc.RunsAt(extensions.PlaceAccount) {
			return // an account is never given a host
		}
		for what, host := range map[string]*extensions.Host{
			"no host":                   nil,
			"this machine":              {Name: "here", Local: true},
			"another machine, over SSH": {Name: "there", SSH: &extensions.SSH{Address: "192.0.2.1", User: "nobody"}},
		} {
			if _, runs := e.desc.PlaceOf(host); runs {
				continue
			}
			cfg := e.cfg
			cfg.Host = host
			b, err := e.ext.Open(e.ctx(), cfg)
			if err == nil {
				_ = b.Close()
			}
			e.wantKind("open at "+what+", which is not declared", err, extensions.KindInvalid, extensions.KindUnsupported)
		}
	}},
}

// at returns e at another kind of place.
func (e *env) at(p extensions.Place) *env {
	e.Helper()
	if e.h.At == nil {
		e.skipWithout("At")
	}
	there := *e
	there.cfg = e.h.At(e.TB, p)
	if got, ok := e.desc.PlaceOf(there.cfg.Host); !ok || got != p {
		e.Fatalf("the harness's At gives %s for %s", got, p)
	}
	there.open()
	return &there
}

// runsHere proves that a sandbox lives and ends at the place.
func (e *env) runsHere() {
	e.Helper()
	spec, h, _ := e.ready()
	e.wantPhase(h, extensions.PhaseReady)
	e.settle()
	if found, err := e.b.Find(e.ctx(), spec.ID); err != nil || found.Encode() != h.Encode() {
		e.Errorf("found %s, %v; want %s", found.Encode(), err, h.Encode())
	}
	e.teardown(h)
	e.wantPhase(h, extensions.PhaseAbsent, extensions.PhaseExpired)
}

// skipWithout ends the check for lack of a hook, which is a failure where skips are.
func (e *env) skipWithout(hook string) {
	e.Helper()
	if os.Getenv(NoSkipEnv) == "1" {
		e.Fatalf("the harness has no %s, and skips are failures here", hook)
	}
	e.Skipf("nothing here can bring it about: the harness has no %s", hook)
}
