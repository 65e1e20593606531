package compose

import (
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const walled = `
services:
  a:
    image: i
    dns: [8.8.8.8]
    dns_search: [example.com]
    cap_drop: [cap_net_raw]
    security_opt: ["no-new-privileges:false", "label=disable"]
    restart: unless-stopped
    labels: {sandboxer.id: forged, com.docker.compose.project: forged, mine: "1"}
    networks: {n: {driver_opts: {x: "1"}, aliases: [alias]}}
  b: {image: i, network_mode: "service:a", cap_drop: [ALL]}
  c: {image: i, network_mode: none, logging: {driver: local, options: {max-size: 1m}}}
  d: {image: i, network_mode: none, logging: {driver: json-file}}
  e: {image: i, network_mode: none, logging: {driver: none}}
networks:
  n: {driver_opts: {com.docker.network.bridge.enable_icc: "false"}, enable_ipv6: true, labels: {sandboxer.account: forged}}
`

func TestWallsOfEveryMode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		o        RenderOptions
		internal bool
		opts     types.Options
	}{
		"deny":    {RenderOptions{Network: NetworkDeny, Bridges: []string{"sbx0"}}, true, types.Options{optInhibit: "true"}},
		"guarded": {RenderOptions{Network: NetworkGuarded, Bridges: []string{"sbx0"}}, true, types.Options{optBridge: "sbx0"}},
		"guarded egress": {RenderOptions{Network: NetworkGuarded, Bridges: []string{"sbx0"}, Egress: true}, false,
			types.Options{optBridge: "sbx0"}},
		"proxy":           {RenderOptions{Network: NetworkProxy, Egress: true}, true, types.Options{optInhibit: "true"}},
		"proxy and guard": {RenderOptions{Network: NetworkProxy, Bridges: []string{"sbx0"}}, true, types.Options{optBridge: "sbx0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			back := reload(t, render(t, parse(t, walled, nil), c.o), nil)
			n := back.Networks["n"]
			if n.Internal != c.internal || n.EnableIPv6 == nil || *n.EnableIPv6 || len(n.DriverOpts) != len(c.opts) {
				t.Errorf("network: internal %v, IPv6 %v, options %v", n.Internal, n.EnableIPv6, n.DriverOpts)
			}
			for k, v := range c.opts {
				if n.DriverOpts[k] != v {
					t.Errorf("option %s is %q, want %q", k, n.DriverOpts[k], v)
				}
			}
			a, b := back.Services["a"], back.Services["b"]
			if strings.Join(a.DNS, ",") != "127.0.0.1" || len(a.DNSSearch) > 0 || a.Restart != "" || len(a.Networks["n"].DriverOpts) > 0 {
				t.Errorf("a: dns %v search %v restart %q options %v", a.DNS, a.DNSSearch, a.Restart, a.Networks["n"].DriverOpts)
			}
			if got := strings.Join(a.CapDrop, ","); got != "cap_net_raw,NET_ADMIN" {
				t.Errorf("a drops %s", got)
			}
			if len(b.DNS) > 0 || len(b.Networks) > 0 || strings.Join(b.CapDrop, ",") != "ALL" {
				t.Errorf("b: dns %v networks %v drops %v", b.DNS, b.Networks, b.CapDrop)
			}
		})
	}
}

func TestWhatEveryModeGives(t *testing.T) {
	t.Parallel()
	for _, mode := range []NetworkMode{NetworkDeny, NetworkGuarded, NetworkProxy, NetworkAllow} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			back := reload(t, render(t, parse(t, walled, nil), RenderOptions{Network: mode, Bridges: []string{"b0"}}), nil)
			for name, s := range back.Services {
				if s.Labels[extensions.LabelID] != string(testID) || s.Labels["com.docker.compose.project"] != "" {
					t.Errorf("%s has the labels %v", name, s.Labels)
				}
				if s.SecurityOpt[0] != "no-new-privileges:true" || strings.Contains(strings.Join(s.SecurityOpt, " "), "false") ||
					s.PidsLimit != DefaultPids {
					t.Errorf("%s: %v, %d processes", name, s.SecurityOpt, s.PidsLimit)
				}
			}
			for name, want := range map[string]string{"a": "json-file 16m 2", "c": "local 1m 2", "d": "json-file 16m 2", "e": "none  "} {
				l := back.Services[name].Logging
				if got := l.Driver + " " + l.Options["max-size"] + " " + l.Options["max-file"]; got != want {
					t.Errorf("%s logs to %s, want %s", name, got, want)
				}
			}
			n := back.Networks["n"]
			if n.Labels[extensions.LabelAccount] != "acme/$web" || n.Ipam.Config[0].Subnet != "10.0.0.0/28" || n.Name != string(testID)+"_n" {
				t.Errorf("network: %+v", n)
			}
			if back.Services["a"].Labels["mine"] != "1" {
				t.Error("the stack's own label is gone")
			}
		})
	}
}

