package compose

import (
	"context"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestContainersShareANetworkAndNames(t *testing.T) {
	t.Parallel()
	p, err := FromContainers(context.Background(), extensions.Containers{
		Agent: extensions.Container{Image: extensions.Image{Build: &extensions.BuildStage{}}, Command: []string{"serve", "$HOME"},
			Environment: map[string]string{"A": "$$", "B": ""}},
		Services: map[string]extensions.Container{
			"db": {Image: extensions.Image{Pull: "postgres:16"}, Hostname: "database"},
		},
	}, files{"Dockerfile": "FROM a\n"})
	if err != nil {
		t.Fatal(err)
	}
	if named, err := p.Default(""); err != nil || named != "" {
		t.Errorf("two services have the default %q, %v", named, err)
	}
	r := render(t, p, RenderOptions{Service: AgentService})
	back := reload(t, r, nil)
	agent, db := back.Services[AgentService], back.Services["db"]
	if strings.Join(agent.Command, " ") != "serve $HOME" || agent.Entrypoint != nil || !*agent.Init ||
		envText(agent.Environment) != "A=$$ B=" {
		t.Errorf("agent: command %q entrypoint %q environment %v", agent.Command, agent.Entrypoint, agent.Environment)
	}
	if db.Hostname != "database" || strings.Join(db.Networks["default"].Aliases, " ") != "database" || db.Init != nil || db.Command != nil {
		t.Errorf("db: %+v", db)
	}
	if len(r.Networks) != 1 || len(r.Builds) != 1 || r.Builds[0].Tag != agent.Image || r.Builds[0].Context != "." {
		t.Errorf("networks %v builds %+v", r.Networks, r.Builds)
	}
}

func TestContainersThatCannotBeToldApart(t *testing.T) {
	t.Parallel()
	img := extensions.Image{Pull: "i"}
	for what, services := range map[string]map[string]extensions.Container{
		"the agent's name":         {AgentService: {Image: img}},
		"a name as a hostname":     {"a": {Image: img, Hostname: "b"}, "b": {Image: img}},
		"one hostname for two":     {"a": {Image: img, Hostname: "h"}, "b": {Image: img, Hostname: "h"}},
		"the agent as a hostname":  {"a": {Image: img, Hostname: AgentService}},
		"a service without images": {"a": {}},
	} {
		_, err := FromContainers(context.Background(), extensions.Containers{Agent: extensions.Container{Image: img}, Services: services}, nil)
		if !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// One's own name as a hostname is no clash.
	if _, err := FromContainers(context.Background(), extensions.Containers{
		Agent: extensions.Container{Image: img, Hostname: AgentService},
	}, nil); err != nil {
		t.Error(err)
	}
}
