package compose

import (
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const someDigest = "@sha256:0000000000000000000000000000000000000000000000000000000000000000"

func TestImagesOfOurNamesAreKnownHoweverSpelled(t *testing.T) {
	t.Parallel()
	for _, ref := range []string{
		"sandboxer/build", "sandboxer/build:1", "sandboxer/build" + someDigest, "sandboxer/build:1" + someDigest, "sandboxer/a/b",
		"docker.io/sandboxer/build", "index.docker.io/sandboxer/build:1", "registry-1.docker.io/sandboxer/build", "registry.hub.docker.com/sandboxer/x",
		"docker.io:443/sandboxer/build", "docker.io/library/sandboxer/build", "library/sandboxer/build", "Sandboxer/Build", "DOCKER.IO/SANDBOXER/build",
		"sandboxer.invalid/toolbox:1", "sandboxer.invalid:5000/x", "SANDBOXER.invalid/x", " sandboxer/build", "docker.io//sandboxer/build",
	} {
		if !reservedImage(ref) {
			t.Errorf("%q passes", ref)
		}
	}
	for _, ref := range []string{"", "/", "busybox", "sandboxer", "sandboxer:1", "acme/sandboxer", "ghcr.io/sandboxer/agent:1", "sandboxers/x", "docker.io/acme/sandboxer",
		"sandboxer.example/x", "acme/x" + someDigest} {
		if reservedImage(ref) {
			t.Errorf("%q is refused", ref)
		}
	}
}

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
		if _, err := FromContainers(t.Context(), c.in, files{"a/Dockerfile": "FROM i\n", "b/Dockerfile": "FROM i\n"}); err == nil || strings.Join(rulesOf(t, err), " ") != c.rule {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := FromImage(t.Context(), squat, nil); err == nil || strings.Join(rulesOf(t, err), " ") != "reserved-image" {
		t.Errorf("image.pull: %v", err)
	}
}
