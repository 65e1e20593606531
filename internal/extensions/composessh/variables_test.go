package composessh

import (
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
)

const variableStack = "services:\n  web:\n    image: \"app:${TAG}\"\n    command: [run, \"${ARG}\"]\n    labels: { by: \"${ARG}\" }\n    " +
	"volumes: [\"${FROM}:/data\"]\n    environment: { SAID: \"${ARG}\" }\n"

func variablePlan(t *testing.T, vars map[string]string) (*plan, error) {
	t.Helper()
	spec := extensions.Spec{Isolation: extensions.IsolationContainer, Network: extensions.Network{Default: "deny"},
		Env:     map[string]string{"TAG": "of-env"},
		Compose: &extensions.Compose{Files: []string{"compose.yaml"}, EnvFiles: []string{"x.env"}, Variables: vars},
		Workspace: extensions.Workspace{Source: newFolder(t,
			map[string]string{"compose.yaml": variableStack, "x.env": "ARG=of-file\nTAG=of-file\nFROM=./of-file\n"})}}
	p, err := newPlan(settings{}, spec)
	if err != nil {
		t.Fatal(err)
	}
	return p, p.load(t.Context())
}

// Variables of the profile stand over those of env files, each is one text of
// the model and none reaches a service that does not name it.
func TestAStackSeesTheProfilesVariables(t *testing.T) {
	t.Parallel()
	const hostile = "a\"'b: [c]\n- d #e ${TAG} $$x {{input.y}}"
	p, err := variablePlan(t, map[string]string{"TAG": "1.2", "ARG": hostile, "FROM": "./app"})
	if err != nil {
		t.Fatal(err)
	}
	web := p.project.Compose.Services["web"]
	if web.Image != "app:1.2" || len(web.Command) != 2 || web.Command[1] != hostile || web.Labels["by"] != hostile ||
		*web.Environment["SAID"] != hostile {
		t.Errorf("image %q, command %q, labels %q", web.Image, web.Command, web.Labels)
	}
	if _, leaks := web.Environment["ARG"]; leaks || len(web.Environment) != 1 {
		t.Errorf("environment %v", web.Environment)
	}
	if got := web.Volumes[0].Source; got != compose.Root+"/app" {
		t.Errorf("the volume is %q", got)
	}
}

func TestWhatAVariableMakesOfAStackIsPoliced(t *testing.T) {
	t.Parallel()
	for name, vars := range map[string]map[string]string{
		"a folder of the host": {"TAG": "1", "ARG": "x", "FROM": "/etc"},
		"a way out":            {"TAG": "1", "ARG": "x", "FROM": "../../etc"},
		"the socket":           {"TAG": "1", "ARG": "x", "FROM": "/var/run/docker.sock"},
	} {
		if _, err := variablePlan(t, vars); !extensions.IsKind(err, extensions.KindInvalid) ||
			!strings.Contains(err.Error(), "services.web.volumes[0]") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
