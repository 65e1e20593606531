package composessh

import (
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// A stack of several services is paused and resumed as one, its ended job left alone.
func TestAStackIsPausedAsAWhole(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	spec := s.stack(t, driftStack)
	h := s.provision(t, b, spec)
	docker(t, "stop", string(h.ID)+"-job-1")
	o, err := b.Pause(t.Context(), h)
	if err != nil || o.Phase != extensions.PhasePaused {
		t.Fatalf("%s, %s: %v", o.Phase, o.Reason, err)
	}
	states := func() string {
		return docker(t, "ps", "-a", "--filter", "label=sandboxer.id="+string(h.ID), "--format", `{{.Label "com.docker.compose.service"}} {{.State}}`)
	}
	for line := range strings.Lines(states()) {
		if service, state, _ := strings.Cut(strings.TrimSpace(line), " "); state != "paused" && (service != "job" && service != "setup" || state != "exited") {
			t.Errorf("%s is %s", service, state)
		}
	}
	docker(t, "unpause", string(h.ID)+"-worker-1")
	if o := s.observe(t, b, h); o.Phase != extensions.PhasePaused || !strings.Contains(o.Reason, "worker is still running") {
		t.Errorf("with one service running it is %s: %s", o.Phase, o.Reason)
	}
	if o, err := b.Resume(t.Context(), h, spec.Deadline); err != nil || o.Phase != extensions.PhaseReady || o.Reason != "" {
		t.Errorf("resumed it is %s, %s: %v", o.Phase, o.Reason, err)
	}
	if strings.Contains(states(), "paused") {
		t.Errorf("resumed:\n%s", states())
	}
}

// A caller that goes away at any step leaves the script to its end, and the sandbox in one mode.
func TestACallerThatGoesAwayLeavesOneMode(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"step pausing", "step paused", "step resuming", "step resumed"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			spec := s.spec(t)
			h := s.provision(t, s.open(t), spec)
			b := s.open(t)
			change, want := func() error { _, err := b.Pause(t.Context(), h); return err }, extensions.PhasePaused
			if strings.HasPrefix(step, "step resum") {
				must(t, change())
				change, want = func() error { _, err := b.Resume(t.Context(), h, spec.Deadline); return err }, extensions.PhaseReady
			}
			reached := s.dieAt(t, b, step)
			if err := change(); err == nil || !reached() {
				t.Errorf("the client lived: %v", err)
			}
			s.gate.open()
			again := s.open(t)
			if !waitFor(func() bool { return s.observe(t, again, h).Phase == want }) {
				t.Errorf("it is %s", s.observe(t, again, h).Phase)
			}
			if o, err := again.Resume(t.Context(), h, spec.Deadline); err != nil || o.Phase != extensions.PhaseReady {
				t.Errorf("resumed it is %s: %v", o.Phase, err)
			}
		})
	}
}

func TestPausedTimeIsToldAtTheEnd(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	spec := s.spec(t, exttest.WithTTL(time.Hour))
	h := s.provision(t, b, spec)
	o, err := b.Pause(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(1500 * time.Millisecond)
	r, err := b.Teardown(t.Context(), h)
	if err != nil || r.Usage == nil || (r.EndedAt.Sub(o.Since)-r.Usage.Paused).Abs() > 50*time.Millisecond ||
		r.Usage.Running+r.Usage.Paused != r.EndedAt.Sub(r.StartedAt) {
		t.Errorf("paused at %s, the teardown tells %+v of %+v, %v", o.Since, r.Usage, r, err)
	}
}
