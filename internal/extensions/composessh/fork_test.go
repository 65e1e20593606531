package composessh

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// Five forks at once have all that their source has, its own network and new secrets, and writes stay apart.
func TestFiveForksAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	before := s.residue(t)
	h := s.provision(t, b, s.stack(t, keptStack, exttest.WithSecret("TOKEN", "canary-of-the-source")))
	in(t, b, h, "web", "echo own >/etc/own; rm /etc/group; echo vol >/data/f; echo anonymous >/nameless/f; echo work >/workspace/f")
	must(t, b.CanFork(t.Context(), h))
	forks := make([]extensions.Handle, 5)
	var wait sync.WaitGroup
	for i := range forks {
		spec := s.stack(t, keptStack, forkOf(h), exttest.WithSecret("TOKEN", fmt.Sprint("secret-", i)))
		s.tearDownAtEnd(t, spec.ID)
		wait.Go(func() {
			f, o, err := b.Provision(t.Context(), spec)
			if err != nil || o.Phase != extensions.PhaseReady {
				t.Errorf("fork %d is %s: %v", i, o.Phase, err)
			}
			forks[i] = f
		})
	}
	wait.Wait()
	if t.Failed() {
		return
	}
	for i, f := range forks {
		want := fmt.Sprintf("own\nvol\nanonymous\nwork\nfront green secret-%d", i)
		if got := in(t, b, f, "web", "cat /etc/own; ls /etc/group 2>/dev/null; cat /data/f /nameless/f /workspace/f; echo $(hostname) $COLOUR $TOKEN"); got != want {
			t.Errorf("fork %d has:\n%s", i, got)
		}
		web := containerOf(t, f.ID, "web")
		if all := docker(t, "inspect", web, docker(t, "inspect", "-f", "{{.Image}}", web)); strings.Contains(all, "canary-of-the-source") {
			t.Error("docker's records of a fork have the source's secret")
		}
		in(t, b, f, "web", fmt.Sprintf("echo fork %d | tee /etc/own /data/f /nameless/f /workspace/f", i))
	}
	for i, f := range forks {
		if got := in(t, b, f, "web", "cat /etc/own /data/f /nameless/f /workspace/f | sort -u"); got != fmt.Sprint("fork ", i) {
			t.Errorf("fork %d reads %q", i, got)
		}
	}
	if got := in(t, b, h, "web", "cat /etc/own /data/f /nameless/f /workspace/f"); got != "own\nvol\nanonymous\nwork" {
		t.Errorf("the source reads %q", got)
	}
	for _, box := range slices.Concat(forks, []extensions.Handle{h}) {
		_, err := b.Teardown(t.Context(), box)
		must(t, err)
	}
	s.settled(t)
	if left := s.left(t, before); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A fork of what is not there is refused, and nothing stays.
func TestAForkOfWhatIsGoneIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	before := s.residue(t)
	id, err := extensions.NewID(nil)
	must(t, err)
	h, _, err := b.Provision(t.Context(), s.spec(t, forkOf(b.handle(id))))
	if !extensions.IsKind(err, extensions.KindNotFound) || !h.IsZero() || !strings.Contains(err.Error(), string(id)) {
		t.Errorf("%v, handle %q", err, h.Encode())
	}
	if left := s.left(t, before); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
