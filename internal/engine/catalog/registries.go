package catalog

import (
	"maps"
	"regexp"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/secretref"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Registry is the login of a private registry.
type Registry struct {
	Username string
	Password string // a reference, see package secretref; never the value
}

type registryFile struct {
	Username string `yaml:"username"`
	Password string `yaml:"password"`
}

const maxRegistries = 64

var registryHost = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])(:[0-9]{1,5})?$`)

// registries reads the logins for the images that the place pulls.
func (r *bindingReader) registries(d extensions.Descriptor) map[string]Registry {
	if len(r.in.Registries) == 0 {
		return nil
	}
	path := []string{"registries"}
	kinds := d.Capabilities.Provides.RequirementKinds
	if !slices.ContainsFunc([]string{"image", "containers", "compose"}, func(k string) bool { return slices.Contains(kinds, k) }) {
		r.refuse(path, "the handler %s pulls no images, so it needs no login", r.in.Handler)
		return nil
	}
	if len(r.in.Registries) > maxRegistries {
		r.refuse(path, "%d registries; at most %d are accepted", len(r.in.Registries), maxRegistries)
		return nil
	}
	out := map[string]Registry{}
	for _, host := range slices.Sorted(maps.Keys(r.in.Registries)) {
		in, at := r.in.Registries[host], []string{"registries", host}
		if !registryHost.MatchString(host) {
			r.refuse(at, "%q is not the host of a registry, as in ghcr.io or registry.example:5000", extensions.Clean(host, 80))
		}
		if in.Username == "" || len(in.Username) > 256 || extensions.Clean(in.Username, 256) != in.Username {
			r.refuse(at, "username is required, one line of at most 256 bytes")
		}
		if err := secretref.Parse(in.Password); err != nil {
			r.fail(append(at, "password"), err)
		}
		out[host] = Registry(in)
	}
	return out
}
