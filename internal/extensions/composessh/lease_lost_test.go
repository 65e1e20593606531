package composessh

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// A lease may be emptied by a loss of power, or removed by somebody: the deadline
// holds all the same, and no sooner is anything of the sandbox touched.
func TestADeadlineHoldsWithoutTheLease(t *testing.T) {
	t.Parallel()
	for what, lose := range map[string]func(path string) error{
		"emptied": func(path string) error { return os.Truncate(path, 0) },
		"removed": os.Remove,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			b := s.open(t)
			spec := s.spec(t)
			h := s.provision(t, b, spec)
			spec.Deadline = time.Now().Add(20 * time.Second)
			must(t, b.Extend(t.Context(), h, spec.Deadline))
			must(t, lose(filepath.Join(s.root, string(spec.ID), "lease")))
			time.Sleep(time.Until(spec.Deadline.Add(-8 * time.Second))) // some looks of the loop
			if o := s.observe(t, b, h); o.Phase != extensions.PhaseReady && time.Now().Before(spec.Deadline) {
				t.Errorf("before its deadline it is %s: %s", o.Phase, o.Reason)
			}
			goneSoon(t, spec.ID)
		})
	}
}

// What counts then is the deadline as it was moved last, sooner too.
func TestAMovedDeadlineHoldsWithoutTheLease(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	spec := s.spec(t, exttest.WithTTL(time.Hour))
	h := s.provision(t, b, spec)
	spec.Deadline = time.Now().Add(20 * time.Second)
	must(t, b.Extend(t.Context(), h, spec.Deadline))
	must(t, os.Remove(filepath.Join(s.root, string(spec.ID), "lease")))
	if o := s.observe(t, b, h); (o.Phase != extensions.PhaseReady || !o.Deadline.Equal(spec.Deadline)) && time.Now().Before(spec.Deadline) {
		t.Errorf("it is %s until %s, want %s: %s", o.Phase, o.Deadline, spec.Deadline, o.Reason)
	}
	goneSoon(t, spec.ID)
}

// Where nothing on the host tells the end any more, what runs is ended before its
// folder goes.
func TestWhatHasLostItsRecordsIsEnded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	spec := s.spec(t)
	s.provision(t, b, spec)
	for _, name := range []string{"lease", "manifest"} {
		must(t, os.Remove(filepath.Join(s.root, string(spec.ID), name)))
	}
	if !waitFor(func() bool {
		_, err := os.Stat(filepath.Join(s.root, string(spec.ID)))
		return os.IsNotExist(err)
	}) {
		t.Fatal("its folder is still there")
	}
	if left := docker(t, "ps", "-aq", "--filter", "label=sandboxer.id="+string(spec.ID)); left != "" {
		t.Errorf("its folder is gone, and containers are left: %s", left)
	}
}

// So it is where the whole folder goes, or all folders with what ends sandboxes.
func TestWhatHasLostItsFolderIsEnded(t *testing.T) {
	t.Parallel()
	for what, of := range map[string]func(s *site, spec extensions.Spec) string{
		"its folder":  func(s *site, spec extensions.Spec) string { return filepath.Join(s.root, string(spec.ID)) },
		"all folders": func(s *site, _ extensions.Spec) string { return s.root },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			b := s.open(t)
			spec := s.spec(t)
			h := s.provision(t, b, spec)
			time.Sleep(6 * time.Second) // a look of the loop
			must(t, os.RemoveAll(of(s, spec)))
			if o := s.observe(t, b, h); o.Phase == extensions.PhaseAbsent {
				t.Errorf("while it runs it is %s: %s", o.Phase, o.Reason)
			}
			if !waitFor(func() bool { return gone(t, spec.ID) }) {
				t.Error("it runs on")
			}
			if _, err := b.Teardown(t.Context(), h); err != nil {
				t.Errorf("teardown: %v", err)
			}
		})
	}
}

// endLoop ends the site's loop.
func (s *site) endLoop(t testing.TB) {
	t.Helper()
	waitFor(func() bool { return s.reaper(t) != 0 })
	loop := s.reaper(t)
	kill(t, loop)
	if !waitFor(func() bool { return !running(loop) }) {
		t.Fatal("the loop lives on")
	}
}

// A loop that was not there to see it finds it at its start.
func TestWhatLostItsFolderWhileNoLoopRanIsEnded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	spec := s.spec(t)
	s.provision(t, b, spec)
	s.endLoop(t)
	must(t, os.RemoveAll(filepath.Join(s.root, string(spec.ID))))
	s.provision(t, b, s.spec(t))
	if !waitFor(func() bool { return gone(t, spec.ID) }) {
		t.Error("it runs on")
	}
	if !waitFor(func() bool {
		_, err := os.Stat(filepath.Join(s.root, string(spec.ID)))
		return os.IsNotExist(err)
	}) {
		t.Error("its folder is there again")
	}
}
