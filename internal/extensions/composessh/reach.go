package composessh

import (
	"net"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// reach tells how to get into a sandbox that is ready.
func (b *Backend) reach(h extensions.Handle, r record, list []container) extensions.Reachability {
	out := extensions.Reachability{SSH: b.client.Destination(), Host: b.host.Name, ComposeProject: string(h.ID), WorkDir: r.values["mount"]}
	if dir := r.values["folder"]; dir != "" && out.WorkDir != "" {
		out.RemoteDir = dir + "/workspace"
	}
	for _, c := range list {
		for target, address := range publishedPorts(c.ports) {
			if out.Ports == nil {
				out.Ports, out.URLs = map[string]string{}, map[string]string{}
			}
			key := c.service + "/" + target
			if _, taken := out.Ports[key]; taken {
				continue // of several containers of a service, the first
			}
			out.Ports[key] = address
			if _, taken := out.URLs[c.service]; !taken && !strings.HasSuffix(target, "/udp") {
				out.URLs[c.service] = "http://" + address
			}
		}
	}
	return out
}

// publishedPorts reads Docker's list, "127.0.0.1:32768->80/tcp, 9000/tcp, …",
// into target ("80", "53/udp") -> address on the host.
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
		number, _, _ := strings.Cut(target, "/")
		// Ranges ("80-82") and what is no number are passed over.
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
