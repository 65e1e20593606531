package compose

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// AgentService is the service that FromImage and FromContainers create for the agent.
const AgentService = extensions.AgentService

// Project is a policed stack, not yet bound to a sandbox or host.
type Project struct {
	// Compose is the normalized model; Render never changes it.
	Compose *types.Project
	// Bundle is the index of the source, nil if nothing was read from one.
	Bundle *Bundle
	// Root is the absolute path the loader gave the bundle's root. Paths of Compose below it are the
	// bundle's; absolute paths elsewhere are the host's, which only a profile's grant allows. "" means
	// Compose.WorkingDir.
	Root string
	// Publish is Input.Publish; "" means PublishLoopback.
	Publish string

	stages map[string]stages // builds in stages, by service
	bundle *Bundle           // of images whose contexts are in the profile's bundle
}

// stages are the builds of one image, each perhaps on an earlier one.
type stages struct {
	list    []extensions.BuildStage
	bundled bool // their contexts are in the profile's bundle
}

// source returns the files that builds use: those of the profile's bundle, or the stack's own.
func (p *Project) source(bundled bool) *Bundle {
	if bundled && p.bundle != nil {
		return p.bundle
	}
	return p.Bundle
}

// Default returns exec's default service: the named one, else the only one, else none (""). A name the stack
// lacks is KindInvalid.
func (p *Project) Default(named string) (string, error) {
	services := slices.Sorted(maps.Keys(p.Compose.Services))
	switch {
	case named != "":
		if _, ok := p.Compose.Services[named]; !ok {
			return "", extensions.Errorf(extensions.KindInvalid, "the stack has no service %q", named).
				At("compose.service").WithRemedy("use one of %q", services)
		}
		return named, nil
	case len(services) == 1:
		return services[0], nil
	}
	return "", nil
}

// NetworkNames returns the networks of the rendered model, sorted: those that a service joins. Bridges and
// ${SBX_NET_n} count in this order.
func (p *Project) NetworkNames() []string {
	used := map[string]bool{}
	for _, s := range p.Compose.Services {
		for _, n := range serviceNetworks(s) {
			used[n] = true
		}
	}
	return slices.Sorted(maps.Keys(used))
}

// serviceNetworks returns the networks a service joins: the default one if it names none.
func serviceNetworks(s types.ServiceConfig) []string {
	if len(s.Networks) > 0 {
		return slices.Sorted(maps.Keys(s.Networks))
	}
	if s.NetworkMode == "" {
		return []string{"default"}
	}
	return nil
}

// root returns the absolute path the loader gave the source's root.
func (p *Project) root() string { return cmp.Or(p.Root, p.Compose.WorkingDir) }

// below returns a path of the model relative to the source's root, and whether it lies there.
func below(root, name string) (string, bool) {
	if !path.IsAbs(name) {
		rel := path.Clean(name)
		return rel, rel != ".." && !strings.HasPrefix(rel, "../")
	}
	name = path.Clean(name)
	if name == root {
		return ".", true
	}
	return strings.CutPrefix(name, strings.TrimSuffix(root, "/")+"/")
}
