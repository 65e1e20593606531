package composessh

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
)

const pinned = "registry.example/squid@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// onHost is what is left at a host, with what a probe found there.
func onHost(c extensions.Capabilities, h extensions.Host, found *extensions.HostFacts) (extensions.Capabilities, []string) {
	left, reasons := New().(extensions.HostNarrower).OnHost(c, h)
	if found == nil {
		return left, reasons
	}
	f := factsOf(h, *found)
	left, _ = f.Narrow(left, New().Describe().Powers)
	return left, f.Reasons(reasons)
}

func TestAHostNarrowsEgress(t *testing.T) {
	t.Parallel()
	ceiling := New().Describe().Capabilities
	for _, c := range []struct {
		name  string
		host  extensions.Host
		facts *extensions.HostFacts
		want  extensions.Egress
	}{
		{"nothing allowed", extensions.Host{}, nil, extensions.EgressDenyOnly},
		{"rules", extensions.Host{AllowFirewall: true}, nil, extensions.EgressCIDR},
		{"a proxy", extensions.Host{ProxyImage: pinned}, nil, extensions.EgressDomain},
		{"a proxy that is not pinned", extensions.Host{AllowFirewall: true, ProxyImage: "squid:latest"}, nil, extensions.EgressCIDR},
		{"facts that agree", extensions.Host{ProxyImage: pinned}, &extensions.HostFacts{Egress: extensions.EgressDomain},
			extensions.EgressDomain},
		{"facts that are less", extensions.Host{AllowFirewall: true}, &extensions.HostFacts{Egress: extensions.EgressDenyOnly},
			extensions.EgressDenyOnly},
		{"facts that are nothing", extensions.Host{}, &extensions.HostFacts{Egress: extensions.EgressNone}, extensions.EgressNone},
		{"facts that do not widen", extensions.Host{}, &extensions.HostFacts{Egress: extensions.EgressDomain}, extensions.EgressDenyOnly},
		{"facts that do not know", extensions.Host{AllowFirewall: true}, &extensions.HostFacts{}, extensions.EgressCIDR},
	} {
		left, reasons := onHost(ceiling, c.host, c.facts)
		if left.Egress != c.want || left.CustomNetworkPolicy != c.want.Includes(extensions.EgressCIDR) {
			t.Errorf("%s: %q, want %q", c.name, left.Egress, c.want)
		}
		if (len(reasons) == 0) != (c.want == extensions.EgressDomain) && c.facts == nil {
			t.Errorf("%s: reasons %q", c.name, reasons)
		}
	}
	left, reasons := onHost(ceiling, extensions.Host{Name: "h"}, &extensions.HostFacts{Expiry: extensions.ExpirySweep})
	if left.Expiry != extensions.ExpirySweep || left.GPU || len(reasons) != 3 {
		t.Errorf("expiry %q, gpu %v, reasons %q", left.Expiry, left.GPU, reasons)
	}
}

// What is larger than the machine is refused where it is chosen, not by its
// Docker when other places are out of reach.
func TestAHostWithoutMemoryGivesNoSecretsAsFiles(t *testing.T) {
	t.Parallel()
	ceiling := New().Describe().Capabilities
	for facts, want := range map[*extensions.HostFacts]int{nil: 2, {}: 2, {SecretsAs: extensions.SecretDeliveries}: 2,
		{SecretsAs: []extensions.SecretDelivery{extensions.SecretsEnv}}: 1} {
		left, reasons := onHost(ceiling, extensions.Host{Name: "h"}, facts)
		told := slices.ContainsFunc(reasons, func(r string) bool { return strings.HasPrefix(r, "secrets: ") })
		if len(left.SecretsAs) != want || told != (want == 1) {
			t.Errorf("%+v: %v, reasons %q", facts, left.SecretsAs, reasons)
		}
	}
	if f := (rawFacts{}).facts(extensions.Host{}); slices.Contains(f.SecretsAs, extensions.SecretsFile) ||
		!strings.Contains(strings.Join(f.Notes, " "), "/dev/shm") {
		t.Errorf("secrets as %v, notes %q", f.SecretsAs, f.Notes)
	}
}