// A service that nobody can reach or be reached by has no network; whatever the stack says of its networks gives it one.
func TestAServiceThatIsAloneHasNoNetwork(t *testing.T) {
	t.Parallel()
	for text, hosts := range map[string]string{
		"services: {web: {image: i}}":                                                        "web=127.0.0.1",
		"services: {web: {image: i, networks: [default]}}":                                   "web=127.0.0.1",
		"services: {web: {image: i, ports: ['80:80']}}":                                      "web=127.0.0.1",
		"services: {web: {image: i, hostname: db}}":                                          "db=127.0.0.1 web=127.0.0.1",
		"services: {web: {image: i, networks: {default: {aliases: [x, y]}}}}":                "web=127.0.0.1 x=127.0.0.1 y=127.0.0.1",
		"services: {web: {image: i, networks: {default: {aliases: ['', 'a:b', 'a=b', x]}}}}": "web=127.0.0.1 x=127.0.0.1",
		"services: {web: {image: i, extra_hosts: ['web=10.0.0.1', 'other=10.0.0.2']}}":       "other=10.0.0.2 web=10.0.0.1",
		"services: {web: {image: i}, off: {image: i, profiles: [p]}}":                        "web=127.0.0.1",
		"services: {web: {image: i, deploy: {replicas: 1}}}":                                 "web=127.0.0.1",
		"services: {web: {image: i}, other: {image: i}}":                                     "",
		"services: {web: {image: i, hostname: db, domainname: lan}}":                         "",
		"services: {web: {image: i, hostname: db.lan}}":                                      "",
		"services: {web: {image: i, scale: 2}}":                                              "",
		"services: {web: {image: i, deploy: {replicas: 2}}}":                                 "",
		"{services: {web: {image: i, networks: [n]}}, networks: {n: {}}}":                    "",
		"{services: {web: {image: i, networks: [n, default]}}, networks: {n: {}}}":           "",
		"{services: {web: {image: i}}, networks: {default: {labels: {a: b}}}}":               "",
		"services: {web: {image: i, networks: {default: {mac_address: 02:42:ac:11:00:02}}}}": "",
		"services: {web: {image: i, mac_address: 02:42:ac:11:00:02}}":                        "",
		"services: {web: {image: i, sysctls: {net.ipv4.conf.eth0.forwarding: '1'}}}":         "",
	} {
		for _, mode := range []NetworkMode{NetworkDeny, NetworkGuarded, NetworkProxy, NetworkAllow} {
			r := render(t, parse(t, text, nil), RenderOptions{Network: mode, Bridges: []string{"b0", "b1"}})
			s := reload(t, r, nil).Services["web"]
			if mode != NetworkDeny || hosts == "" {
				if s.NetworkMode != "" || len(s.Networks) == 0 || len(r.Networks) == 0 {
					t.Errorf("%s: %s: network mode %q, networks %v of %v", text, mode, s.NetworkMode, s.Networks, r.Networks)
				}
				continue
			}
			got := s.ExtraHosts.AsList("=")
			slices.Sort(got)
			if s.NetworkMode != "none" || len(s.Networks) > 0 || len(r.Networks) > 0 || strings.Join(got, " ") != hosts ||
				strings.Join(s.DNS, " ") != "127.0.0.1" || s.Hostname == "" {
				t.Errorf("%s: network mode %q, networks %v of %v, hosts %q, DNS %q, hostname %q", text, s.NetworkMode, s.Networks, r.Networks, got, s.DNS,
					s.Hostname)
			}
		}
	}
}

// Its own hostname is known inside, even where its name is none.
func TestAServiceThatIsAloneHasAHostname(t *testing.T) {
	t.Parallel()
	for name, host := range map[string]string{
		"web": "web", "A-1": "A-1", "a_b": "agent", "a.b": "agent", "123": "agent", "0x7f": "agent", strings.Repeat("a", 64): "agent",
	} {
		s := reload(t, render(t, parse(t, "services: {'"+name+"': {image: i}}", nil), RenderOptions{}), nil).Services[name]
		if s.Hostname != host || s.NetworkMode != "none" || len(s.ExtraHosts[name]) != 1 || len(s.ExtraHosts[host]) != 1 {
			t.Errorf("%s: hostname %q, network mode %q, hosts %v", name, s.Hostname, s.NetworkMode, s.ExtraHosts)
		}
	}
}

func TestAllowKeepsWhatTheStackSays(t *testing.T) {
	t.Parallel()
	back := reload(t, render(t, parse(t, walled, nil), RenderOptions{Network: NetworkAllow}), nil)
	a, n := back.Services["a"], back.Networks["n"]
	if a.Restart != "" || strings.Join(a.DNS, "") != "8.8.8.8" || len(a.CapDrop) != 1 {
		t.Errorf("restart %q dns %v drops %v", a.Restart, a.DNS, a.CapDrop)
	}
	if n.Internal || n.DriverOpts["com.docker.network.bridge.enable_icc"] != "false" || !*n.EnableIPv6 {
		t.Errorf("network %+v", n)
	}
}

