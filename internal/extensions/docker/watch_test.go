package docker

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

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
