package compose

import (
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestProfilesMayNotTakeOurNames(t *testing.T) {
	t.Parallel()
	img := extensions.Image{Pull: "i"}
	squat := extensions.Image{Pull: "docker.io/sandboxer/build:1"}
	onto := extensions.Image{Stages: []extensions.BuildStage{{Context: "a", Tag: "t"}, {Context: "b", ParentTag: "sandboxer/build:1"}}}
	with := func(name string, c extensions.Container) extensions.Containers {
		return extensions.Containers{Agent: extensions.Container{Image: img}, Services: map[string]extensions.Container{name: c}}
	}
	for what, c := range map[string]struct {
		in   extensions.Containers
		rule string
	}{
		"a service":          {with("sandboxer-proxy", extensions.Container{Image: img}), "reserved-name"},
		"a hostname":         {with("db", extensions.Container{Image: img, Hostname: "Sandboxer-proxy"}), "reserved-name"},
		"a service's image":  {with("db", extensions.Container{Image: squat}), "reserved-image"},
		"a parent of stages": {with("db", extensions.Container{Image: onto}), "reserved-image"},
		"the agent's image":  {extensions.Containers{Agent: extensions.Container{Image: squat}}, "reserved-image"},
	} {
		if _, err := FromContainers(t.Context(), c.in, files{"a/Dockerfile": "FROM i\n", "b/Dockerfile": "FROM i\n"}); err == nil ||
			strings.Join(rulesOf(t, err), " ") != c.rule {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := FromImage(t.Context(), squat, nil); err == nil || strings.Join(rulesOf(t, err), " ") != "reserved-image" {
		t.Errorf("image.pull: %v", err)
	}
}