func TestRenderRefuses(t *testing.T) {
	t.Parallel()
	one := `services: {a: {image: i}}`
	for what, c := range map[string]struct {
		text string
		o    RenderOptions
		kind extensions.Kind
	}{
		"no such service":  {one, RenderOptions{Service: "x"}, extensions.KindInvalid},
		"relative mount":   {one, RenderOptions{Mount: "work"}, extensions.KindInvalid},
		"unclean mount":    {one, RenderOptions{Mount: "/a/../b"}, extensions.KindInvalid},
		"the root":         {one, RenderOptions{Mount: "/"}, extensions.KindInvalid},
		"unknown mode":     {one, RenderOptions{Network: "open"}, extensions.KindInternal},
		"no bridge name":   {one, RenderOptions{Network: NetworkGuarded}, extensions.KindInternal},
		"long bridge name": {one, RenderOptions{Network: NetworkGuarded, Bridges: []string{"sbx4567890123456"}}, extensions.KindInternal},
		"fixed address": {`{services: {a: {image: i, networks: {n: {ipv4_address: 10.9.9.9}}}}, networks: {n: {}}}`, RenderOptions{},
			extensions.KindInvalid},
		"external network": {`{services: {a: {image: i, networks: [n]}}, networks: {n: {external: true}}}`, RenderOptions{},
			extensions.KindInvalid},
		"network driver": {`{services: {a: {image: i, networks: [n]}}, networks: {n: {driver: macvlan}}}`, RenderOptions{},
			extensions.KindInvalid},
		"external volume": {`{services: {a: {image: i, volumes: ["vol:/v"]}}, volumes: {vol: {external: true}}}`, RenderOptions{},
			extensions.KindInvalid},
		"foreign variable": {`{services: {a: {image: i, secrets: [s]}}, secrets: {s: {environment: HOME}}}`, RenderOptions{},
			extensions.KindInvalid},
		"file outside": {`{services: {a: {image: i, secrets: [s]}}, secrets: {s: {file: /etc/shadow}}}`, RenderOptions{},
			extensions.KindInvalid},
		"nothing to build": {`services: {a: {build: .}}`, RenderOptions{}, extensions.KindInvalid},
		"pre_start":        {`services: {a: {image: i, pre_start: [{image: j}]}}`, RenderOptions{}, extensions.KindInvalid},
		"all switched off": {`services: {a: {image: i, profiles: [p]}}`, RenderOptions{}, extensions.KindInvalid},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			refuse(t, parse(t, c.text, nil), c.o, c.kind)
		})
	}
}

func TestDefaultService(t *testing.T) {
	t.Parallel()
	one, two := parse(t, "services: {a: {image: i}}", nil), parse(t, "services: {a: {image: i}, b: {image: i}}", nil)
	for _, c := range []struct {
		p           *Project
		named, want string
	}{{one, "", "a"}, {two, "", ""}, {two, "b", "b"}} {
		if got, err := c.p.Default(c.named); err != nil || got != c.want {
			t.Errorf("default of %q: %q, %v; want %q", c.named, got, err, c.want)
		}
	}
}

func TestPortsByPublish(t *testing.T) {
	t.Parallel()
	const text = `services: {a: {image: i, ports: ["127.0.0.1:8080:80", "81", "127.0.0.1:8081:81"], expose: ["80", "90-91/udp", "$$x"]}}`
	for publish, want := range map[string]string{
		PublishAsWritten: "80/tcp@127.0.0.1:8080 81/tcp@: 81/tcp@127.0.0.1:8081 90/udp 91/udp",
		PublishLoopback:  "80/tcp@127.0.0.1: 81/tcp@127.0.0.1: 90/udp 91/udp",
		"":               "80/tcp@127.0.0.1: 81/tcp@127.0.0.1: 90/udp 91/udp",
		PublishNone:      "80/tcp 81/tcp 90/udp 91/udp",
	} {
		p := parse(t, text, nil)
		p.Publish = publish
		r := render(t, p, RenderOptions{Network: NetworkAllow})
		if got := portsText(r.Services[0].Ports); got != want {
			t.Errorf("%q: %s, want %s", publish, got, want)
		}
		published := 0
		for _, q := range r.Services[0].Ports {
			if q.Published {
				published++
			}
		}
		if got := len(reload(t, r, nil).Services["a"].Ports); got != published {
			t.Errorf("%q: %d ports are published, told %d", publish, got, published)
		}
		deny := render(t, p, RenderOptions{})
		if got := len(reload(t, deny, nil).Services["a"].Ports); got != 0 || strings.Contains(portsText(deny.Services[0].Ports), "@") {
			t.Errorf("%q: %d ports are published under deny", publish, got)
		}
	}
}

func portsText(ports []Port) string {
	var out []string
	for _, p := range ports {
		text := itoa(p.Target) + "/" + p.Protocol
		if p.Published {
			text += "@" + p.HostIP + ":" + p.HostPort
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}