func TestAHostNarrowsSizes(t *testing.T) {
	t.Parallel()
	ceiling := New().Describe().Capabilities
	text := func(n *int64) string {
		if n == nil {
			return "unknown"
		}
		return strconv.FormatInt(*n, 10)
	}
	for _, c := range []struct {
		name        string
		facts       *extensions.HostFacts
		cpu, memory string
	}{
		{"nobody has looked", nil, "unknown", "unknown"},
		{"it did not tell", &extensions.HostFacts{}, "unknown", "unknown"},
		{"it told", &extensions.HostFacts{CPUs: 8, MemoryMB: 16384}, "8", "16384"},
	} {
		left, reasons := onHost(ceiling, extensions.Host{Name: "h"}, c.facts)
		if text(left.MaxVCPU) != c.cpu || text(left.MaxMemoryMB) != c.memory {
			t.Errorf("%s: %s vCPU and %s MiB, want %s and %s", c.name, text(left.MaxVCPU), text(left.MaxMemoryMB), c.cpu, c.memory)
		}
		told := strings.Contains(strings.Join(reasons, "\n"), `resources: the host "h" has 8 CPUs and 16384 MiB of memory`)
		if told != (c.cpu != "unknown") {
			t.Errorf("%s: reasons %q", c.name, reasons)
		}
	}
	small := int64(2)
	ceiling.MaxVCPU, ceiling.MaxMemoryMB = &small, nil
	if left, _ := onHost(ceiling, extensions.Host{}, &extensions.HostFacts{CPUs: 8}); *left.MaxVCPU != 2 || small != 2 {
		t.Errorf("a host widens to %d vCPU", *left.MaxVCPU)
	}
}

// good is what a host answers that lacks nothing.
var good = rawFacts{"os": "Linux", "machine": "aarch64", "cpus": "8", "memory_kib": "16777216", "free_kib": "1048576", "docker": "27.3.1",
	"compose": "v2.29.7",
	"proof":   "1/x/y/z macvlan", "timer": "systemd", "login": "ann", "rules": "works", "memory": "1"}

func TestWhatIsMissingIsTold(t *testing.T) {
	t.Parallel()
	f := good.facts(extensions.Host{AllowFirewall: true, ProxyImage: pinned})
	if f.OS != "linux" || f.Arch != "arm64" || f.CPUs != 8 || f.MemoryMB != 16384 || f.FreeDisk != 1024 ||
		f.Egress != extensions.EgressDomain ||
		f.Expiry != extensions.ExpiryHost || len(f.Isolation) != 1 || len(f.Notes) != 0 {
		t.Errorf("%+v", f)
	}
	for _, c := range []struct {
		name   string
		change rawFacts
		note   string
		usable bool
	}{
		{"no docker", rawFacts{"docker": "", "docker_said": "absent", "compose": "", "proof": ""}, "install Docker Engine", false},
		{"docker too old", rawFacts{"docker": "19.03.5", "proof": ""}, "is too old; install 20.10 or newer", false},
		{"docker of a distribution", rawFacts{"docker": "20.10.24+dfsg1"}, "", true},
		{"docker not allowed", rawFacts{"docker": "", "docker_said": "Got permission denied while trying to connect", "proof": ""},
			"usermod -aG docker ann", false},
		{"docker down", rawFacts{"docker": "", "docker_said": "Cannot connect to the Docker daemon", "proof": ""}, "systemctl start docker",
			false},
		{"no compose", rawFacts{"compose": "", "compose_said": "docker: 'compose' is not a docker command."}, "install the Compose plugin",
			false},
		{"compose 1", rawFacts{"compose": "1.29.2"}, "too old", false},
		{"compose from source", rawFacts{"compose": "dev"}, "", true},
		{"compose without inline configs", rawFacts{"compose": "2.10.0"}, "2.23.1", true},
		{"tools missing", rawFacts{"missing": "flock setsid"}, "install util-linux", false},
		{"deny does not hold", rawFacts{"proof": "", "against": "default deny does not hold: answered ARP 192.0.2.2"}, "ARP 192.0.2.2", false},
		{"deny cannot be tried", rawFacts{"proof": "", "against_kind": "exhausted", "against": "the file x cannot be written",
			"cure": "free some disk space on the host"}, "cannot be written; free some disk space", false},
		{"docker says why", rawFacts{"proof": "", "against_kind": "docker", "against": "the networks cannot be made",
			"against_said": "Error: no space left on device"}, "no space left on device; free some disk space", false},
		{"rules cannot be read", rawFacts{"rules": "iptables: Permission denied"}, "install iptables", true},
		{"logins are ended", rawFacts{"timer": "session", "kills": "yes"}, "enable-linger ann", true},
		{"no lingering", rawFacts{"timer": "session", "kills": "no", "linger": "no"}, "enable-linger ann", true},
		{"no memory for files", rawFacts{"memory": ""}, "mount a tmpfs there", true},
		{"no forwarding", rawFacts{"forwarding": "refused"}, "AllowTcpForwarding", true},
		{"escapes", rawFacts{"proof": "", "against": "\x1b[2Jcleared"}, "cleared", false},
	} {
		raw := maps.Clone(good)
		maps.Copy(raw, c.change)
		f := raw.facts(extensions.Host{AllowFirewall: true, ProxyImage: pinned})
		notes := strings.Join(f.Notes, "\n")
		if !strings.Contains(notes, c.note) || (c.note == "") != (notes == "") || strings.Contains(notes, "\x1b") {
			t.Errorf("%s: notes %q", c.name, notes)
		}
		if usable := len(f.Isolation) == 1 && f.Egress != extensions.EgressNone; usable != c.usable {
			t.Errorf("%s: isolation %v, egress %q", c.name, f.Isolation, f.Egress)
		}
		// What cannot deny may run sandboxes that need no walls.
		if unfit := len(f.Unfit) > 0; unfit == (c.usable || c.name == "deny does not hold" || c.name == "escapes") {
			t.Errorf("%s: unfit %q", c.name, f.Unfit)
		}
		if sweep := f.Expiry == extensions.ExpirySweep; sweep != (c.name == "logins are ended") {
			t.Errorf("%s: expiry %q", c.name, f.Expiry)
		}
	}
}

