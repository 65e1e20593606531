package docker

import (
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

func reaped(after time.Duration) exttest.Option {
	return exttest.With(func(s *extensions.Spec) { s.IdleReap = extensions.Duration(after) })
}

// A copy by the engine itself runs nothing inside, and uses the sandbox all the same.
func TestACopyByTheEngineIsAUse(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h, _ := s.provision(t, b, reaped(time.Hour))
	idle := func(want bool) {
		t.Helper()
		for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
			o, err := b.Status(t.Context(), []extensions.Handle{h})
			must(t, err)
			if o[0].IdleSince.IsZero() != want {
				return
			}
			if time.Since(began) > 2*time.Minute {
				t.Fatalf("idle since %s, and want idle: %t", o[0].IdleSince, want)
			}
		}
	}
	idle(true)
	c, err := b.enter(t.Context(), h, "")
	must(t, err)
	done := b.using(t.Context(), c)
	idle(false)
	done()
	idle(true)
}

// Only the agent's loop looks, and it sees nothing of the services.
func TestAnIdleEndOfSeveralContainersIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	image := extensions.Image{Pull: hosttest.Image(t)}
	_, _, err := s.open(t).Provision(t.Context(), exttest.Spec(t, s.config, reaped(time.Hour), exttest.With(func(s *extensions.Spec) {
		s.Containers = &extensions.Containers{Agent: extensions.Container{Image: image},
			Services: map[string]extensions.Container{"web": {Image: image}}}
	})))
	if !extensions.IsKind(err, extensions.KindUnsupported) || extensions.RemedyOf(err) == "" {
		t.Errorf("got %v", err)
	}
}

// A program may end with the code that our loop has for an idle sandbox.
func TestAnEntrypointWithTheLoopsExitCodeWasNotIdle(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h, spec := s.provision(t, b, exttest.WithEntrypoint(extensions.Entrypoint{Mode: extensions.EntrypointArgv, Argv: []string{"sh", "-c", "sleep 2; exit 120"}}),
		exttest.With(func(s *extensions.Spec) { s.IdleReap = extensions.Duration(time.Minute) }))
	_, err := b.WaitReady(t.Context(), spec, h)
	must(t, err)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		list, err := b.Status(t.Context(), []extensions.Handle{h})
		must(t, err)
		if o := list[0]; o.Phase != extensions.PhaseReady || time.Now().After(end) {
			if o.Phase != extensions.PhaseFailed || o.Idle || !strings.Contains(o.Reason, "its entrypoint ended with exit code 120") {
				t.Errorf("%+v", o)
			}
			return
		}
	}
}
