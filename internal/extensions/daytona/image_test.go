package daytona_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/daytonatest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// folder is a workspace with what an image is built from.
func folder(files map[string]string, build extensions.BuildStage, more ...extensions.BuildStage) exttest.Option {
	return func(s *extensions.Spec) {
		exttest.WithWorkspace(extensions.AccessRW, files)(s)
		s.Image = &extensions.Image{Build: &build}
		if len(more) > 0 {
			s.Image = &extensions.Image{Stages: append([]extensions.BuildStage{build}, more...)}
		}
	}
}

var files = map[string]string{"app/Dockerfile": "ARG BASE=debian:12\nFROM $BASE\nARG WORD\nCOPY . /app\nRUN echo $WORD\n", "app/main.go": "package main",
	"app/data/a": "a", "app/secret.env": "no", "app/.dockerignore": "secret.env\n", "top/Dockerfile": "FROM base-of-ours\n",
	"other": "outside"}

// An image of a folder: its Dockerfile with the arguments, and the files of its context, which are sent once.
func TestAnImageIsBuiltFromAFolder(t *testing.T) {
	t.Parallel()
	v, cfg, b := openAt(t)
	build := extensions.BuildStage{Context: "app", Args: map[string]string{"BASE": "debian:12-slim", "WORD": `say "$it\`}}
	_, h := made(t, cfg, b, folder(files, build))
	got := v.Built(h.Ref)
	for _, want := range []string{"ARG BASE=\"debian:12-slim\"\n", `ARG WORD="say \"\$it\\"` + "\n", "COPY . /app\n"} {
		if !strings.Contains(got.Dockerfile, want) {
			t.Errorf("the Dockerfile lacks %q:\n%s", want, got.Dockerfile)
		}
	}
	if names := slices.Sorted(maps.Keys(got.Files)); !slices.Contains(names, "main.go") || !slices.Contains(names, "data/a") ||
		slices.Contains(names, "secret.env") || slices.Contains(names, "other") || got.Files["data/a"] != "a" {
		t.Errorf("the builder has %v", names)
	}
	made(t, cfg, b, folder(files, build))
	if v.Puts() != 1 {
		t.Errorf("the files were sent %d times", v.Puts())
	}
	for _, q := range v.Requests() {
		if all := q.Path + q.Query + string(q.Body); strings.Contains(all, daytonatest.StoreSecret) || strings.Contains(all, daytonatest.StoreSession) {
			t.Errorf("%s has what the store was lent with", q.On)
		}
	}
}

// What the vendor's builder cannot do is refused at plan time, and so are GPUs beside a snapshot.
func TestWhatCannotBeBuiltIsRefusedInThePlan(t *testing.T) {
	t.Parallel()
	v, cfg, _ := openAt(t)
	cpu := extensions.Milli(2000)
	sized := exttest.With(func(s *extensions.Spec) { s.Resources.CPU = &cpu })
	vm := map[string]any{"api_url": v.APIURL, "class": "linux-vm"}
	for what, x := range map[string]struct {
		values map[string]any
		opts   []exttest.Option
		kind   extensions.Kind
	}{
		"one stage":            {cfg.Values, []exttest.Option{folder(files, extensions.BuildStage{Context: "app"})}, ""},
		"a size with an image": {cfg.Values, []exttest.Option{folder(files, extensions.BuildStage{Context: "app"}), sized}, ""},
		"stages on each other": {cfg.Values, []exttest.Option{folder(files, extensions.BuildStage{Context: "app", Tag: "base-of-ours"},
			extensions.BuildStage{Context: "top", ParentTag: "base-of-ours"})}, extensions.KindUnsupported},
		"an argument of lines":   {cfg.Values, []exttest.Option{folder(files, extensions.BuildStage{Context: "app", Args: map[string]string{"WORD": "a\nb"}})}, extensions.KindUnsupported},
		"a size with a snapshot": {cfg.Values, []exttest.Option{sized}, ""},
		"a GPU with a snapshot": {cfg.Values, []exttest.Option{exttest.With(func(s *extensions.Spec) {
			s.Resources.GPU = &extensions.GPU{Count: 1}
		})}, extensions.KindUnsupported},
		"an image of a machine": {vm, []exttest.Option{folder(files, extensions.BuildStage{Context: "app"})}, extensions.KindUnsupported},
		"a size of a machine":   {vm, []exttest.Option{sized}, extensions.KindUnsupported},
	} {
		bound := cfg
		bound.Values = x.values
		_, err := daytona.New().(extensions.SpecChecker).CheckSpec(t.Context(), bound, exttest.Spec(t, cfg, x.opts...))
		if extensions.KindOf(err) != x.kind || err != nil && extensions.RemedyOf(err) == "" {
			t.Errorf("%s: %v, want %q with what to do", what, err, x.kind)
		}
	}
}
