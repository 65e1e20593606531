package life

import (
	"bytes"
	"maps"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// ran is what a request prints where these variables are.
func ran(t *testing.T, req extensions.ExecRequest, has ...string) string {
	t.Helper()
	argv := req.Command
	if req.Shell != "" {
		argv = []string{"/bin/sh", "-c", req.Shell}
		if req.ShellPath != "" {
			argv[0] = req.ShellPath
		}
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = has
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		out.WriteString(err.Error())
	}
	return strings.TrimSpace(out.String())
}

func TestCommandsExpandTheirVariables(t *testing.T) {
	t.Parallel()
	in := inside{service: "web", env: map[string]string{"A": `''"${B-}"'-1 '"${GONE-}"`, "B": `''"${B-}"':2'`,
		"PATH": `''"${PATH-}"':/it'\''s here'`}}
	has := []string{"PATH=/usr/bin:/bin", "B=b  *"}
	const want = "b  *-1 |b  *:2|/usr/bin:/bin:/it's here|"
	const script = `printf '%s|%s|%s|%s' "$A" "$B" "$PATH" "$sandboxer_env_0"`
	for name, c := range map[string]struct {
		req  extensions.ExecRequest
		want string
	}{
		"a script":      {extensions.ExecRequest{Shell: script}, want},
		"another shell": {extensions.ExecRequest{Shell: script, ShellPath: "/bin/bash"}, want},
		"words, not expanded": {extensions.ExecRequest{Command: []string{"sh", "-c", script + `; echo "$@"`, "sh", "$B", "a  b", "*"}}, want +
			"$B a  b *"},
		"their own service":    {extensions.ExecRequest{Service: "web", Shell: script}, want},
		"another service":      {extensions.ExecRequest{Service: "db", Shell: script}, "|b  *|/usr/bin:/bin|"},
		"what the request has": {extensions.ExecRequest{Env: map[string]string{"A": "", "PATH": "x"}, Shell: script}, "|b  *:2|/usr/bin:/bin|"},
		"no such program":      {extensions.ExecRequest{Command: []string{"no-such-program"}}, "exit status 127"},
	} {
		if got := ran(t, in.wrap(c.req), has...); !strings.HasSuffix(got, c.want) || !strings.HasPrefix(c.want, "exit") && got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for _, req := range []extensions.ExecRequest{{Shell: "x", ShellPath: "fish"},
		{Command: []string{"x"}, Env: map[string]string{"A": "", "B": "", "PATH": ""}}} {
		if diff := cmp.Diff(req, inside{}.wrap(req)); diff != "" {
			t.Errorf("without variables it is changed: %s", diff)
		}
	}
	if got := in.wrap(extensions.ExecRequest{Command: []string{"x"},
		Env: map[string]string{"A": "", "B": "", "PATH": ""}}); len(got.Command) != 1 {
		t.Errorf("all of it is the request's, and it is %q", got.Command)
	}
	p := &extensions.Probe{Command: []string{"true"}}
	if got := in.probe(p); len(got.Command) < 4 || len(p.Command) != 1 {
		t.Errorf("the probe is %q, and was %q", got.Command, p.Command)
	}
	if got := in.probe(&extensions.Probe{TCP: "x:1"}); got.Command != nil {
		t.Errorf("a probe without a command has %q", got.Command)
	}
}

func TestARequestsOwnVariablesAreLeftAlone(t *testing.T) {
	t.Parallel()
	words := map[string]string{"A": "a", "B": "b", "C": "c"}
	spec := extensions.Spec{Toolchain: extensions.Toolchain{EnvInside: words}, Env: map[string]string{"A": "mine"}, SecretNames: []string{"B"},
		Compose: &extensions.Compose{Service: "web"}}
	in := insideOf(spec)
	if diff := cmp.Diff(map[string]string{"C": "c"}, in.env); diff != "" || in.service != "web" || len(words) != 3 {
		t.Errorf("%q for %q; the spec has %q", in.env, in.service, words)
	}
	spec.Compose = nil
	if in := insideOf(spec); in.service != extensions.AgentService {
		t.Errorf("for %q", in.service)
	}
	spec.Env = maps.Clone(words)
	if in := insideOf(spec); in.env != nil || in.service != "" {
		t.Errorf("%q for %q", in.env, in.service)
	}
}
