package docker

import (
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// states are those of the containers of a sandbox, agent first.
func (s *site) states(t *testing.T, b *Backend, id extensions.ID) (agent, service container.ContainerState) {
	t.Helper()
	found, err := b.look(t.Context(), id)
	must(t, err)
	web, _ := found.service("web")
	return found.agent().State, web.State
}

// wholly demands that a sandbox of two containers is in one mode, and says so.
func (s *site) wholly(t *testing.T, b *Backend, h extensions.Handle, at string, o extensions.Observation, err error, want extensions.Phase) {
	t.Helper()
	state := map[extensions.Phase]container.ContainerState{extensions.PhasePaused: container.StatePaused,
		extensions.PhaseReady: container.StateRunning}[want]
	if agent, service := s.states(t, b, h.ID); err != nil || o.Phase != want || o.Reason != "" || agent != state || service != state {
		t.Errorf("%s: %s (%s), with its agent %s and its service %s: %v", at, o.Phase, o.Reason, agent, service, err)
	}
}

// A pause or a resume that is killed on its way shows paused, and says what is not. Either way out is then whole.
func TestAPauseKilledAtAnyStepIsFinishedOrUndone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	killed := 0
	for _, to := range []extensions.Phase{extensions.PhasePaused, extensions.PhaseReady} {
		for _, then := range []extensions.Phase{extensions.PhasePaused, extensions.PhaseReady} {
			b := s.open(t)
			spec := s.whole(t)
			h, _, err := b.Provision(t.Context(), spec)
			must(t, err)
			set := func(b *Backend, to extensions.Phase) (extensions.Observation, error) {
				if to == extensions.PhasePaused {
					return b.Pause(t.Context(), h)
				}
				return b.Resume(t.Context(), h, spec.Deadline)
			}
			before := extensions.PhaseReady
			if to == extensions.PhaseReady {
				before = extensions.PhasePaused
			}
			for step := 1; ; step++ {
				o, err := set(b, before)
				s.wholly(t, b, h, "before", o, err, before)
				if dieAt(b, step, func() { _, _ = set(b, to) }) == "" {
					break
				}
				killed++
				other := s.open(t)
				o, err = other.observed(t.Context(), h)
				must(t, err)
				if agent, service := s.states(t, b, h.ID); agent != service &&
					(o.Phase != extensions.PhasePaused || !strings.Contains(o.Reason, "still runs")) {
					t.Errorf("to %s, step %d: %s (%s), with its agent %s and its service %s", to, step, o.Phase, o.Reason, agent, service)
				}
				o, err = set(other, then)
				s.wholly(t, other, h, string(to)+" and then "+string(then), o, err, then)
			}
			_, err = b.Teardown(t.Context(), h)
			must(t, err)
		}
	}
	if killed < 8 {
		t.Errorf("it was killed %d times", killed)
	}
}

func TestAPauseThatFailsOnTheWayLeavesEverythingRunning(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h, _ := s.provision(t, b, exttest.With(func(spec *extensions.Spec) { spec.Containers, spec.Image = s.whole(t).Containers, nil }))
	found, err := b.look(t.Context(), h.ID)
	must(t, err)
	last := found.containers[len(found.containers)-1]
	s.gate.answerInstead("/containers/"+last.ID+"/pause", serverError("no"))
	if _, err := b.Pause(t.Context(), h); err == nil {
		t.Fatal("it was paused")
	}
	o, err := b.observed(t.Context(), h)
	s.wholly(t, b, h, "after it", o, err, extensions.PhaseReady)
	o, err = b.Pause(t.Context(), h)
	s.wholly(t, b, h, "once more", o, err, extensions.PhasePaused)
}
