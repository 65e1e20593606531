package composessh

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/netwall"
)

// walls is how a host enforces a sandbox's network policy:
//
//	deny     only its own services answer; the host is unchanged
//	guarded  the host's firewall passes what the rules name, and lets the host reach in
//	proxy    as deny, with a proxy that speaks to the names (and networks) listed
//	allow    the engine's ordinary networks
type walls struct {
	mode  compose.NetworkMode
	rules []extensions.EgressRule
	image string // the proxy's
}

// wallsFor chooses the walls for a policy. reachIn asks for networks that the host can connect to, which
// takes firewall rules and so the owner's permission. What the host cannot enforce is KindUnsupported.
func wallsFor(h extensions.Host, n extensions.Network, reachIn bool) (walls, error) {
	if n.Needs() == extensions.EgressNone {
		return walls{mode: compose.NetworkAllow}, nil
	}
	if err := netwall.CheckRules(n.Egress); err != nil {
		return walls{}, err
	}
	need := n.Needs()
	have, reasons := hostEgress(h)
	switch {
	case !have.Includes(need):
		e := extensions.Errorf(extensions.KindUnsupported, "the host %q enforces egress up to %q; the network policy needs %q", h.Name, have,
			need)
		return walls{}, e.At("network.egress").WithRemedy("%s", strings.Join(reasons, "; "))
	case need.Includes(extensions.EgressDomainOnly) || need == extensions.EgressCIDR && !h.AllowFirewall:
		return walls{mode: compose.NetworkProxy, rules: n.Egress, image: h.ProxyImage}, nil
	case need == extensions.EgressCIDR || reachIn && h.AllowFirewall:
		return walls{mode: compose.NetworkGuarded, rules: n.Egress}, nil
	}
	return walls{mode: compose.NetworkDeny}, nil
}

// bridges are the names of a sandbox's bridges. They derive from its id, so that rules can precede the
// networks. Linux allows 15 bytes.
func (w walls) bridges(id extensions.ID, n int) []string {
	if w.mode != compose.NetworkGuarded {
		return nil
	}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("sx%s%x", strings.TrimPrefix(string(id), "sbx-")[:11], i)
	}
	return names
}

// options sets what Render needs to know of the walls.
func (w walls) options(o *compose.RenderOptions, p *compose.Project) {
	o.Network = w.mode
	o.Egress = w.mode == compose.NetworkGuarded || len(w.rules) > 0 // an internal network publishes nothing
	o.Bridges = w.bridges(o.ID, len(p.NetworkNames()))
	if w.mode == compose.NetworkProxy {
		o.ProxyEnv = netwall.ProxyEnv(proxyService, slices.Sorted(maps.Keys(p.Compose.Services)))
	}
}

// apply completes Render's result: networks as this host can deny them, lookups that fail soon, and the
// proxy. The result's Networks, Services and Pulls include the additions.
func (w walls) apply(r compose.Rendered, labels map[string]string) (compose.Rendered, error) {
	if w.mode == compose.NetworkAllow {
		return r, nil
	}
	model := map[string]any{}
	if err := json.Unmarshal(r.Model, &model); err != nil {
		return r, extensions.Errorf(extensions.KindInternal, "the rendered model: %w", err)
	}
	for name := range section(model, "services") {
		failSoon(section(section(model, "services"), name))
	}
	for i, name := range r.Networks {
		network := section(section(model, "networks"), name)
		switch {
		case w.mode != compose.NetworkGuarded:
			denyNetwork(network, i)
		case len(w.rules) == 0:
			// Nothing may go out, only be reached: if the rules were lost, no answer from elsewhere would
			// find its way back.
			section(network, "driver_opts")["com.docker.network.bridge.enable_ip_masquerade"] = "false"
		}
	}
	if w.mode == compose.NetworkProxy {
		if err := w.addProxy(model, &r, labels); err != nil {
			return r, err
		}
	}
	out, err := json.Marshal(model)
	if err != nil {
		return r, extensions.Errorf(extensions.KindInternal, "the rendered model: %w", err)
	}
	r.Model = out
	return r, nil
}

// failSoon makes looking up an outside name fail in two seconds instead of twenty: the engine's resolver,
// with nobody to ask, does not answer at all.
func failSoon(service map[string]any) {
	if _, set := service["dns_opt"]; !set {
		service["dns_opt"] = []any{"timeout:1", "attempts:1"}
	}
}

// section returns the object at key, created if missing or null.
func section(m map[string]any, key string) map[string]any {
	s, ok := m[key].(map[string]any)
	if !ok {
		s = map[string]any{}
		m[key] = s
	}
	return s
}

// vars are the variables of sh/firewall.sh and sh/proxy.sh. r is the result of apply.
func (w walls) vars(id extensions.ID, r compose.Rendered) map[string]string {
	v := map[string]string{"guard_bridges": "", "guard_allow": "", "proxy_image": w.image}
	if w.mode != compose.NetworkGuarded {
		return v
	}
	v["guard_bridges"] = strings.Join(w.bridges(id, len(r.Networks)), " ")
	v["guard_allow"] = netwall.Allowed(w.rules)
	return v
}

// containersPerNetwork counts the containers on each network of r, in order.
func containersPerNetwork(r compose.Rendered) []int {
	counts := make([]int, len(r.Networks))
	all := networksOf(r)
	for _, s := range r.Services {
		for i, name := range r.Networks {
			if slices.Contains(all[s.Name], name) {
				counts[i] += max(s.Scale, 1)
			}
		}
	}
	return counts
}

// networksOf returns the networks that each service of r joins, sorted.
func networksOf(r compose.Rendered) map[string][]string {
	var model struct {
		Services map[string]struct {
			Networks map[string]any `json:"networks"`
		} `json:"services"`
	}
	all := map[string][]string{}
	if json.Unmarshal(r.Model, &model) == nil {
		for name, s := range model.Services {
			all[name] = slices.Sorted(maps.Keys(s.Networks))
		}
	}
	return all
}

// joins is networksOf as a record stores it: words SERVICE=NETWORK,NETWORK.
func joins(r compose.Rendered) string {
	all := networksOf(r)
	var words []string
	for _, service := range slices.Sorted(maps.Keys(all)) {
		words = append(words, service+"="+strings.Join(all[service], ","))
	}
	return strings.Join(words, " ")
}
