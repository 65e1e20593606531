package composessh

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
)

const (
	// proxyService is the proxy's name in the stack and on its networks.
	proxyService = "sandboxer-proxy"
	// proxyNetwork is the one network of the stack that leads out; only the
	// proxy joins it.
	proxyNetwork = "sandboxer-egress"
	proxyPort    = 3128
	proxyConfig  = "/etc/sandboxer/squid.conf"
	// varHostAddresses is set by sh/proxy.sh: the host's own addresses.
	varHostAddresses = "SBX_HOST_ADDRESSES"
)

var (
	imageDigest = regexp.MustCompile(`^[a-z0-9][a-zA-Z0-9._:/-]{0,254}@sha256:[0-9a-f]{64}$`)
	domainLabel = regexp.MustCompile(`^[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?$`)
)

// checkProxyImage refuses an image that is not pinned by its digest.
func checkProxyImage(image string) error {
	if image == "" || imageDigest.MatchString(image) {
		return nil
	}
	return extensions.Errorf(extensions.KindInvalid, "the proxy image %q is not pinned by a digest", image).At("proxy_image").
		WithRemedy("write it as name@sha256:… with the 64 hex digits of the image's digest")
}

// validDomain accepts a full name of at least two labels, or "*." and such a
// name. An address is no name.
func validDomain(name string) bool {
	name = strings.TrimPrefix(name, "*.")
	if _, err := netip.ParseAddr(name); err == nil || len(name) > 253 {
		return false
	}
	labels := strings.Split(name, ".")
	return len(labels) > 1 && !slices.ContainsFunc(labels, func(l string) bool { return !domainLabel.MatchString(l) }) &&
		strings.ContainsFunc(labels[len(labels)-1], func(r rune) bool { return r < '0' || r > '9' })
}

// proxyEnv points programs at the proxy, but for the stack's own services. Both
// spellings are in use.
func proxyEnv(services []string) map[string]string {
	url := "http://" + net.JoinHostPort(proxyService, strconv.Itoa(proxyPort))
	direct := strings.Join(append([]string{"localhost", "127.0.0.1"}, services...), ",")
	return map[string]string{
		"HTTP_PROXY": url, "http_proxy": url, "HTTPS_PROXY": url, "https_proxy": url,
		"NO_PROXY": direct, "no_proxy": direct,
	}
}

// neverAllowed is where names may not lead: networks that are somebody's own.
// Whoever controls a name's records could otherwise reach them through it.
var neverAllowed = []string{
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4",
	"::/128", "::1/128", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2002::/16", "fc00::/7", "fe80::/10", "ff00::/8",
}

// squidConfig is the proxy's configuration. Names that are not listed are
// refused before they are looked up, so that looking up carries nothing out.
func squidConfig(rules []extensions.EgressRule) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("http_port %d", proxyPort)
	line("acl own dst %s", strings.Join(neverAllowed, " "))
	line("acl host dst ${%s}", varHostAddresses)
	line("acl metadata dst 169.254.0.0/16")
	line(`acl literal dstdom_regex -n ^[0-9.]+$$ [:\[]`)
	line("acl tunnel method CONNECT")
	line("acl plain proto HTTP")
	line("http_access deny !tunnel !plain")
	var names []string
	for i, r := range rules {
		if r.Port != 0 {
			line("acl port%d port %d", i, r.Port)
		} else {
			line("acl port%d port 1-65535", i)
		}
		if r.Domain == "" {
			line("acl to%d dst %s", i, r.CIDR)
			line("http_access allow literal port%d to%d !metadata !host", i, i)
			continue
		}
		name, below := strings.CutPrefix(r.Domain, "*.")
		start := "^"
		if below {
			start = `^[^/]+\.`
		}
		line("acl name%d dstdom_regex -n -i %s%s$$", i, start, strings.ReplaceAll(name, ".", `\.`))
		names = append(names, fmt.Sprintf("http_access allow name%d port%d !literal !own !host", i, i))
	}
	for _, n := range names {
		line("%s", n)
	}
	b.WriteString(squidFixed)
	return b.String()
}

// squidFixed keeps nothing, tells nobody who asked, and writes to no disk. A
// name's addresses are held long enough that the one that was judged is the one
// that is connected to.
const squidFixed = `http_access deny all
icp_access deny all
htcp_access deny all
cache deny all
cache_mem 0 MB
maximum_object_size_in_memory 0 KB
memory_pools off
max_filedescriptors 1024
negative_dns_ttl 5 minutes
positive_dns_ttl 1 hour
dns_defnames off
connect_timeout 15 seconds
forward_timeout 20 seconds
shutdown_lifetime 1 second
forwarded_for delete
via off
pid_filename none
coredump_dir none
cache_log stdio:/dev/stderr
access_log none
logfile_rotate 0
netdb_filename none
pinger_enable off
visible_hostname sandboxer-proxy
`

// addProxy puts the proxy between the stack's networks and one that leads out.
// A stack that has anything of the proxy's names is refused.
func (w walls) addProxy(model map[string]any, r *compose.Rendered, labels map[string]string) error {
	for kind, name := range map[string]string{"services": proxyService, "networks": proxyNetwork, "configs": proxyService} {
		if _, taken := section(model, kind)[name]; taken || slices.Contains(r.Networks, name) {
			return extensions.Errorf(extensions.KindInvalid, "the stack has %q among its %s, which is a name of the proxy's", name, kind).WithRemedy("rename it")
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
	section(model, "configs")[proxyService] = map[string]any{"content": squidConfig(w.rules)}
	r.Networks = append(slices.Clone(r.Networks), proxyNetwork)
	r.Services = append(slices.Clone(r.Services), compose.ServiceInfo{Name: proxyService, Scale: 1, LongRunning: true, Image: w.image})
	r.Pulls = append(slices.Clone(r.Pulls), compose.Pull{Image: w.image})
	return onlyProxyLeadsOut(model)
}

// onlyProxyLeadsOut fails unless the proxy alone joins the network that leads
// out, and nothing shares the proxy's namespaces or files. The policy on stacks
// keeps its names from being taken; were one taken all the same, nothing starts.
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
				WithRemedy("rename the service's networks, and report this: nothing was started")
		}
	}
	return nil
}
