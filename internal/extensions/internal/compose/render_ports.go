package compose

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// ports decides what is published and reports what listens. Only ordinary and guarded networks publish. On
// loopback the engine chooses the host's port, so that any number of sandboxes of one stack fit on a host.
func (r *renderer) ports(own []types.ServicePortConfig, info *ServiceInfo) []types.ServicePortConfig {
	how := cmp.Or(r.p.Publish, PublishLoopback)
	if r.o.Network != NetworkAllow && r.o.Network != NetworkGuarded {
		how = PublishNone
	}
	var out []types.ServicePortConfig
	for _, p := range own {
		p.Extensions = nil
		listens := Port{Target: int(p.Target), Protocol: cmp.Or(strings.ToLower(p.Protocol), "tcp")}
		switch how {
		case PublishLoopback:
			p.HostIP, p.Published = "127.0.0.1", ""
			listens.Published, listens.HostIP = true, p.HostIP
		case PublishAsWritten:
			listens.Published, listens.HostIP, listens.HostPort = true, p.HostIP, p.Published
		}
		if slices.Contains(info.Ports, listens) {
			continue
		}
		info.Ports = append(info.Ports, listens)
		if listens.Published {
			out = append(out, p)
		}
	}
	for _, e := range r.p.Compose.Services[info.Name].Expose {
		for _, p := range exposed(e) {
			if !slices.ContainsFunc(info.Ports, func(q Port) bool { return q.Target == p.Target && q.Protocol == p.Protocol }) {
				info.Ports = append(info.Ports, p)
			}
		}
	}
	return out
}

// maxRange bounds how many ports of an exposed range are listed.
const maxRange = 1024

// exposed reads "80", "80/udp" and "80-90"; it returns nothing for anything else.
func exposed(text string) []Port {
	span, protocol, _ := strings.Cut(text, "/")
	first, last, ranged := strings.Cut(span, "-")
	if !ranged {
		last = first
	}
	from, err := strconv.Atoi(first)
	if err != nil {
		return nil
	}
	to, err := strconv.Atoi(last)
	if err != nil || from < 1 || to > 65535 || to-from >= maxRange {
		return nil
	}
	var out []Port
	for n := from; n <= to; n++ {
		out = append(out, Port{Target: n, Protocol: cmp.Or(strings.ToLower(protocol), "tcp")})
	}
	return out
}
