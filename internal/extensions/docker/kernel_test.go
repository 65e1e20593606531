package docker

import (
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

func serverError(message string) string {
	return "500 Internal Server Error\n{\"message\":\"" + message + "\"}"
}

// A busy kernel does not always freeze a container in the time that runc gives it.
func TestAFreezeThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h, _ := s.provision(t, b)
	busy := serverError("Cannot pause container: OCI runtime pause failed: unable to freeze: unknown")
	s.gate.answerInstead("/pause", busy, busy)
	if o, err := b.Pause(t.Context(), h); err != nil || o.Phase != extensions.PhasePaused {
		t.Errorf("%s: %v", o.Phase, err)
	}
	other, _ := s.provision(t, b)
	s.gate.answerInstead("/pause", busy, busy, busy, busy, busy)
	if _, err := b.Pause(t.Context(), other); err == nil || !strings.Contains(err.Error(), "unable to freeze") {
		t.Errorf("a kernel that never freezes: %v", err)
	}
}

// An engine may count a container that is gone, until it is restarted, and calls that forbidden.
func TestANetworkThatTheEngineCountsAsUsedIsNoLackOfRights(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h, _ := s.provision(t, b, exttest.With(func(s *extensions.Spec) { s.Network = extensions.Network{Default: "allow"} }))
	s.gate.answerInstead("/networks/", "403 Forbidden\n{\"message\":\"error while removing network: it has active endpoints\"}")
	_, err := b.Teardown(t.Context(), h)
	if !extensions.IsKind(err, extensions.KindUnavailable) || !strings.Contains(extensions.RemedyOf(err), "restart the engine") {
		t.Errorf("%v; remedy %q", err, extensions.RemedyOf(err))
	}
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
}

func TestAKernelWithoutMacvlanIsSaid(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.gate.answerInstead("/start", serverError("failed to create the macvlan port: operation not supported"))
	_, _, err := s.open(t).Provision(t.Context(), onImage(t, exttest.Spec(t, s.config)))
	if !extensions.IsKind(err, extensions.KindUnsupported) || !strings.Contains(extensions.RemedyOf(err), "modprobe macvlan") {
		t.Errorf("%v; remedy %q", err, extensions.RemedyOf(err))
	}
}
