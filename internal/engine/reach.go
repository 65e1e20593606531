package engine

import (
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Tunnel is the catalog's jump host of a name, with its identity. An unknown
// name is KindInvalid and names the nearest.
func (e *Engine) Tunnel(name string) (extensions.SSH, error) { return e.catalog.Tunnel(name) }

// Identity is what the catalog logs in with under a name. An unknown name is
// KindInvalid and names the nearest.
func (e *Engine) Identity(name string) (extensions.SSHIdentity, error) {
	return e.catalog.Identity(name)
}

// reach looks up how a profile wants its host to be reached.
func (e *Engine) reach(want profile.ReachabilityRule) (route.Reach, error) {
	r := route.Reach{TunnelName: want.Tunnel, IdentityName: want.Identity}
	if want.Tunnel != "" {
		t, err := e.Tunnel(want.Tunnel)
		if err != nil {
			return r, extensions.AtField("profile", err)
		}
		r.Tunnel = &t
	}
	if want.Identity != "" {
		id, err := e.Identity(want.Identity)
		if err != nil {
			return r, extensions.AtField("profile", err)
		}
		r.Identity = &id
	}
	return r, nil
}
