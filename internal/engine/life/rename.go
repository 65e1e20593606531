package life

import (
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// rename records the current name and terms of the sandbox's machine. This machine stays the same with any
// name and with none; a name given up must not keep the host of that name.
func (m *Manager) rename(row ledger.Sandbox, hosts []string, patch *ledger.Patch) {
	at, named := extensions.ParseHostRef(row.HostRef)
	here := named == nil && at.Local
	if b, err := m.catalog.Named(row.Extension); row.HostRef == "" && err == nil {
		here = b.Descriptor.RunsAt(extensions.PlaceMachine)
	}
	if len(hosts) == 0 && here && len(m.placementOf(row)) == 0 {
		none := ""
		patch.Host, patch.HostRef = &none, &none
	}
	for _, ref := range hosts {
		h, err := extensions.ParseHostRef(ref)
		if err == nil && (named == nil && sameMachine(h, at) || row.HostRef == "" && here && h.Local) {
			patch.Host, patch.HostRef = &h.Name, &ref
			return
		}
	}
}

// placementOf lists the hosts that the profile itself names.
func (m *Manager) placementOf(row ledger.Sandbox) []string {
	req, err := requestOf(row)
	if err != nil {
		return nil
	}
	r, err := plan.Merge(m.catalog.Profiles, req)
	if err != nil {
		return nil
	}
	return slices.Concat(r.Placement.Prefer, r.Placement.Fallback)
}
