package composessh

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
)

// walls is how a sandbox's network policy is carried out on a host:
//
//	deny     nothing but its own services answers; nothing of the host is changed
//	guarded  the host's firewall lets pass what the rules name, and the host reach in
//	proxy    as deny, with a proxy that speaks to the names (and networks) listed
//	allow    the engine's ordinary networks
type walls struct {
	mode  compose.NetworkMode
	rules []extensions.EgressRule
	image string // of the proxy
}

// wallsFor chooses the walls for a policy. reachIn asks for networks that the
// host can connect to, which costs rules in its firewall and is had only where
// the owner allows that. What the host cannot enforce is KindUnsupported.
func wallsFor(h extensions.Host, n extensions.Network, reachIn bool) (walls, error) {
	if n.Needs() == extensions.EgressNone {
		return walls{mode: compose.NetworkAllow}, nil
	}
	if err := checkEgress(n.Egress); err != nil {
		return walls{}, err
	}
	need := n.Needs()
	have, reasons := hostEgress(h, nil)
	switch {
	case !have.Includes(need):
		e := extensions.Errorf(extensions.KindUnsupported, "the host %q enforces egress up to %q; the network policy needs %q", h.Name, have, need)
		return walls{}, e.At("network.egress").WithRemedy("%s", strings.Join(reasons, "; "))
	case need == extensions.EgressDomain || need == extensions.EgressCIDR && !h.AllowFirewall:
		return walls{mode: compose.NetworkProxy, rules: n.Egress, image: h.ProxyImage}, nil
	case need == extensions.EgressCIDR || reachIn && h.AllowFirewall:
		return walls{mode: compose.NetworkGuarded, rules: n.Egress}, nil
	}
	return walls{mode: compose.NetworkDeny}, nil
}

// checkEgress refuses rules that no wall here carries out.
func checkEgress(rules []extensions.EgressRule) error {
	for i, r := range rules {
		field := fmt.Sprintf("network.egress[%d]", i)
		if r.Port < 0 || r.Port > 65535 {
			return extensions.Errorf(extensions.KindInvalid, "%d is not a port", r.Port).At(field)
		}
		if r.Domain != "" {
			if !validDomain(r.Domain) {
				return extensions.Errorf(extensions.KindInvalid, "%q is not a domain name", r.Domain).At(field).
					WithRemedy(`write "example.org", or "*.example.org" for its sub-domains`)
			}
			continue
		}
		p, err := netip.ParsePrefix(r.CIDR)
		if err != nil {
			return extensions.Errorf(extensions.KindInvalid, "%q is not a network in CIDR notation", r.CIDR).At(field)
		}
		if !p.Addr().Is4() {
			return extensions.Errorf(extensions.KindUnsupported, "%s: sandboxes on a Compose host have no IPv6", p).At(field).
				WithRemedy("name an IPv4 network, or a domain")
		}
	}
	return nil
}

// bridges are the names of a sandbox's bridges: derived from its id, so that
// rules can be placed before the networks exist. 15 bytes is what Linux allows.
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

// options fills what Render is to know of the walls.
func (w walls) options(o *compose.RenderOptions, p *compose.Project) {
	o.Network = w.mode
	o.Egress = w.mode == compose.NetworkGuarded || len(w.rules) > 0 // an internal network publishes nothing
	o.Bridges = w.bridges(o.ID, len(p.NetworkNames()))
	if w.mode == compose.NetworkProxy {
		o.ProxyEnv = proxyEnv(slices.Sorted(maps.Keys(p.Compose.Services)))
	}
}

// apply finishes what Render made: networks as this host can deny them, lookups
// that fail soon, and the proxy. The result's Networks, Services and Pulls include what was added.
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
			// Nothing is to go out, only to be reached: were the rules lost, no
			// answer from elsewhere would find the way back.
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

// failSoon lets a lookup of a name outside end in two seconds and not in twenty:
// the engine's resolver, which has nobody to ask, does not answer it at all.
func failSoon(service map[string]any) {
	if _, set := service["dns_opt"]; !set {
		service["dns_opt"] = []any{"timeout:1", "attempts:1"}
	}
}

// section is the object at key, made where it is missing or null.
func section(m map[string]any, key string) map[string]any {
	s, ok := m[key].(map[string]any)
	if !ok {
		s = map[string]any{}
		m[key] = s
	}
	return s
}

// vars are the variables of sh/firewall.sh and sh/proxy.sh. r is what apply
// returned.
func (w walls) vars(id extensions.ID, r compose.Rendered) map[string]string {
	v := map[string]string{"guard_bridges": "", "guard_allow": "", "proxy_image": w.image}
	if w.mode != compose.NetworkGuarded {
		return v
	}
	v["guard_bridges"] = strings.Join(w.bridges(id, len(r.Networks)), " ")
	var allow []string
	for _, rule := range w.rules {
		p, err := netip.ParsePrefix(rule.CIDR)
		if err != nil {
			continue // checked by wallsFor
		}
		allow = append(allow, p.Masked().String()+","+strconv.Itoa(rule.Port))
	}
	v["guard_allow"] = strings.Join(allow, " ")
	return v
}

// containersPerNetwork counts what joins each network of r, in order.
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

// networksOf are the networks that each service of r joins, sorted.
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

// joins is networksOf as a record keeps it: words SERVICE=NETWORK,NETWORK.
func joins(r compose.Rendered) string {
	all := networksOf(r)
	var words []string
	for _, service := range slices.Sorted(maps.Keys(all)) {
		words = append(words, service+"="+strings.Join(all[service], ","))
	}
	return strings.Join(words, " ")
}
