package composessh

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

var snapshotSteps = []string{"step begun", "step holding", "step held", "step copied", "step exported", "step staged", "step kept"}

// killScripts kills all scripts of the site but the loop. What they started lives on.
func (s *site) killScripts() {
	for _, p := range s.server.Processes() {
		if strings.Contains(p.Command, "read -r n m") {
			if found, err := os.FindProcess(p.Pid); err == nil {
				_ = found.Kill() // one may have ended meanwhile
			}
		}
	}
}

func TestASnapshotThatIsKilledAtAnyStepIsFollowedByTheNext(t *testing.T) {
	t.Parallel()
	for _, step := range snapshotSteps {
		t.Run(strings.ReplaceAll(step, " ", "-"), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			b := s.open(t)
			h := s.provision(t, b, s.spec(t))
			in(t, b, h, "", "echo kept >f; echo own >/etc/own")
			spec := extensions.SnapshotSpec{ID: newSnapshotID(t), Kind: extensions.SnapshotFilesystem}
			s.deleteAtEnd(t, spec.ID)
			reached := at(t, b, step, s.killScripts)
			if _, err := b.Snapshot(t.Context(), h, spec); err == nil || !reached() {
				t.Fatalf("a killed script, reached %t: %v", reached(), err)
			}
			b = s.open(t)
			// Nobody has to come by: the host's loop lets go of the sandbox and sweeps.
			if !waitFor(func() bool {
				return s.observe(t, b, h).Phase == extensions.PhaseReady && !strings.Contains(docker(t, "ps", "-a", "--filter", "label=sandboxer.id="+string(h.ID)), "Paused")
			}) {
				o := s.observe(t, b, h)
				t.Errorf("it is %s: %s", o.Phase, o.Reason)
			}
			k, err := b.Snapshot(t.Context(), h, spec)
			must(t, err)
			r := s.provision(t, b, s.spec(t, from(k)))
			if got := in(t, b, r, "", "cat f /etc/own"); got != "kept\nown" {
				t.Errorf("restored: %q", got)
			}
			must(t, b.DeleteSnapshot(t.Context(), k.Handle))
			for _, box := range []extensions.Handle{r, h} {
				_, err := b.Teardown(t.Context(), box)
				must(t, err)
			}
			s.settled(t)
			if left, err := os.ReadDir(s.root); err == nil {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestARestoreThatIsKilledAtAnyStepIsFollowedByTheNext(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.provision(t, b, s.spec(t))
	in(t, b, h, "", "echo kept >f; echo own >/etc/own")
	k := s.keep(t, b, h, extensions.SnapshotFilesystem)
	before := s.residue(t)
	for _, origin := range []string{"snapshot", "fork"} {
		steps := []string{"step found", "step imaged", "step refilled", "step up"}
		if origin == "fork" {
			steps = append([]string{"step held", "step exported"}, steps...)
		}
		for _, step := range steps {
			spec := s.spec(t, from(k))
			if origin == "fork" {
				spec = s.spec(t, forkOf(h))
			}
			one := s.open(t)
			reached := at(t, one, step, s.killScripts)
			_, _, err := one.Provision(t.Context(), spec)
			s.tearDownAtEnd(t, spec.ID)
			if err == nil || !reached() {
				t.Fatalf("%s, %s: a killed script, reached %t: %v", origin, step, reached(), err)
			}
			next := s.open(t)
			r, o, err := next.Provision(t.Context(), spec)
			must(t, err)
			if got := in(t, next, r, "", "cat f /etc/own"); got != "kept\nown" || o.Phase != extensions.PhaseReady {
				t.Errorf("%s, %s: restored: %q", origin, step, got)
			}
			_, err = next.Teardown(t.Context(), r)
			must(t, err)
			if o := s.observe(t, next, h); o.Phase != extensions.PhaseReady {
				t.Errorf("%s, %s: its source is %s: %s", origin, step, o.Phase, o.Reason)
			}
		}
	}
	s.settled(t)
	if left := s.left(t, before); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// Whoever asks after the caller has gone finds a whole snapshot or none.
func TestACallerThatGoesAwayLeavesAWholeSnapshot(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"step begun", "step held", "step copied"} {
		t.Run(strings.ReplaceAll(step, " ", "-"), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			b := s.open(t)
			h := s.provision(t, b, s.spec(t))
			id := newSnapshotID(t)
			s.deleteAtEnd(t, id)
			reached := s.dieAt(t, b, step)
			if _, err := b.Snapshot(t.Context(), h, extensions.SnapshotSpec{ID: id}); err == nil || !reached() {
				t.Fatalf("the client lived: %v", err)
			}
			s.gate.open()
			next := s.open(t)
			k, err := next.FindSnapshot(t.Context(), id) // waits for the script
			must(t, err)
			r := s.provision(t, next, s.spec(t, from(k)))
			if o := s.observe(t, next, r); o.Phase != extensions.PhaseReady {
				t.Errorf("restored it is %s", o.Phase)
			}
			if o := s.observe(t, next, h); o.Phase != extensions.PhaseReady {
				t.Errorf("its source is %s: %s", o.Phase, o.Reason)
			}
		})
	}
}

// A teardown ends a snapshot under way, which leaves no half.
func TestATeardownEndsASnapshotUnderWay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b, other := s.open(t), s.open(t)
	h := s.provision(t, b, s.spec(t))
	ended := at(t, b, "step held", func() {
		if _, err := other.Teardown(t.Context(), h); err != nil {
			t.Error(err)
		}
	})
	if _, err := b.Snapshot(t.Context(), h, extensions.SnapshotSpec{ID: newSnapshotID(t)}); err == nil || !ended() {
		t.Errorf("its sandbox was torn down %t: %v", ended(), err)
	}
	s.settled(t)
	if left, err := os.ReadDir(s.root); err == nil {
		t.Errorf("left behind: %v", left)
	}
}

func TestAFullDiskLeavesNoHalfOfASnapshot(t *testing.T) {
	t.Parallel()
	s := newSite(t, hosttest.WithDisk(8))
	b := s.open(t)
	h := s.provision(t, b, s.spec(t, exttest.WithWorkspace(extensions.AccessRW, map[string]string{"big": strings.Repeat("x", 300<<10)})))
	before := s.residue(t)
	filler := filepath.Join(s.server.HomeDir, "filler")
	for _, free := range []int64{0, 8 << 10, 100 << 10} {
		fill(t, filler, free)
		id := newSnapshotID(t)
		_, err := b.Snapshot(t.Context(), h, extensions.SnapshotSpec{ID: id})
		if !extensions.IsKind(err, extensions.KindExhausted) {
			t.Errorf("with %d bytes free: %v", free, err)
		}
		if _, err := b.FindSnapshot(t.Context(), id); !extensions.IsKind(err, extensions.KindNotFound) {
			t.Errorf("with %d bytes free, it is there: %v", free, err)
		}
		must(t, os.Remove(filler))
		if o := s.observe(t, b, h); o.Phase != extensions.PhaseReady || o.Reason != "" {
			t.Errorf("with %d bytes free, it is %s: %s", free, o.Phase, o.Reason)
		}
		if left := s.left(t, before); len(left) > 0 {
			t.Errorf("with %d bytes free, left behind: %q", free, left)
		}
	}
}
