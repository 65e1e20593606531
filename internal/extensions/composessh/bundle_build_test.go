package composessh

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
)

func TestAnImageIsBuiltFromTheProfilesBundleAndTellsItsSteps(t *testing.T) {
	t.Parallel()
	marks := newBuilder(t)
	s := newSite(t)
	b := s.open(t)
	stage := func(context, tag, parent string) extensions.BuildStage {
		return extensions.BuildStage{Context: context, Tag: tag, ParentTag: parent}
	}
	var mu sync.Mutex
	var told []string
	ctx := extensions.WithProgress(t.Context(), func(subject, detail string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, subject+": "+detail)
	})
	spec := s.spec(t, func(sp *extensions.Spec) {
		sp.Workspace.Source = newFolder(t, map[string]string{"base/Dockerfile": "FROM workspace\n", "w": "1"})
		sp.Image = &extensions.Image{Bundle: "tools", Stages: []extensions.BuildStage{stage("base", "base", ""), stage("app", "app", "base")},
			BundleSource: newFolder(t, map[string]string{"base/Dockerfile": marks.from("") + "RUN sleep 2\nRUN echo base >/base; sleep 2\n",
				"app/Dockerfile": "FROM base\nCOPY x /x\n", "app/x": "bundle"})}
	})
	h, _, err := b.Provision(ctx, spec)
	must(t, err)
	if r := run(t, b, h, extensions.ExecRequest{Shell: "cat /base /x; ls"}); string(r.Stdout) != "base\nbundlebase\nw\n" {
		t.Errorf("inside: %q", r.Stdout)
	}
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
	mu.Lock()
	defer mu.Unlock()
	if !slices.Contains(told, "Building the image of agent: ") ||
		!slices.ContainsFunc(told, func(s string) bool { return strings.Contains(s, ": Step ") && strings.Contains(s, "sleep") }) {
		t.Errorf("told %q", told)
	}
}

// Nothing runs: the builder copies and labels.
func TestABuildTakesItsFilesFromItsOwnFolder(t *testing.T) {
	t.Parallel()
	for name, shell := range buildShells {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBuilder(t, shell...)
			b.box("sbx-a", map[string]string{"Dockerfile": "FROM none\n", "x": "workspace", "../bundle/app/Dockerfile": b.from("") + "COPY x /x\n",
				"../bundle/app/x": "bundle"})
			r := b.one(compose.Build{Bundled: true, Context: "app", Dockerfile: "app/Dockerfile", Service: "the agent's",
				Bases: []compose.Base{{Image: b.base}}})
			if said := b.build("sbx-a", r); said != "built" {
				t.Fatal(said)
			}
			if again := b.build("sbx-a", r); again != "built" {
				t.Error(again)
			}
			if said := b.release("sbx-a"); said != "released:" {
				t.Error(said)
			}
		})
	}
}
