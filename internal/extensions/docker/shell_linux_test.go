package docker

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// bare is an image that has one program and nothing else.
func bare(t *testing.T, changes ...string) string {
	t.Helper()
	name := fmt.Sprintf("sandboxer-test-bare-%d:latest", siteNo.Add(1))
	args := []string{"import"}
	for _, c := range changes {
		args = append(args, "--change", c)
	}
	load := exec.Command("docker", append(args, "-", name)...)
	load.Stdin = bytes.NewReader(built(t, "still"))
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("docker import: %v: %s", err, out)
	}
	t.Cleanup(func() { docker(t, "image", "rm", name) })
	return name
}

func TestAServiceNeedsNoShell(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	image := bare(t, "USER 1000", `ENTRYPOINT ["/still"]`)
	spec := func(ttl time.Duration) extensions.Spec {
		return exttest.Spec(t, s.config, exttest.With(func(s *extensions.Spec) {
			s.Deadline = time.Now().Add(ttl)
			s.Containers = &extensions.Containers{Agent: extensions.Container{Image: extensions.Image{Pull: hosttest.Image(t)}},
				Services: map[string]extensions.Container{"still": {Image: extensions.Image{Pull: image}, Command: []string{"7321"}}}}
		}))
	}
	source := s.become(t, b, spec(time.Hour))
	const ask = "nc -w 2 still 7321 </dev/null"
	if got := inside(t, b, source, "", ask); got != "still here" {
		t.Errorf("it says %q", got)
	}
	if r, err := b.Exec(t.Context(), source, extensions.ExecRequest{Command: []string{"/still"}, Service: "still"}); err == nil && r.ExitCode == 0 {
		t.Errorf("a command in it: %+v", r)
	}
	if got := inside(t, b, s.become(t, b, forkOf(spec(time.Hour), source)), "", ask); got != "still here" {
		t.Errorf("in a fork it says %q", got)
	}
	short := s.become(t, b, spec(time.Hour))
	must(t, b.Extend(t.Context(), short, time.Now().Add(2*time.Second)))
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		found, err := b.look(t.Context(), short.ID)
		must(t, err)
		c, _ := found.service("still")
		if c.State == container.StateExited {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("after the deadline it is %s", c.State)
		}
	}
	if o, err := b.Status(context.Background(), []extensions.Handle{short}); err != nil || o[0].Phase != extensions.PhaseExpired {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestAServiceWithoutAShellIsNotRoot(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	image := bare(t, `ENTRYPOINT ["/still"]`)
	b := s.open(t)
	h := s.become(t, b, exttest.Spec(t, s.config, exttest.With(func(s *extensions.Spec) {
		s.Containers = &extensions.Containers{Agent: extensions.Container{Image: extensions.Image{Pull: hosttest.Image(t)}},
			Services: map[string]extensions.Container{"still": {Image: extensions.Image{Pull: image}, Command: []string{"7321"}}}}
	})))
	found, err := b.look(t.Context(), h.ID)
	must(t, err)
	still, _ := found.service("still")
	if got := docker(t, "inspect", "--format", "{{.Config.User}}", still.ID); got != defaultUser {
		t.Errorf("it runs as %q", got)
	}
}
