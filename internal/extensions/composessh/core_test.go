package composessh

import (
	"testing"
	"time"
)

func TestASandboxLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	before := s.residue(t)
	var begin time.Time
	b.onStep = func(line string) { t.Log(time.Since(begin).Round(time.Millisecond), line) }
	spec := s.spec(t)
	for range 2 {
		begin = time.Now()
		h := s.provision(t, b, spec)
		t.Log(time.Since(begin).Round(time.Millisecond), "ready")
		begin = time.Now()
		r, err := b.Teardown(t.Context(), h)
		must(t, err)
		t.Log(time.Since(begin).Round(time.Millisecond), "gone", r.Removed)
		if after := s.left(t, before); len(after) > 0 {
			t.Errorf("left behind: %q", after)
		}
	}
}