func TestEgressRulesAreChecked(t *testing.T) {
	t.Parallel()
	both := extensions.Host{Name: "h", AllowFirewall: true, ProxyImage: pinned}
	for _, c := range []struct {
		host  extensions.Host
		rules []extensions.EgressRule
		mode  compose.NetworkMode
		kind  extensions.Kind
	}{
		{extensions.Host{}, nil, compose.NetworkDeny, ""},
		{both, nil, compose.NetworkDeny, ""},
		{both, []extensions.EgressRule{{CIDR: "10.2.0.0/16", Port: 443}}, compose.NetworkGuarded, ""},
		{both, []extensions.EgressRule{{CIDR: "10.2.0.0/16"}, {Domain: "*.example.org", Port: 443}}, compose.NetworkProxy, ""},
		{extensions.Host{ProxyImage: pinned}, []extensions.EgressRule{{CIDR: "10.2.0.0/16", Port: 443}}, compose.NetworkProxy, ""},
		{extensions.Host{}, []extensions.EgressRule{{CIDR: "10.2.0.0/16", Port: 443}}, "", extensions.KindUnsupported},
		{both, []extensions.EgressRule{{CIDR: "2001:db8::/32", Port: 443}}, "", extensions.KindUnsupported},
		{both, []extensions.EgressRule{{CIDR: "10.2.0.0/16; DROP", Port: 443}}, "", extensions.KindInvalid},
		{both, []extensions.EgressRule{{CIDR: "10.2.0.0/16", Port: 70000}}, "", extensions.KindInvalid},
		{both, []extensions.EgressRule{{Domain: "example", Port: 443}}, "", extensions.KindInvalid},
		{both, []extensions.EgressRule{{Domain: "example.org\nacl all", Port: 443}}, "", extensions.KindInvalid},
		{both, []extensions.EgressRule{{Domain: "10.1.2.3", Port: 443}}, "", extensions.KindInvalid},
		{both, []extensions.EgressRule{{Domain: "exam$ple.org", Port: 443}}, "", extensions.KindInvalid},
		{both, []extensions.EgressRule{{Domain: "*.*.org", Port: 443}}, "", extensions.KindInvalid},
	} {
		w, err := wallsFor(c.host, extensions.Network{Default: extensions.NetworkDeny, Egress: c.rules}, false)
		if extensions.KindOf(err) != c.kind || w.mode != c.mode {
			t.Errorf("%v: %q, %v", c.rules, w.mode, err)
		}
	}
	if w, err := wallsFor(both, extensions.Network{Default: extensions.NetworkDeny}, true); err != nil || w.mode != compose.NetworkGuarded {
		t.Errorf("reaching in: %q, %v", w.mode, err)
	}
	for image, fits := range map[string]bool{"": true, pinned: true, "squid": false, "squid:6": false, "squid@sha256:abc": false,
		"a b@sha256:" + strings.Repeat("0", 64): false} {
		if err := checkProxyImage(image); (err == nil) != fits {
			t.Errorf("%q: %v", image, err)
		}
	}
}

