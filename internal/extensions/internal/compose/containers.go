package compose

import (
	"context"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// FromContainers builds a stack of AgentService and the named services on one network, each reachable by its
// name and its hostname. An agent without a command stays up as in FromImage; a service without one runs its
// image's. src is as for FromImage.
func FromContainers(ctx context.Context, c extensions.Containers, src extensions.WorkspaceSource) (*Project, error) {
	all := map[string]extensions.Container{AgentService: c.Agent}
	for name, s := range c.Services {
		if name == AgentService {
			return nil, extensions.Errorf(extensions.KindInvalid, "a service cannot have the agent's name %q", name).At("containers.services")
		}
		all[name] = s
	}
	if err := judgeContainers(all); err != nil {
		return nil, err
	}
	images := make([]extensions.Image, 0, len(all))
	for _, name := range sortedKeys(all) {
		images = append(images, all[name].Image)
	}
	p, err := project(ctx, src, images)
	if err != nil {
		return nil, err
	}
	owner := map[string]string{} // of names on the network
	for name := range all {
		owner[name] = name
	}
	for _, name := range sortedKeys(all) {
		s, err := p.container(name, all[name])
		if err != nil {
			return nil, err
		}
		if host := all[name].Hostname; host != "" {
			if other, taken := owner[host]; taken && other != name {
				return nil, extensions.Errorf(extensions.KindInvalid, "%q and %q would both have the name %q", other, name, host).
					At("containers").WithRemedy("give each container its own hostname")
			}
			owner[host] = name
		}
		p.Compose.Services[name] = s
	}
	return p, nil
}

func (p *Project) container(name string, c extensions.Container) (types.ServiceConfig, error) {
	s := types.ServiceConfig{Name: name}
	s.Hostname = c.Hostname
	s.Networks = map[string]*types.ServiceNetworkConfig{"default": nil}
	if c.Hostname != "" {
		s.Networks["default"] = &types.ServiceNetworkConfig{Aliases: []string{c.Hostname}}
	}
	s.Environment = types.MappingWithEquals{}
	for k, v := range c.Environment {
		s.Environment[k] = &v
	}
	s.Command = c.Command
	if name == AgentService {
		// Something must forward signals and reap what commands leave behind.
		on := true
		s.Init = &on
		if len(c.Command) == 0 {
			s.Entrypoint = types.ShellCommand{"/bin/sh", "-c", keepAlive}
			s.Command = nil
		}
	}
	return s, p.setImage(name, &s, c.Image)
}
