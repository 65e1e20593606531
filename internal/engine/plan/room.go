package plan

import (
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Occupancy counts an account's sandboxes by binding and by host.
type Occupancy struct {
	bindings, hosts map[string]int64
	// what the request replaces; "" = nothing
	leavingBinding, leavingHost string
}

// Add counts n sandboxes at a binding, and on a host unless host is "".
func (o *Occupancy) Add(binding, host string, n int64) {
	if o.bindings == nil {
		o.bindings, o.hosts = map[string]int64{}, map[string]int64{}
	}
	o.bindings[binding] += n
	if host != "" {
		o.hosts[host] += n
	}
}

// Leaves subtracts the sandbox that the request replaces.
func (o *Occupancy) Leaves(binding, host string) {
	o.Add(binding, host, -1)
	o.leavingBinding, o.leavingHost = binding, host
}

// room returns how full a candidate's place is, as far as known. asked is what the place itself reports;
// nil = it was not asked.
func (o *Occupancy) room(b catalog.Binding, c *route.Candidate, asked *extensions.Capacity) route.Room {
	var told extensions.Capacity
	if asked != nil {
		told = *asked
	}
	r := route.Room{Max: b.MaxSandboxes, PlaceMax: told.Max, PlaceUsed: told.Used}
	if limit := b.Capabilities.MaxConcurrent; limit != nil && (r.Max == nil || *limit < *r.Max) {
		r.Max = limit
	}
	if o != nil {
		live, hostLive := o.bindings[c.Binding], o.hosts[c.HostName()]
		r.Live, r.HostLive = &live, &hostLive
		switch {
		case told.Used == nil && c.Host == nil:
			r.PlaceUsed = &live // a lower bound
		case told.Used != nil && *told.Used > 0 && o.leavingBinding == c.Binding && o.leavingHost == c.HostName():
			used := *told.Used - 1
			r.PlaceUsed = &used
		}
	}
	return r
}
