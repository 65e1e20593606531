package compose

import (
	"cmp"
	"context"
	"path"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// keepAlive runs until it is told to end, and then ends at once. Nobody can
// tell from a reference whether an image has a command, or one that goes on.
const keepAlive = `trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done`

// FromImage makes a stack of one service, AgentService, that runs the image
// until it is stopped: its entrypoint and command are replaced by a shell that
// waits, so the image must hold /bin/sh and sleep. The source holds the
// contexts of what is to be built; it is read only then and may be nil
// otherwise.
func FromImage(ctx context.Context, img extensions.Image, src extensions.WorkspaceSource) (*Project, error) {
	return FromContainers(ctx, extensions.Containers{Agent: extensions.Container{Image: img}}, src)
}

// project starts a project without services.
func project(ctx context.Context, src extensions.WorkspaceSource, builds bool) (*Project, error) {
	p := &Project{
		Compose: &types.Project{WorkingDir: "/", Services: types.Services{}, Networks: types.Networks{"default": {}}},
		Root:    "/",
		stages:  map[string][]extensions.BuildStage{}, dockerfiles: map[string]string{},
	}
	if !builds || src == nil {
		return p, nil
	}
	var err error
	p.Bundle, err = ReadBundle(ctx, src)
	return p, err
}

// setImage gives a service its image: exactly one of pulled, built and built
// in stages.
func (p *Project) setImage(name string, s *types.ServiceConfig, img extensions.Image) error {
	ways := 0
	if img.Pull != "" {
		ways++
		s.Image = img.Pull
	}
	if img.Build != nil {
		ways++
		p.stages[name] = []extensions.BuildStage{*img.Build}
	}
	if len(img.Stages) > 0 {
		ways++
		p.stages[name] = img.Stages
	}
	if ways != 1 {
		return extensions.Errorf(extensions.KindInvalid, "the image of %q must be one of pull, build and stages", name).At("image")
	}
	for _, stage := range p.stages[name] {
		file := path.Join(stage.Context, cmp.Or(stage.Dockerfile, "Dockerfile"))
		if stage.ParentTag == "" || p.Bundle == nil {
			continue
		}
		text, err := p.Bundle.ReadFile(file)
		if err != nil {
			return err
		}
		p.dockerfiles[file] = string(text)
	}
	return nil
}
