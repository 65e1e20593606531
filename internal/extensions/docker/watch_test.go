package docker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// A shell keeps imported variables exported, so our loop's own must have names that nobody else uses.
func TestProgramsHaveVariablesOfAnyName(t *testing.T) {
	t.Parallel()
	vars := map[string]string{}
	for _, name := range strings.Fields("until limit every left app content now since told n i line") {
		vars[name] = "of-the-profile-" + name
	}
	secrets := []exttest.Option{exttest.WithSecretsAs(extensions.SecretsEnv)}
	secret := maps.Clone(vars)
	for _, name := range []string{"dir", "path", "epoch", "mark"} {
		secret[name] = "of-a-secret-" + name
		secrets = append(secrets, exttest.WithSecret(name, secret[name]))
	}
	s := newSite(t)
	b := s.open(t)
	program := extensions.Container{Image: extensions.Image{Pull: hosttest.Image(t)}, Environment: vars,
		Command: []string{"sh", "-c", "env >/tmp/made; mv /tmp/made /tmp/env; exec sleep 3600"}}
	has := func(h extensions.Handle, service string, want map[string]string) {
		t.Helper()
		got := strings.Split(inside(t, b, h, service, "until [ -e /tmp/env ]; do sleep 0.1; done; cat /tmp/env"), "\n")
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if !slices.Contains(got, name+"="+want[name]) {
				t.Errorf("the program of %q lacks %s=%s", service, name, want[name])
			}
		}
	}
	h := s.become(t, b, exttest.Spec(t, s.config, append(secrets, exttest.With(func(s *extensions.Spec) {
		s.Containers = &extensions.Containers{Agent: program, Services: map[string]extensions.Container{"db": program}}
	}))...))
	has(h, "", secret)
	has(h, "db", vars)
	alone := s.become(t, b, exttest.Spec(t, s.config, append(secrets, reaped(time.Hour), exttest.With(func(s *extensions.Spec) {
		s.Containers = &extensions.Containers{Agent: program}
	}))...))
	has(alone, "", secret)
}

// imaged is the test's image after a script of root's.
func imaged(t testing.TB, script string) string {
	t.Helper()
	name := fmt.Sprintf("sandboxer-test-lease-%d:latest", siteNo.Add(1))
	from := docker(t, "create", "--network", "none", "--user", "root", hosttest.Image(t), "sh", "-c", script)
	t.Cleanup(func() { docker(t, "image", "rm", name) })
	docker(t, "start", "--attach", from)
	docker(t, "commit", "--change", `CMD ["sh"]`, "--change", "USER sandbox", from, name)
	docker(t, "rm", from)
	return name
}

// twins is a spec of an agent with a service of the same image.
func (s *site) twins(t testing.TB, image string, ttl time.Duration) extensions.Spec {
	t.Helper()
	return exttest.Spec(t, s.config, exttest.With(func(s *extensions.Spec) {
		s.Deadline = time.Now().Add(ttl)
		c := extensions.Container{Image: extensions.Image{Pull: image}, Command: []string{"sleep", "3600"}}
		s.Containers = &extensions.Containers{Agent: c, Services: map[string]extensions.Container{"db": c}}
	}))
}

func TestAnImageSetsNoDeadline(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	lease := " && echo 99999999999 >/.sandboxer/lease && chmod 666 /.sandboxer/lease"
	image := imaged(t, "mkdir -m 777 /.sandboxer && chown sandbox /.sandboxer"+lease)
	h := s.become(t, b, s.twins(t, image, 40*time.Second))
	for _, service := range []string{"", "db"} {
		inside(t, b, h, service, "! (echo 99999999999 >/.sandboxer/lease) 2>/dev/null && ! rm -f /.sandboxer/lease 2>/dev/null")
	}
	link := imaged(t, "mkdir -m 777 /home/elsewhere && ln -s /home/elsewhere /.sandboxer"+lease)
	if _, _, err := b.Provision(t.Context(), s.twins(t, link, time.Hour)); err == nil || !strings.Contains(err.Error(), ownDir) {
		t.Errorf("with a link instead of the folder: %v", err)
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		found, err := b.look(t.Context(), h.ID)
		must(t, err)
		db, _ := found.service("db")
		if found.agent().State != container.StateRunning && db.State != container.StateRunning {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after the deadline the agent is %s, the service %s", found.agent().State, db.State)
		}
	}
}

// Engines before 23 start a program of their own for each write.
func TestACreateWritesADeadlineOnlyWhereTheImageHasOurFolder(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	for script, want := range map[string]int64{"true": 1, "mkdir /.sandboxer": 2} { // the workspace, and the deadline
		image := imaged(t, script)
		before := s.gate.writes.Load()
		h, _ := s.provision(t, b, exttest.With(func(s *extensions.Spec) { s.Image = &extensions.Image{Pull: image} }))
		if got := s.gate.writes.Load() - before; got != want {
			t.Errorf("%s: %d writes, want %d", script, got, want)
		}
		_, err := b.Teardown(t.Context(), h)
		must(t, err)
	}
}

func TestAnImageOfAnExpiredSandboxLives(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	source, _ := s.provision(t, b)
	must(t, b.Extend(t.Context(), source, time.Now().Add(time.Second)))
	c, err := b.look(t.Context(), source.ID)
	must(t, err)
	name := fmt.Sprintf("sandboxer-test-lease-%d:latest", siteNo.Add(1))
	docker(t, "commit", c.agent().ID, name)
	t.Cleanup(func() { docker(t, "image", "rm", name) })
	time.Sleep(2 * time.Second)
	h := s.become(t, b, s.twins(t, name, time.Hour))
	time.Sleep(2 * time.Second)
	for _, service := range []string{"", "db"} {
		inside(t, b, h, service, "true")
	}
}
