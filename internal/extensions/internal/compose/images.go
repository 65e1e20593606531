package compose

import (
	"context"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// keepAlive runs until told to end, and then ends at once. A reference does not tell whether an image has a
// command, or one that keeps running.
const keepAlive = `trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done`

// FromImage builds a stack of one service, AgentService, that runs the image until stopped. A shell that
// waits replaces the image's entrypoint and command, so the image must hold /bin/sh and sleep. src holds the
// contexts of what is to be built; it is read only then and may be nil otherwise.
func FromImage(ctx context.Context, img extensions.Image, src extensions.WorkspaceSource) (*Project, error) {
	return FromContainers(ctx, extensions.Containers{Agent: extensions.Container{Image: img}}, src)
}

// Enter lets AgentService of a project from FromImage run its image's own entrypoint, or a command in the folder dir
// ("" = the image's).
func (p *Project) Enter(e extensions.Entrypoint, dir string) {
	s := p.Compose.Services[AgentService]
	s.Entrypoint = e.Argv
	if e.Argv != nil {
		s.WorkingDir = dir
	}
	p.Compose.Services[AgentService] = s
}

// project returns a project without services. Its sources are read if an image is built from them.
func project(ctx context.Context, src extensions.WorkspaceSource, images []extensions.Image) (*Project, error) {
	p := &Project{
		Compose: &types.Project{WorkingDir: "/", Services: types.Services{}, Networks: types.Networks{"default": {}}},
		Root:    "/",
		stages:  map[string]stages{},
	}
	bundle, named := extensions.WorkspaceSource(nil), ""
	for _, img := range images {
		switch {
		case len(img.AllStages()) == 0:
		case img.Bundle == "" && src != nil && p.Bundle == nil:
			var err error
			if p.Bundle, err = ReadBundle(ctx, src); err != nil {
				return nil, err
			}
		case img.Bundle != "" && named != "" && named != img.Bundle:
			return nil, extensions.Errorf(extensions.KindInvalid, "its images come from two bundles, %q and %q", named, img.Bundle).
				At("image.bundle").WithRemedy("put their contexts into one folder")
		case img.Bundle != "":
			bundle, named = img.BundleSource, img.Bundle
		}
	}
	if bundle == nil {
		return p, nil
	}
	var err error
	p.bundle, err = ReadBundle(ctx, bundle)
	return p, err
}

// setImage gives a service its image: pulled, built, or built in stages.
func (p *Project) setImage(name string, s *types.ServiceConfig, img extensions.Image) error {
	if _, err := img.Check(); err != nil {
		return extensions.Errorf(extensions.KindInvalid, "the image of %q: %w", name, err).At("image").WithRemedy("%s", extensions.RemedyOf(err))
	}
	s.Image = img.Pull
	if all := img.AllStages(); len(all) > 0 {
		p.stages[name] = stages{all, img.Bundle != ""}
	}
	return nil
}
