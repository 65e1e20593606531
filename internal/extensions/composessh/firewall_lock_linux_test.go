package composessh

import (
	"slices"
	"testing"
)

// A look puts rules back only while nobody works on the sandbox, or else it would
// write over what that one does.
func TestRulesComeBackUnderTheSandboxsLock(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b, _, h := s.guarded(t)
	s.pauseLoop(t)
	unlock := s.lockBox(t, h.ID)
	before := loseRules(t, h.ID)
	lost := len(rulesOf(t, h.ID))
	manifest := s.manifest(t, h.ID)
	s.observe(t, b, h)
	if n := len(rulesOf(t, h.ID)); n != lost || s.manifest(t, h.ID) != manifest {
		t.Errorf("%d rules, %d before: a look changed a sandbox that is being worked on", n, lost)
	}
	unlock()
	s.observe(t, b, h)
	after := rulesOf(t, h.ID)
	slices.Sort(after)
	if !slices.Equal(before, after) {
		t.Errorf("rules: %q, before they were %q", after, before)
	}
}
