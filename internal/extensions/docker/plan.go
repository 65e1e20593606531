package docker

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
)

// plan is a spec as containers. Limits, logs and privileges are those of a Compose stack, from the same code.
type plan struct {
	spec     extensions.Spec
	options  options
	access   string
	agent    types.ServiceConfig
	services []types.ServiceConfig // sorted by name
	rendered compose.Rendered
	keep     bool // what was built outlives the sandbox
}

func newPlan(ctx context.Context, s settings, spec extensions.Spec) (*plan, error) {
	if err := acceptRequest(s, spec); err != nil {
		return nil, err
	}
	o, err := parseOptions(spec.Options)
	if err != nil {
		return nil, err
	}
	p := &plan{spec: spec, options: o, access: spec.Workspace.Access}
	if p.access == "" {
		p.access = extensions.AccessRW
	}
	all := extensions.Containers{Agent: extensions.Container{Image: extensions.Image{Pull: s.defaultImage}}}
	switch {
	case spec.Containers != nil:
		all = *spec.Containers
	case spec.Image != nil:
		all.Agent.Image = *spec.Image
	}
	stack, err := compose.FromContainers(ctx, all, spec.Workspace.Source)
	if err != nil {
		return nil, err
	}
	id := spec.ID
	if id == "" { // not chosen yet, and the check does not depend on it
		id = "sbx-aaaaaaaaaaaaaaaaaaaa"
	}
	network := compose.NetworkDeny
	if spec.Network.Needs() == extensions.EgressNone {
		network = compose.NetworkAllow
	}
	p.rendered, err = stack.Render(compose.RenderOptions{ID: id, Service: compose.AgentService, Env: environment(spec),
		Resources: limited(spec.Resources), Network: network, Repository: builtRepository, Binding: s.binding,
		BuildNetwork: o.buildNetwork == buildNetworkDefault})
	if err != nil {
		return nil, err
	}
	spec.WithImages(func(i extensions.Image) extensions.Image {
		p.keep = p.keep || i.Keep
		return i
	})
	p.take(p.rendered.Project, all)
	return p, nil
}

// limited adds a limit on memory to a request without one. That on processes is compose.DefaultPids.
func limited(r extensions.Resources) extensions.Resources {
	memory := int64(defaultMemoryMB)
	return r.Over(extensions.Resources{MemoryMB: &memory, BestEffort: r.BestEffort})
}

// waits reports that a sandbox that runs is not ready yet.
func (p *plan) waits() bool {
	return p.spec.ProbeLater || p.spec.Readiness != nil || len(p.services) > 0 || commanded(p.spec)
}

// take sets the containers from a rendered stack.
func (p *plan) take(model *types.Project, all extensions.Containers) {
	for _, name := range slices.Sorted(maps.Keys(model.Services)) {
		service := model.Services[name]
		if name == compose.AgentService {
			service.Command, service.Entrypoint = all.Agent.Command, nil
			p.agent = service
			continue
		}
		p.services = append(p.services, service)
	}
}

// denied reports that nothing may leave the sandbox.
func (p *plan) denied() bool { return p.spec.Network.Needs() != extensions.EgressNone }

// networked reports that the sandbox has a network. An agent alone that may reach nothing has none, since no engine and
// no kernel can leak what has no interface.
func (p *plan) networked() bool { return !p.denied() || len(p.services) > 0 }

// wired reports that the containers meet, and nothing leaves.
func (p *plan) wired() bool { return p.denied() && p.networked() }

// workdir is where commands start: the workspace, if there is one.
func (p *plan) workdir() string {
	if p.access == extensions.AccessNone {
		return ""
	}
	return p.options.workspace
}

// environment returns the variables of the agent, secrets apart.
func environment(spec extensions.Spec) map[string]string {
	env := map[string]string{"SANDBOXER_ID": string(spec.ID)}
	maps.Copy(env, spec.Toolchain.Env)
	maps.Copy(env, spec.Env)
	return env
}

func pairs(env types.MappingWithEquals) []string {
	out := make([]string, 0, len(env))
	for name, value := range env {
		if value != nil {
			out = append(out, name+"="+*value)
		}
	}
	slices.Sort(out)
	return out
}

// isRoot reports that a user, written as Docker takes it, is root by number or by name.
func isRoot(user string) bool {
	name, _, _ := strings.Cut(user, ":")
	return name == "" || name == "root" || strings.Trim(name, "0") == ""
}
