package composessh

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// reaper is the process id of the site's loop, 0 where there is none.
func (s *site) reaper(t testing.TB) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.root, "reaper"))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.Fields(string(b))[0])
	must(t, err)
	return pid
}

// waitFor polls until the condition holds, on however busy a machine; false if it never does. What takes long is asked for
// less often, for most conditions start processes.
func waitFor(holds func() bool) bool {
	begin := time.Now()
	for waited := time.Duration(0); waited < 2*time.Minute; waited = time.Since(begin) {
		if holds() {
			return true
		}
		time.Sleep(min(100*time.Millisecond+waited/4, time.Second))
	}
	return holds()
}

// grace is how long after its deadline a stack may still be there on a busy machine.
const grace = time.Minute

func TestAStackEndsInTimeWhenNoneOfUsIsLeft(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	before := s.residue(t)
	spec := s.spec(t, exttest.WithWorkspace(extensions.AccessRW, map[string]string{"a/b": "c"}))
	h := s.provision(t, b, spec)
	s.endSoon(t, b, &spec)
	s.gate.shut() // no client lives, and none can come
	time.Sleep(time.Until(spec.Deadline.Add(-2 * time.Second)))
	if len(s.containers(t)) == 0 && time.Now().Before(spec.Deadline) {
		t.Error("it ended before its time")
	}
	if !waitFor(func() bool { return len(s.containers(t)) == 0 }) {
		t.Errorf("it is still there %s after its deadline", time.Since(spec.Deadline))
	}
	s.settled(t)
	s.gate.open()
	if !waitFor(func() bool { return s.observe(t, b, h).EndedAt != spec.Deadline.UTC() }) {
		t.Error("the end is not recorded")
	}
	o := s.observe(t, b, h)
	if late := o.EndedAt.Sub(spec.Deadline); o.Phase != extensions.PhaseExpired || late < -time.Second || late > grace {
		t.Errorf("it is %s, ended %s after its deadline", o.Phase, late)
	}
	for _, f := range []string{"workspace", "model.json"} {
		if _, err := os.Stat(filepath.Join(s.root, string(h.ID), f)); err == nil {
			t.Errorf("an expired sandbox keeps its %s", f)
		}
	}
	r, err := b.Teardown(t.Context(), h)
	must(t, err)
	if !r.EndedAt.Equal(o.EndedAt) {
		t.Errorf("the report ends it at %s, status said %s", r.EndedAt, o.EndedAt)
	}
	if left := s.left(t, before); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestALoopThatWasKilledStartsAgainAtTheNextLook(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.provision(t, b, s.spec(t))
	waitFor(func() bool { return s.reaper(t) != 0 })
	first := s.reaper(t)
	kill(t, first)
	if !waitFor(func() bool { return !running(first) }) {
		t.Fatal("the loop lives on")
	}
	s.observe(t, b, h)
	if !waitFor(func() bool { p := s.reaper(t); return p != first && running(p) }) {
		t.Errorf("no loop was started: %v", s.server.Processes())
	}
}

func kill(t testing.TB, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	must(t, err)
	must(t, p.Kill())
}

func running(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestOneLoopWatchesAHost(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.provision(t, s.open(t), s.spec(t))
	waitFor(func() bool { return s.reaper(t) != 0 })
	first := s.reaper(t)
	for range 3 {
		cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(s.root, "reaper.sh"))
		cmd.Env = append(os.Environ(), "root="+s.root, "timer=session", "HOME="+s.server.HomeDir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("a second loop: %v: %s", err, out)
		}
	}
	if s.reaper(t) != first || !running(first) {
		t.Errorf("the loop %d gave way to %d", first, s.reaper(t))
	}
}

func TestTheLoopHoldsNothingOpen(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.provision(t, s.open(t), s.spec(t))
	waitFor(func() bool { return s.reaper(t) != 0 })
	fds, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(s.reaper(t)), "fd", "*"))
	must(t, err)
	for _, fd := range fds {
		to, _ := os.Readlink(fd)
		if to != "/dev/null" && !strings.HasSuffix(to, "/reaper.lock") && !strings.HasSuffix(to, "/reaper.sh") {
			t.Errorf("the loop holds %s open", to)
		}
	}
}

func TestAfterARebootTheWallClockDecides(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.provision(t, b, s.spec(t))
	s.edit(t, h.ID, "lease", "remaining", "99999999999") // more than this machine can have been up
	s.edit(t, h.ID, "lease", "boot", "another-boot")
	time.Sleep(6 * time.Second) // one look of the loop, at least
	if o := s.observe(t, b, h); o.Phase != extensions.PhaseReady {
		t.Errorf("in time, and it is %s: %s", o.Phase, o.Reason)
	}
	s.edit(t, h.ID, "lease", "wall", strconv.FormatInt(time.Now().Unix()-1, 10))
	if !waitFor(func() bool { return len(s.containers(t)) == 0 }) {
		t.Error("it outlived its deadline")
	}
	if o := s.observe(t, b, h); o.Phase != extensions.PhaseExpired {
		t.Errorf("it is %s: %s", o.Phase, o.Reason)
	}
}

func TestACreateThatIsNotReadyInItsTimeIsEnded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	spec := s.spec(t, exttest.WithTTL(shortTTL), exttest.With(func(sp *extensions.Spec) {
		sp.Readiness = &extensions.Probe{Command: []string{"false"}, Interval: extensions.Duration(time.Second),
			Timeout: extensions.Duration(10 * time.Minute)}
	}))
	h, _, err := b.Provision(t.Context(), spec)
	s.tearDownAtEnd(t, spec.ID)
	if late := time.Since(spec.Deadline); !extensions.IsKind(err, extensions.KindTimeout) ||
		!strings.Contains(err.Error(), "passed before it was ready") || h.ID != spec.ID || late > grace {
		t.Errorf("%v, %s after its deadline, handle %s", err, late, h.Encode())
	}
	if !waitFor(func() bool { return len(s.containers(t)) == 0 }) {
		t.Error("it is still there")
	}
}
