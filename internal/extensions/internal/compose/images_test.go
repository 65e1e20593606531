package compose

import (
	"context"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ociimage"
)

func fromImage(t *testing.T, img extensions.Image, src extensions.WorkspaceSource) *Project {
	t.Helper()
	p, err := FromImage(context.Background(), img, src)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAnImageIsKeptAlive(t *testing.T) {
	t.Parallel()
	r := render(t, fromImage(t, extensions.Image{Pull: "python:3.12"}, nil),
		RenderOptions{Mount: "/workspace", Env: map[string]string{"A": "1"}})
	s := reload(t, r, nil).Services[AgentService]
	if len(s.Entrypoint) != 3 || s.Entrypoint[2] != keepAlive || len(s.Command) != 0 || s.Init == nil || !*s.Init {
		t.Errorf("entrypoint %q command %q init %v", s.Entrypoint, s.Command, s.Init)
	}
	if r.Default != AgentService || s.Image != "python:3.12" || envText(s.Environment) != "A=1" || mountsOf(s) != "/host/ws>/workspace" {
		t.Errorf("default %q image %q environment %v mounts %s", r.Default, s.Image, s.Environment, mountsOf(s))
	}
	if len(r.Networks) != 0 || len(r.Pulls) != 1 || r.Pulls[0] != (Pull{Image: "python:3.12"}) || !r.Services[0].LongRunning {
		t.Errorf("networks %v pulls %v services %+v", r.Networks, r.Pulls, r.Services)
	}
}

func TestAnImageIsOneOfThree(t *testing.T) {
	t.Parallel()
	stage := extensions.BuildStage{Context: "."}
	for _, img := range []extensions.Image{{}, {Pull: "i", Build: &stage}, {Build: &stage, Stages: []extensions.BuildStage{stage}}} {
		if _, err := FromImage(context.Background(), img, nil); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%+v: %v", img, err)
		}
	}
}

func TestStagesBuildOnEachOther(t *testing.T) {
	t.Parallel()
	src := files{
		"base/Dockerfile": "FROM debian:12\n",
		"env/Dockerfile": "ARG PARENT_TAG\nFROM --platform=linux/amd64 acme-base:latest AS env\nCOPY --from=acme-base:latest /a /a\nFROM " +
			"acme-base:latest-2\nRUN echo FROM acme-base:latest",
		"app/Dockerfile": "FROM external:1\n", "app/x": "1",
	}
	img := extensions.Image{Stages: []extensions.BuildStage{
		{Context: "base", Tag: "acme-base:latest", CacheKey: "v1"},
		{Context: "env", Tag: "acme-env:1", ParentTag: "acme-base:latest", Args: map[string]string{"V": "$1"}},
		{Context: "app", ParentTag: "external:1"},
	}}
	r := render(t, fromImage(t, img, src), RenderOptions{})
	if len(r.Builds) != 3 || len(r.Pulls) != 0 {
		t.Fatalf("builds %+v pulls %+v", r.Builds, r.Pulls)
	}
	base, env, app := r.Builds[0], r.Builds[1], r.Builds[2]
	want := "ARG PARENT_TAG\nFROM --platform=linux/amd64 " + base.Tag + " AS env\nCOPY --from=" + base.Tag +
		" /a /a\nFROM acme-base:latest-2\nRUN echo FROM acme-base:latest"
	if env.Text != want || env.Parent != base.Digest || env.Args[ArgParentTag] != base.Tag || env.Args["V"] != "$1" {
		t.Errorf("second stage: %+v\ntext %q\nwant %q", env, env.Text, want)
	}
	if app.Text != "" || app.Parent != "" || app.Args[ArgParentTag] != "external:1" {
		t.Errorf("third stage: %+v", app)
	}
	if got := reload(t, r, nil).Services[AgentService].Image; got != app.Tag || !strings.HasPrefix(got, ociimage.Repository+":") {
		t.Errorf("the agent runs %q, want the last stage %q", got, app.Tag)
	}
	img.Stages[0].CacheKey = "v2"
	again := render(t, fromImage(t, img, src), RenderOptions{})
	if again.Builds[0].Digest == base.Digest || again.Builds[1].Digest == env.Digest || again.Builds[2].Digest != app.Digest {
		t.Error("a new cache key must rebuild its stage and what builds on it, nothing else")
	}
}

