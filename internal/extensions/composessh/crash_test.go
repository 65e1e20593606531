package composessh

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// settled waits until no operation runs at the site any more.
func (s *site) settled(t testing.TB) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		working := slices.ContainsFunc(s.server.Processes(), func(p hosttest.Process) bool {
			return !strings.Contains(p.Command, "reaper.sh") && !strings.HasPrefix(p.Command, "sleep")
		})
		if !working {
			return
		}
	}
	t.Errorf("operations do not end: %v", s.server.Processes())
}

var createSteps = []string{"step locked", "step filled", "commit", "step recorded", "step allocated", "step starting", "step secrets",
	"step up", "step ready"}

func TestAClientThatDiesAtAnyStepOfCreateLeavesNoOrphanAndNoDuplicate(t *testing.T) {
	t.Parallel()
	for _, step := range createSteps {
		for _, next := range []string{"again", "teardown"} {
			t.Run(strings.ReplaceAll(step, " ", "-")+"/"+next, func(t *testing.T) {
				t.Parallel()
				s := newSite(t)
				before := s.residue(t)
				b, spec := s.open(t), s.joined(t, asFile("TOKEN", "canary"))
				reached := s.dieAt(t, b, step)
				_, _, err := b.Provision(t.Context(), spec)
				s.tearDownAtEnd(t, spec.ID)
				if err == nil || !reached() {
					t.Fatalf("the client lived: %v", err)
				}
				s.gate.open()
				if step == "step locked" || step == "step filled" || step == "commit" {
					s.settled(t)
					if left := s.left(t, before); len(left) > 0 {
						t.Errorf("the client died before it said go, and there is %q", left)
					}
				}
				other := s.open(t)
				if next == "again" {
					h, o, err := other.Provision(t.Context(), spec)
					must(t, err)
					if o.Phase != extensions.PhaseReady || h.ID != spec.ID {
						t.Errorf("the second try is %s: %s", o.Phase, o.Reason)
					}
					if n := len(s.containers(t)); n != 1 {
						t.Errorf("%d containers, want one", n)
					}
				}
				_, err = other.Teardown(t.Context(), other.handle(spec.ID))
				must(t, err)
				s.settled(t)
				if left := s.left(t, before); len(left) > 0 {
					t.Errorf("left behind: %q", left)
				}
			})
		}
	}
}

func TestAScriptThatIsKilledAtAnyStepIsFollowedByTheNext(t *testing.T) {
	t.Parallel()
	for _, step := range createSteps {
		t.Run(strings.ReplaceAll(step, " ", "-"), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			before := s.residue(t)
			b, spec := s.open(t), s.joined(t, asFile("TOKEN", "canary"))
			reached := at(t, b, step, func() {
				if err := killHolder(filepath.Join(s.root, string(spec.ID))); err != nil {
					t.Error(err)
				}
			})
			h, _, err := b.Provision(t.Context(), spec)
			s.tearDownAtEnd(t, spec.ID)
			if err == nil || !reached() || h.ID != spec.ID {
				t.Fatalf("a killed script: %v, handle %q", err, h.Encode())
			}
			_, o, err := b.Provision(t.Context(), spec)
			must(t, err)
			if n := len(s.containers(t)); o.Phase != extensions.PhaseReady || n != 1 {
				t.Errorf("the second try is %s with %d containers: %s", o.Phase, n, o.Reason)
			}
			_, err = b.Teardown(t.Context(), h)
			must(t, err)
			s.settled(t)
			if left := s.left(t, before); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

func TestAClientThatDiesAtAnyStepOfTeardownCanBeFollowed(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"step locked", "step removed-containers", "step removed-networks", "step released-images"} {
		t.Run(strings.ReplaceAll(step, " ", "-"), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			before := s.residue(t)
			b, spec := s.open(t), s.joined(t)
			h := s.provision(t, b, spec)
			reached := s.dieAt(t, b, step)
			if _, err := b.Teardown(t.Context(), h); err == nil || !reached() {
				t.Fatalf("the client lived: %v", err)
			}
			s.gate.open()
			other := s.open(t)
			_, err := other.Teardown(t.Context(), other.handle(spec.ID))
			must(t, err)
			if o := s.observe(t, other, h); o.Phase != extensions.PhaseAbsent {
				t.Errorf("it is %s: %s", o.Phase, o.Reason)
			}
			s.settled(t)
			if left := s.left(t, before); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// killHolder kills the script that holds the lock of a sandbox's folder.
func killHolder(box string) error {
	holder, err := os.ReadFile(filepath.Join(box, "holder"))
	if err != nil {
		return err
	}
	word, _, _ := strings.Cut(string(holder), " ")
	pid, err := strconv.Atoi(word)
	if err != nil {
		return err
	}
	script, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return script.Kill()
}
