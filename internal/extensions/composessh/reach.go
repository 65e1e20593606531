package composessh

import (
	"net"
	"path"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// reach says how to get into a ready sandbox.
func (b *Backend) reach(h extensions.Handle, r record, list []container) extensions.Reachability {
	out := extensions.Reachability{SSH: b.client.Destination(), Host: b.host.Name, ComposeProject: string(h.ID),
		WorkDir: plainPath(r.values["mount"])}
	if dir := plainPath(r.values["folder"]); dir != "" && out.WorkDir != "" {
		out.RemoteDir = dir + "/workspace"
	}
	for _, c := range list {
		if !serviceName.MatchString(c.service) {
			continue
		}
		for target, address := range publishedPorts(c.ports) {
			if out.Ports == nil {
				out.Ports, out.URLs = map[string]string{}, map[string]string{}
			}
			key := c.service + "/" + target
			if _, taken := out.Ports[key]; taken {
				continue // of a service's several containers, the first
			}
			out.Ports[key] = address
			if _, taken := out.URLs[c.service]; !taken && !strings.HasSuffix(target, "/udp") {
				out.URLs[c.service] = "http://" + address
			}
		}
	}
	return out
}

// plainPath returns an absolute path that a host reported, or "". A path that is not clean, or that display
// would change, names no place.
func plainPath(p string) string {
	if !path.IsAbs(p) || path.Clean(p) != p || extensions.Clean(p, len(p)) != p {
		return ""
	}
	return p
}

// publishedPorts reads Docker's list, "127.0.0.1:32768->80/tcp, 9000/tcp, …", into target ("80", "53/udp") ->
// address on the host.
func publishedPorts(text string) map[string]string {
	all := map[string]string{}
	for _, entry := range strings.Split(text, ", ") {
		from, to, ok := strings.Cut(entry, "->")
		if !ok {
			continue
		}
		host, port, err := net.SplitHostPort(from)
		if err != nil {
			if cut := strings.LastIndex(from, ":"); cut > 0 { // ":::8080": Docker writes IPv6 without brackets
				host, port = from[:cut], from[cut+1:]
			}
		}
		target := strings.TrimSuffix(to, "/tcp")
		number, protocol, named := strings.Cut(target, "/")
		if named && protocol != "udp" && protocol != "sctp" {
			continue
		}
		// Skip ranges ("80-82") and anything that is not a number.
		if _, err := strconv.ParseUint(number, 10, 16); err != nil {
			continue
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil || net.ParseIP(host) == nil {
			continue
		}
		if _, taken := all[target]; !taken {
			all[target] = net.JoinHostPort(host, port)
		}
	}
	return all
}
