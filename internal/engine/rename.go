package engine

import (
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// rename records the name and the terms its machine goes by now. This machine
// is the same with any name and with none; a name given up must not hold the
// host of that name.
func (e *Engine) rename(row ledger.Sandbox, hosts []string, patch *ledger.Patch) {
	at, named := extensions.ParseHostRef(row.HostRef)
	here := named == nil && at.Local
	if b, err := e.catalog.Named(row.Extension); row.HostRef == "" && err == nil {
		here = b.Descriptor.Place == extensions.PlaceMachine
	}
	if len(hosts) == 0 && here && len(e.placementOf(row)) == 0 {
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

// placementOf lists the hosts the profile itself names.
func (e *Engine) placementOf(row ledger.Sandbox) []string {
	req, err := requestOf(row)
	if err != nil {
		return nil
	}
	r, err := e.resolve(req)
	if err != nil {
		return nil
	}
	return slices.Concat(r.Placement.Prefer, r.Placement.Fallback)
}