func TestBuildDigests(t *testing.T) {
	t.Parallel()
	src := func() files { return files{"Dockerfile": "FROM a\n", "x": "1", "other/Dockerfile": "FROM b\n"} }
	img := func() *extensions.BuildStage {
		return &extensions.BuildStage{Context: ".", Args: map[string]string{"A": "1"}}
	}
	digest := func(change func(files, *extensions.BuildStage, *RenderOptions)) string {
		f, s, o := src(), img(), RenderOptions{}
		change(f, s, &o)
		return render(t, fromImage(t, extensions.Image{Build: s}, f), o).Builds[0].Digest
	}
	first := digest(func(files, *extensions.BuildStage, *RenderOptions) {})
	for what, c := range map[string]struct {
		same   bool
		change func(files, *extensions.BuildStage, *RenderOptions)
	}{
		"nothing":        {true, func(files, *extensions.BuildStage, *RenderOptions) {}},
		"its own tag":    {true, func(_ files, s *extensions.BuildStage, _ *RenderOptions) { s.Tag = "mine:1" }},
		"a secret":       {true, func(_ files, _ *extensions.BuildStage, o *RenderOptions) { o.SecretNames = []string{"S"} }},
		"a file":         {false, func(f files, _ *extensions.BuildStage, _ *RenderOptions) { f["x"] = "2" }},
		"the Dockerfile": {false, func(f files, _ *extensions.BuildStage, _ *RenderOptions) { f["Dockerfile"] += "RUN x\n" }},
		"an argument":    {false, func(_ files, s *extensions.BuildStage, _ *RenderOptions) { s.Args["A"] = "2" }},
		"the target":     {false, func(_ files, s *extensions.BuildStage, _ *RenderOptions) { s.Target = "t" }},
		"another file":   {false, func(_ files, s *extensions.BuildStage, _ *RenderOptions) { s.Dockerfile = "other/Dockerfile" }},
		"the network":    {false, func(_ files, _ *extensions.BuildStage, o *RenderOptions) { o.BuildNetwork = true }},
	} {
		if got := digest(c.change); (got == first) != c.same {
			t.Errorf("%s: the digest changed: %v", what, got != first)
		}
	}
}

func TestBuildsOfServices(t *testing.T) {
	t.Parallel()
	const text = `
services:
  a: {build: {context: ./app, dockerfile: ../Dockerfile.app, target: t, args: {N: , V: "1"}, extra_hosts: ["h=10.0.0.1"], tags: [x], labels: {l: "1"}, no_cache: true}}
  b: {build: {context: ./app, dockerfile: ../Dockerfile.app, target: t, args: {V: "1"}, extra_hosts: ["h=10.0.0.1"]}, image: named}
  c: {build: {context: ./app, dockerfile_inline: "FROM x"}}
`
	src := files{"app/x": "1", "Dockerfile.app": "FROM a\n"}
	r := render(t, parse(t, text, src), RenderOptions{Network: NetworkAllow})
	if len(r.Builds) != 2 {
		t.Fatalf("equal builds are done twice: %+v", r.Builds)
	}
	a, c := r.Builds[0], r.Builds[1]
	if a.Context != "app" || a.Dockerfile != "Dockerfile.app" || a.Target != "t" || len(a.Args) != 1 || a.ExtraHosts[0] != "h:10.0.0.1" ||
		a.Network != "" {
		t.Errorf("build: %+v", a)
	}
	if c.Text != "FROM x" || c.Dockerfile != "" {
		t.Errorf("inline: %+v", c)
	}
	back := reload(t, r, nil)
	for name, want := range map[string]string{"a": a.Tag, "b": a.Tag, "c": c.Tag} {
		if s := back.Services[name]; s.Image != want || s.Build != nil || s.PullPolicy != "never" {
			t.Errorf("%s runs %q, build %v, pull %q", name, s.Image, s.Build, s.PullPolicy)
		}
	}
	for _, text := range []string{
		`services: {a: {build: {context: ../x}}}`, `services: {a: {build: {context: /etc}}}`,
		`services: {a: {build: {context: ., dockerfile: ../../x}}}`,
		`services: {a: {build: {context: ., ssh: [default]}}}`, `services: {a: {build: {context: ., additional_contexts: {x: /etc}}}}`,
	} {
		refuse(t, parse(t, text, src), RenderOptions{}, extensions.KindInvalid)
	}
}

func TestStagesThatLeaveAreRefused(t *testing.T) {
	t.Parallel()
	src := files{"Dockerfile": "FROM a\n"}
	for _, s := range []extensions.BuildStage{
		{Context: ".."}, {Context: "/etc"}, {Context: "https://github.com/a/b.git"}, {Context: ".", Dockerfile: "../Dockerfile"},
		{Context: ".", Dockerfile: "/etc/passwd"},
	} {
		refuse(t, fromImage(t, extensions.Image{Build: &s}, src), RenderOptions{}, extensions.KindInvalid)
	}
}
