package compose

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func contextOf(t *testing.T, r Rendered, b Build) map[string]string {
	t.Helper()
	var stream bytes.Buffer
	if err := r.WriteContext(t.Context(), b, "FROM written\n", &stream); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for tr := tar.NewReader(&stream); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = string(text) + h.Linkname
	}
}

func TestAContextIsTheFolderOfTheBuildAndNoMore(t *testing.T) {
	t.Parallel()
	src := files{"secret": "s", "app/Dockerfile": "FROM a\nCOPY . .\n", "app/x": "1", "app/skip/y": "2", "app/.dockerignore": "skip\n",
		"app/.sandboxer.Dockerfile": "FROM evil\n", "application/z": "3"}
	r := render(t, fromImage(t, extensions.Image{Build: &extensions.BuildStage{Context: "app"}}, src), RenderOptions{})
	got := contextOf(t, r, r.Builds[0])
	want := map[string]string{"Dockerfile": "FROM a\nCOPY . .\n", "x": "1", ".dockerignore": "skip\n\n.sandboxer.Dockerfile\n",
		".sandboxer.Dockerfile": "FROM written\n"}
	if !maps.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

func TestEveryStageIsLabelled(t *testing.T) {
	t.Parallel()
	got, err := Labelled("ARG V\nFROM --platform=linux/amd64 \\\n  # why\n  a AS x\nRUN echo FROM b\nfrom scratch", "l", "1")
	if err != nil {
		t.Fatal(err)
	}
	want := "ARG V\nFROM --platform=linux/amd64 \\\n  # why\n  a AS x\nLABEL l=1\nRUN echo FROM b\nfrom scratch\nLABEL l=1\n"
	if got != want {
		t.Errorf("%q", got)
	}
}

func TestImagesOfABundleAreNotBuiltFromTheWorkspace(t *testing.T) {
	t.Parallel()
	workspace, bundle := files{"Dockerfile": "FROM workspace\n"}, files{"Dockerfile": "FROM bundle\n", "b": "1"}
	build := &extensions.BuildStage{Context: "."}
	all := extensions.Containers{
		Agent:    extensions.Container{Image: extensions.Image{Build: build, Bundle: "b", BundleSource: bundle}},
		Services: map[string]extensions.Container{"web": {Image: extensions.Image{Build: build}, Command: []string{"x"}}},
	}
	p, err := FromContainers(t.Context(), all, workspace)
	if err != nil {
		t.Fatal(err)
	}
	r := render(t, p, RenderOptions{})
	if len(r.Builds) != 2 || !r.Builds[0].Bundled || r.Builds[1].Bundled || r.Builds[0].Digest == r.Builds[1].Digest {
		t.Fatalf("%+v", r.Builds)
	}
	for i, want := range []string{"FROM bundle\n", "FROM workspace\n"} {
		if text, err := r.Dockerfile(r.Builds[i]); text != want || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	}
	if got := slices.Sorted(maps.Keys(contextOf(t, r, r.Builds[0]))); !slices.Contains(got, "b") {
		t.Errorf("the bundle's context is %q", got)
	}
	all.Services["web"] = extensions.Container{Image: extensions.Image{Build: build, Bundle: "c", BundleSource: bundle}}
	if _, err := FromContainers(t.Context(), all, workspace); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("two bundles: %v", err)
	}
	all.Services = nil
	all.Agent.Image.BundleSource = nil
	if p, err = FromContainers(t.Context(), all, workspace); err != nil {
		t.Fatal(err)
	}
	refuse(t, p, RenderOptions{}, extensions.KindInvalid)
}

func TestAParentThatNothingStartsFromIsRefused(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"FROM p\n": true, "ARG PARENT_TAG\nFROM ${PARENT_TAG}\n": true, "FROM a\nCOPY --from=p / /\n": true, "FROM a\n": false, "FROM p2\n": false,
	} {
		src := files{"a/Dockerfile": "FROM a\n", "b/Dockerfile": text}
		img := extensions.Image{Stages: []extensions.BuildStage{{Context: "a", Tag: "p"}, {Context: "b", ParentTag: "p"}}}
		_, err := fromImage(t, img, src).Render(withDefaults(RenderOptions{}))
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "parent_tag") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
