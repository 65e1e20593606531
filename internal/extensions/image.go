package extensions

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// Image is one container image: pulled, built, or built in stages.
type Image struct {
	Pull   string       `json:"pull,omitempty"`
	Build  *BuildStage  `json:"build,omitempty"`
	Stages []BuildStage `json:"stages,omitempty"` // in order; the last one's image is run
	Keep   bool         `json:"keep,omitempty"`   // what was built outlives its last sandbox
	Bundle string       `json:"bundle,omitempty"` // folder beside the profile with the contexts; "" = the workspace
	// BundleSource opens the folder Bundle names; nil where Bundle is empty, or not
	// known yet.
	BundleSource WorkspaceSource `json:"-"`
}

// BuildStage is one docker build.
type BuildStage struct {
	Context    string            `json:"context"`
	Dockerfile string            `json:"dockerfile,omitempty"`
	Target     string            `json:"target,omitempty"`
	Args       map[string]string `json:"args,omitempty"`
	Tag        string            `json:"tag,omitempty"`
	ParentTag  string            `json:"parent_tag,omitempty"` // the tag of an earlier stage, or an image
	CacheKey   string            `json:"cache_key,omitempty"`
}

// AllStages returns what is built, in order; nil if the image is pulled.
func (i Image) AllStages() []BuildStage {
	if i.Build != nil {
		return []BuildStage{*i.Build}
	}
	return i.Stages
}

// Check refuses an image that does not set exactly one of pull, build and stages, and
// stages that no order can build. field is the path of the mistake in the image.
func (i Image) Check() (field []string, err error) {
	ways := 0
	for _, way := range []bool{i.Pull != "", i.Build != nil, len(i.Stages) > 0} {
		if way {
			ways++
		}
	}
	if ways != 1 {
		return nil, Errorf(KindInvalid, "it must be one of pull, build and stages").WithRemedy("set one of them")
	}
	stages, made := i.AllStages(), map[string]int{}
	for n, s := range stages {
		if s.Tag == "" {
			continue
		}
		if first, twice := made[s.Tag]; twice {
			return i.at(n, "tag"), Errorf(KindInvalid, "stages %d and %d have the same tag %q", first+1, n+1,
				Clean(s.Tag, 80)).WithRemedy("give each stage its own tag")
		}
		made[s.Tag] = n
	}
	for n, s := range stages {
		if at, ok := made[s.ParentTag]; ok && s.ParentTag != "" && at >= n {
			return i.at(n, "parent_tag"), Errorf(KindInvalid, "stage %d builds on %q, which is no earlier stage", n+1,
				Clean(s.ParentTag, 80)).WithRemedy("put each stage after the one it builds on, without a cycle")
		}
	}
	return nil, nil
}

func (i Image) at(stage int, field string) []string {
	if i.Build != nil {
		return []string{"build", field}
	}
	return []string{"stages", strconv.Itoa(stage), field}
}

// WithImages returns s with change applied to each of its images.
func (s Spec) WithImages(change func(Image) Image) Spec {
	if s.Image != nil {
		image := change(*s.Image)
		s.Image = &image
	}
	if s.Containers != nil {
		all := *s.Containers
		all.Agent.Image = change(all.Agent.Image)
		all.Services = maps.Clone(all.Services)
		for name, c := range all.Services {
			c.Image = change(c.Image)
			all.Services[name] = c
		}
		s.Containers = &all
	}
	return s
}

// Bundle returns the name of the folder beside the profile that s takes files from; ""
// if there is none.
func (s Spec) Bundle() (name string) {
	if s.Compose != nil {
		return s.Compose.Bundle
	}
	s.WithImages(func(i Image) Image {
		name = cmp.Or(name, i.Bundle)
		return i
	})
	return name
}

// BuildsFromWorkspace reports whether an image is built from files of the workspace.
func (s Spec) BuildsFromWorkspace() (builds bool) {
	s.WithImages(func(i Image) Image {
		builds = builds || len(i.AllStages()) > 0 && i.Bundle == ""
		return i
	})
	return builds
}

// BuildsFromUnknown reports whether an image is built from files that are not known
// yet, so that it cannot be checked.
func (s Spec) BuildsFromUnknown() (unknown bool) {
	s.WithImages(func(i Image) Image {
		unknown = unknown || i.Bundle != "" && i.BundleSource == nil
		return i
	})
	return unknown || s.Workspace.Repo != "" && s.Workspace.Source == nil && s.BuildsFromWorkspace()
}

// ImageKey is the lower-case hex SHA-256 of everything that determines what s runs: its
// images or its stack with their source files, and the limits of their builds.
// Sandboxes with the same key at the same place run the same images.
func (s Spec) ImageKey() string {
	var sources []string
	note := func(src WorkspaceSource) {
		if src != nil && !slices.Contains(sources, src.Digest()) {
			sources = append(sources, src.Digest())
		}
	}
	builds := s.Compose != nil
	s.WithImages(func(i Image) Image {
		builds = builds || len(i.AllStages()) > 0
		note(i.BundleSource)
		return i
	})
	if s.Compose != nil {
		note(s.Compose.BundleSource)
	}
	if builds {
		note(s.Workspace.Source)
	}
	b, err := json.Marshal([]any{s.Image, s.Compose, s.Containers, s.Resources, s.Network, s.Options, s.Requires.Arch, sources})
	if err != nil { // as in Hash
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Registries are logins by a registry's host, as image references name it:
// "ghcr.io", "registry.example:5000"; "docker.io" for references without a host.
// An adapter sends one to that registry only, and writes it nowhere.
type Registries map[string]RegistryLogin

// RegistryLogin is a user of a registry. Password is called when it is needed, at most
// once per pull; its errors name the reference and not the value.
type RegistryLogin struct {
	Username string
	Password func(context.Context) (Secret, error)
}

// DefaultRegistry serves references that name no registry.
const DefaultRegistry = "docker.io"
