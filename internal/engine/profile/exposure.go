package profile

import (
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Exposure is what sandboxes of a profile may touch outside of themselves.
type Exposure struct {
	Walls   bool     // more isolation than none
	Open    bool     // the network is allowed by default
	Egress  []string // what may be reached otherwise, as the profile says it
	Secrets []string // the names of those that come from the caller's machine
}

// Exposure reads it from p, which must have its ancestors merged in.
func (p *Profile) Exposure() Exposure {
	x := Exposure{Walls: isolationOf(p) != extensions.IsolationNone, Open: networkOf(p).Default != networkDeny}
	if p.Network != nil {
		x.Egress = slices.Clone(p.Network.Egress)
	}
	if p.Setup != nil {
		for _, s := range p.Setup.SecretRefs {
			x.Secrets = append(x.Secrets, s.Name)
		}
	}
	return x
}
