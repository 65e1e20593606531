package composessh

import (
	"fmt"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/netwall"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ociimage"
)

const (
	// proxyService is the proxy's name in the stack and on its networks.
	proxyService = "sandboxer-proxy"
	// proxyNetwork is the stack's only network that leads out; only the proxy joins it.
	proxyNetwork = "sandboxer-egress"
	proxyConfig  = "/etc/sandboxer/squid.conf"
	// varHostAddresses holds the host's own addresses; sh/proxy.sh sets it.
	varHostAddresses = "SBX_HOST_ADDRESSES"
)

// checkProxyImage refuses an image that is not pinned by digest.
func checkProxyImage(image string) error {
	if image == "" || ociimage.Pinned(image) {
		return nil
	}
	return extensions.Errorf(extensions.KindInvalid, "the proxy image %q is not pinned by a digest", image).At("proxy_image").
		WithRemedy("write it as name@sha256:… with the image's digest of 64 hex digits")
}

// addProxy puts the proxy between the stack's networks and one that leads out. It refuses a stack that uses
// any of the proxy's names.
func (w walls) addProxy(model map[string]any, r *compose.Rendered, labels map[string]string) error {
	for kind, name := range map[string]string{"services": proxyService, "networks": proxyNetwork, "configs": proxyService} {
		if _, taken := section(model, kind)[name]; taken || slices.Contains(r.Networks, name) {
			return extensions.Errorf(extensions.KindInvalid, "the stack has %q among its %s, a name reserved for the proxy", name,
				kind).WithRemedy("rename it")
		}
	}
	lead := map[string]any{
		"driver": "bridge", "enable_ipv6": false, "labels": labels,
		"ipam": map[string]any{"config": []any{map[string]any{"subnet": fmt.Sprintf("${%s%d}", compose.VarNet, len(r.Networks))}}},
	}
	joined := map[string]any{proxyNetwork: map[string]any{}}
	for _, name := range r.Networks {
		joined[name] = map[string]any{}
	}
	services := section(model, "services")
	for name := range services {
		waits := section(section(services, name), "depends_on")
		waits[proxyService] = map[string]any{"condition": "service_started", "required": true}
	}
	services[proxyService] = map[string]any{
		"image": w.image, "pull_policy": "missing", "labels": labels, "networks": joined,
		"entrypoint":   []any{"squid", "-N", "-f", proxyConfig},
		"command":      []any{},
		"user":         "65534:65534",
		"cap_drop":     []any{"ALL"},
		"security_opt": []any{"no-new-privileges:true"},
		"sysctls":      map[string]any{"net.ipv4.ip_forward": "0"},
		"tmpfs":        []any{"/tmp", "/run", "/var/log/squid", "/var/spool/squid"},
		"mem_limit":    "268435456",
		"pids_limit":   64,
		"restart":      "no",
		"configs":      []any{map[string]any{"source": proxyService, "target": proxyConfig}},
	}
	section(model, "networks")[proxyNetwork] = lead
	section(model, "configs")[proxyService] = map[string]any{"content": netwall.SquidConfig(w.rules, "${"+varHostAddresses+"}")}
	r.Networks = append(slices.Clone(r.Networks), proxyNetwork)
	r.Services = append(slices.Clone(r.Services), compose.ServiceInfo{Name: proxyService, Scale: 1, LongRunning: true, Image: w.image})
	r.Pulls = append(slices.Clone(r.Pulls), compose.Pull{Image: w.image})
	return onlyProxyLeadsOut(model)
}

// onlyProxyLeadsOut fails unless the proxy alone joins the network that leads out, and nothing shares the
// proxy's namespaces or files. The policy on stacks reserves its names; if one were taken all the same,
// nothing starts.
func onlyProxyLeadsOut(model map[string]any) error {
	services := section(model, "services")
	for name := range services {
		if name == proxyService {
			continue
		}
		service := section(services, name)
		networks, readable := service["networks"].(map[string]any)
		_, joins := networks[proxyNetwork]
		mode, set := service["network_mode"]
		if joins || set && mode != "none" || !readable && service["networks"] != nil {
			return extensions.Errorf(extensions.KindInternal, "the service %q would reach the network of the proxy", name).
				WithRemedy("rename the service's networks and report this; nothing was started")
		}
	}
	return nil
}