// The proxy joins every network and is the only one to join the one that leads
// out; the stack's own networks have no way out whatever they asked for.
func TestTheProxyIsTheOnlyWayOut(t *testing.T) {
	t.Parallel()
	in := compose.Rendered{Networks: []string{"back", "default"}, Model: []byte(`{"name":"x","services":{"web":{"image":"i","networks":{"default":null,"back":null}}},
		"networks":{"default":{"driver":"bridge","driver_opts":{"x":"y"}},"back":{}}}`)}
	w := walls{mode: compose.NetworkProxy, image: pinned, rules: []extensions.EgressRule{{Domain: "*.example.org", Port: 443}}}
	out, err := w.apply(in, map[string]string{extensions.LabelID: "sbx"})
	must(t, err)
	var m struct {
		Services map[string]struct {
			Image     string
			User      string
			CapDrop   []string          `json:"cap_drop"`
			Networks  map[string]any    `json:"networks"`
			Labels    map[string]string `json:"labels"`
			DependsOn map[string]any    `json:"depends_on"`
		}
		Networks map[string]struct {
			Driver   string
			Internal bool
			Labels   map[string]string `json:"labels"`
			Options  map[string]string `json:"driver_opts"`
		}
		Configs map[string]struct{ Content string }
	}
	must(t, json.Unmarshal(out.Model, &m))
	if !slices.Equal(out.Networks, []string{"back", "default", proxyNetwork}) || len(out.Pulls) != 1 || len(out.Services) != 1 {
		t.Errorf("%v %v %v", out.Networks, out.Pulls, out.Services)
	}
	for i, name := range []string{"back", "default"} {
		if n := m.Networks[name]; n.Driver != "${SBX_NET_DRIVER}" || !n.Internal ||
			n.Options["parent"] != "${SBX_NET_PARENT_"+string(rune('0'+i))+"}" || n.Options["x"] != "" {
			t.Errorf("%s: %+v", name, n)
		}
	}
	if n := m.Networks[proxyNetwork]; n.Internal || n.Labels[extensions.LabelID] != "sbx" {
		t.Errorf("%+v", n)
	}
	p := m.Services[proxyService]
	if p.Image != pinned || p.User == "" || !slices.Equal(p.CapDrop, []string{"ALL"}) || p.Labels[extensions.LabelID] != "sbx" ||
		!slices.Equal(slices.Sorted(maps.Keys(p.Networks)), []string{"back", "default", proxyNetwork}) {
		t.Errorf("%+v", p)
	}
	if web := m.Services["web"]; len(web.Networks) != 2 || web.DependsOn[proxyService] == nil {
		t.Errorf("%+v", web)
	}
	if c := m.Configs[proxyService].Content; !strings.Contains(c, `^[^/]+\.example\.org$$`) || !strings.Contains(c, "http_access deny all") {
		t.Errorf("%s", c)
	}
	if _, err := w.apply(out, nil); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("a stack with a service of the proxy's name: %v", err)
	}
}

// Where nothing can run, the refusal says why, and not what the owner has not
// allowed.
func TestAHostWithoutDockerIsRefusedForThat(t *testing.T) {
	t.Parallel()
	facts := &extensions.HostFacts{OS: "linux", Egress: extensions.EgressNone,
		Notes: []string{"Docker Compose is missing: install the plugin"}}
	_, reasons := onHost(New().Describe().Capabilities, extensions.Host{Name: "one"}, facts)
	if len(reasons) == 0 || !strings.Contains(reasons[0], "Docker Compose is missing") ||
		strings.Contains(strings.Join(reasons, " "), "allow_firewall") {
		t.Errorf("%q", reasons)
	}
}
