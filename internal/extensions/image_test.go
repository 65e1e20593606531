package extensions

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestStagesBuildOnEarlierOnesOnly(t *testing.T) {
	t.Parallel()
	stage := func(tag, parent string) BuildStage { return BuildStage{Context: ".", Tag: tag, ParentTag: parent} }
	for name, c := range map[string]struct {
		image Image
		at    string
		ok    bool
	}{
		"nothing":       {image: Image{}},
		"two ways":      {image: Image{Pull: "a", Build: &BuildStage{}}},
		"a chain":       {image: Image{Stages: []BuildStage{stage("a", "python:3"), stage("b", "a"), stage("c", "a")}}, ok: true},
		"itself":        {image: Image{Stages: []BuildStage{stage("a", "a")}}, at: "stages.0.parent_tag"},
		"a build's own": {image: Image{Build: &BuildStage{Tag: "a", ParentTag: "a"}}, at: "build.parent_tag"},
		"a cycle":       {image: Image{Stages: []BuildStage{stage("a", "b"), stage("b", "a")}}, at: "stages.0.parent_tag"},
		"one tag twice": {image: Image{Stages: []BuildStage{stage("a", ""), stage("a", "")}}, at: "stages.1.tag"},
		"no tags":       {image: Image{Stages: []BuildStage{stage("", ""), stage("", "")}}, ok: true},
	} {
		at, err := c.image.Check()
		if (err == nil) != c.ok || strings.Join(at, ".") != c.at || err != nil && !IsKind(err, KindInvalid) {
			t.Errorf("%s: %q, %v", name, at, err)
		}
	}
}

type digestOnly string

func (d digestOnly) Open(context.Context) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("")), nil
}
func (d digestOnly) Digest() string { return string(d) }
func (d digestOnly) Size() int64    { return 0 }
func (d digestOnly) Origin() string { return "" }

func TestAnImageKeyIsOfWhatDecidesTheImages(t *testing.T) {
	t.Parallel()
	base := func() Spec {
		return Spec{ID: "sbx-1", Image: &Image{Build: &BuildStage{Context: "."}}, Workspace: Workspace{Source: digestOnly("w")}}
	}
	key := func(change func(*Spec)) string {
		s := base()
		change(&s)
		return s.ImageKey()
	}
	first := key(func(*Spec) {})
	same := map[string]func(*Spec){
		"the id": func(s *Spec) { s.ID = "sbx-2" }, "a name": func(s *Spec) { s.Name = "n" },
		"a secret": func(s *Spec) { s.SecretNames = []string{"x"} }, "the environment": func(s *Spec) { s.Env = map[string]string{"A": "1"} },
	}
	differs := map[string]func(*Spec){
		"the files": func(s *Spec) { s.Workspace.Source = digestOnly("v") }, "a target": func(s *Spec) { s.Image.Build.Target = "t" },
		"the bundle": func(s *Spec) { s.Image.Bundle, s.Image.BundleSource = "b", digestOnly("x") },
		"egress":     func(s *Spec) { s.Network.Default = "allow" },
	}
	for what, change := range same {
		if key(change) != first {
			t.Errorf("%s changes the key", what)
		}
	}
	for what, change := range differs {
		if key(change) == first {
			t.Errorf("%s does not change the key", what)
		}
	}
	pulled := Spec{Image: &Image{Pull: "a"}}
	with := pulled
	with.Workspace.Source = digestOnly("w")
	if pulled.ImageKey() != with.ImageKey() {
		t.Error("the workspace decides what is pulled")
	}
}

func TestChangedImagesLeaveTheSpecAsItWas(t *testing.T) {
	t.Parallel()
	s := Spec{Image: &Image{Pull: "a"}, Containers: &Containers{Agent: Container{Image: Image{Pull: "b"}},
		Services: map[string]Container{"x": {Image: Image{Pull: "c"}}}}}
	var seen []string
	got := s.WithImages(func(i Image) Image {
		seen = append(seen, i.Pull)
		i.Keep = true
		return i
	})
	slices.Sort(seen)
	if !slices.Equal(seen, []string{"a", "b", "c"}) || s.Image.Keep || s.Containers.Services["x"].Image.Keep || s.Containers.Agent.Image.Keep {
		t.Errorf("%v %+v", seen, s)
	}
	if !got.Image.Keep || !got.Containers.Services["x"].Image.Keep || !got.Containers.Agent.Image.Keep {
		t.Errorf("%+v", got)
	}
}
