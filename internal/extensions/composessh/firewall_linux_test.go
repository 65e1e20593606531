package composessh

import (
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/remote"
)

// serve answers HTTP on a listener until the test ends.
func serve(t testing.TB, l net.Listener, handler http.Handler) {
	t.Helper()
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello from outside\n")) })

// rulesOf are the firewall's rules that name a sandbox or one of its bridges.
func rulesOf(t testing.TB, id extensions.ID) []string {
	t.Helper()
	var rules []string
	for _, program := range []string{"iptables-save", "ip6tables-save"} {
		out, err := exec.CommandContext(context.Background(), program).Output()
		if err != nil {
			t.Fatalf("%s: %v", program, err)
		}
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, string(id)) {
				rules = append(rules, strings.TrimSpace(line))
			}
		}
	}
	return rules
}

// Where the owner allows rules, what is listed can be reached and nothing else,
// and the rules go with the sandbox.
func TestNetworksOnAllowlist(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	s := newSite(t)
	s.config.Host.AllowFirewall = true
	b := s.open(t)
	image := hosttest.Image(t)
	for _, at := range []string{o.first + ":8443", o.first + ":8444", o.second + ":8443"} {
		serve(t, o.listen(t, at), hello)
	}
	echo := o.packets(t, o.first+":8443")
	go func() {
		buffer := make([]byte, 512)
		for {
			n, from, err := echo.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = echo.WriteTo(buffer[:n], from)
		}
	}()
	t.Cleanup(func() { _ = echo.Close() })

	mine, neighbour := s.spec(t), s.spec(t)
	rules := []extensions.EgressRule{{CIDR: o.first + "/32", Port: 8443}, {CIDR: "0.0.0.0/0", Port: 8081}}
	for _, spec := range []*extensions.Spec{&mine, &neighbour} {
		spec.Image, spec.Containers = nil, stack(image)
		spec.Network.Egress = rules
		*spec = onImage(t, *spec)
	}
	h := s.provision(t, b, mine)
	s.provision(t, b, neighbour)
	agent, other := containerOf(t, mine.ID, "agent"), containerOf(t, neighbour.ID, "peer")
	if len(rulesOf(t, mine.ID)) == 0 {
		t.Fatal("no rule carries the id")
	}
	e := listen(t)
	four, six := hostAddresses(t)

	var p strings.Builder
	add := func(format string, args ...any) { fmt.Fprintf(&p, format+"\n", args...) }
	add(`par(\&try_tcp, "allowed TCP", "%s", 8443); par(\&try_udp, "allowed UDP", "%s", 8443);`, o.first, o.first)
	add(`par(\&try_tcp, "allowed peer", inet_ntoa(scalar gethostbyname("peer")), 8080);`)
	add(`par(\&try_tcp, "other port", "%s", 8444); par(\&try_tcp, "other address", "%s", 8443); par(\&try_icmp, "ping", "%s");`, o.first,
		o.second, o.first)
	for _, ip := range append([]string{gatewayOf(addressOf(t, agent)), o.here}, four...) {
		for _, port := range []int{e.port, 8081, s.server.Port} {
			add(`par(\&try_tcp, "host %s %d", "%[1]s", %[2]d); par(\&try_udp, "host UDP %[1]s %[2]d", "%[1]s", %[2]d);`, ip, port)
		}
		add(`par(\&try_icmp, "host ping %s", "%[1]s"); par(\&try_udp, "host DNS %[1]s", "%[1]s", 53, 0, query("outside.example.org"));`, ip)
	}
	add(`par(\&try_udp, "all", "255.255.255.255", %d);`, e.port)
	add(`par(\&try_tcp, "neighbour", "%s", 8080); par(\&try_tcp, "neighbour on an allowed port", "%[1]s", 8081);`, addressOf(t, other))
	add(`par(\&try_tcp, "metadata", "169.254.169.254", 8081); par(\&try_name, "name", "outside.example.org");`)
	add(`par(\&try_dns, "DNS", 0); par(\&try_socket, "raw IP", AF_INET, SOCK_RAW, 1); par(\&try_socket, "raw frame", 17, SOCK_RAW, 0x0300);`)
	for _, ip := range append([]string{"fe80::1", "ff02::1"}, six...) {
		add(`par(\&try_six, "IPv6 %s", "%[1]s", %d);`, ip, e.port)
	}
	answers := inside(t, agent, p.String())
	// The bridge of another test's network may have gone meanwhile, and with it an
	// address of the host's: what answers there then is the world, which may.
	still, _ := hostAddresses(t)
	gone := slices.DeleteFunc(slices.Clone(four), func(ip string) bool { return slices.Contains(still, ip) })
	for name, end := range answers {
		if words := strings.Fields(name); slices.ContainsFunc(gone, func(ip string) bool { return slices.Contains(words, ip) }) {
			continue
		}
		if answered := strings.HasPrefix(end, "answered"); answered != strings.HasPrefix(name, "allowed") {
			t.Errorf("%s: %s", name, end)
		}
	}
	time.Sleep(100 * time.Millisecond)
	if heard := e.takeHeard(); len(heard) > 0 {
		t.Errorf("the host heard %q", heard)
	}

	// The host can reach in, which is what forwarding of ports needs.
	c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(t.Context(), "tcp",
		net.JoinHostPort(addressOf(t, containerOf(t, mine.ID, "peer")), "8080"))
	if err != nil {
		t.Errorf("reaching in: %v", err)
	} else {
		_ = c.Close()
	}

	_, err = b.Teardown(t.Context(), h)
	must(t, err)
	if left := rulesOf(t, mine.ID); len(left) > 0 {
		t.Errorf("rules left behind: %q", left)
	}
	if len(rulesOf(t, neighbour.ID)) == 0 {
		t.Error("the neighbour's rules went too")
	}
}

// Rules that something on the host removed are put back at the next look.
func TestLostRulesComeBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b, spec, _ := s.guarded(t)
	s.pauseLoop(t)
	before := loseRules(t, spec.ID)
	if len(rulesOf(t, spec.ID)) == len(before) {
		t.Fatal("no rule could be removed")
	}
	if _, err := b.Status(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	after := rulesOf(t, spec.ID)
	slices.Sort(after)
	if !slices.Equal(before, after) {
		t.Errorf("rules: %q, before they were %q", after, before)
	}
}

// A profile that asks for published ports under default deny gets them on the
// loopback where the owner allows rules, and the network stays shut.
func TestPortsUnderDenyWithTheOwnersLeave(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	publish := exttest.With(func(sp *extensions.Spec) { sp.Options = map[string]any{"publish": publishLoopback} })
	b := s.open(t)
	if h, _, err := b.Provision(t.Context(), s.stack(t, threeServices, publish)); !extensions.IsKind(err, extensions.KindInvalid) ||
		!strings.Contains(err.Error(), "ports-under-deny") || !h.IsZero() {
		t.Errorf("without leave: %v", err)
	}
	s.config.Host.AllowFirewall = true
	b = s.open(t)
	spec := s.stack(t, threeServices, publish)
	_, o, err := b.Provision(t.Context(), spec)
	s.tearDownAtEnd(t, spec.ID)
	must(t, err)
	address := o.Reachability.Ports["web/80"]
	if !strings.HasPrefix(address, "127.0.0.1:") {
		t.Fatalf("ports: %v", o.Reachability.Ports)
	}
	c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(t.Context(), "tcp", address)
	must(t, err)
	must(t, c.Close())
	// Without our rules, too, nothing that leaves would be answered.
	for _, network := range strings.Fields(docker(t, "network", "ls", "-q", "--filter", "label="+extensions.LabelID+"="+string(spec.ID))) {
		if on := docker(t, "network", "inspect", "-f", `{{index .Options "com.docker.network.bridge.enable_ip_masquerade"}}`,
			network); on != "false" {
			t.Errorf("the network is masqueraded: %q", on)
		}
	}
	e := listen(t)
	four, _ := hostAddresses(t)
	var p strings.Builder
	for _, ip := range four {
		fmt.Fprintf(&p, "par(\\&try_tcp, \"host %s\", \"%[1]s\", %d);\n", ip, e.port)
	}
	for name, end := range inside(t, containerOf(t, spec.ID, "web"), p.String()) {
		if strings.HasPrefix(end, "answered") {
			t.Errorf("%s: %s", name, end)
		}
	}
}

// runScript runs text behind functions of sh/ on the backend's host.
func runScript(t testing.TB, b *Backend, text string, vars map[string]string, files ...string) map[string]string {
	t.Helper()
	all := map[string]string{"root": b.settings.root, "account": b.settings.account, "id": "", "lock_wait": "60", "deny_proved": ""}
	maps.Copy(all, subnetVars(b.settings.subnets, b.settings.subnetSize, nil))
	maps.Copy(all, vars)
	answer := map[string]string{}
	if err := b.client.Call(t.Context(), remote.Call{Script: script(files...) + text + "\n", Vars: all}, &answer); err != nil {
		answer["failure"] = err.Error()
	}
	return answer
}

// A network's device is up, whichever ip the host has.
func TestDevicesAreUp(t *testing.T) {
	t.Parallel()
	b := newSite(t).open(t)
	for name, ip := range map[string]string{"iproute2": "", "busybox": "ip() { busybox ip \"$@\"; }\n"} {
		id, err := extensions.NewID(nil)
		must(t, err)
		a := runScript(t, b, ip+`deny_device 0
deny_parents "$device" || :
{ IFS= read -r flags <"/sys/class/net/$device/flags"; } 2>/dev/null
deny_down
answer "{\"up\":\"$((${flags:-0} & 1))\",\"found\":$(json_string "$deny_found$warnings")}"`, map[string]string{"id": string(id)}, "firewall")
		if a["up"] != "1" || a["found"] != "" || a["failure"] != "" {
			t.Errorf("%s: %v", name, a)
		}
		if left := devices(t, id); len(left) > 0 {
			t.Errorf("%s: devices left behind: %q", name, left)
		}
	}
}

// Without the owner's word no rule is placed: the spec is refused, and nothing
// was made.
func TestAllowlistsNeedTheOwner(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	before := s.residue(t)
	for _, rule := range []extensions.EgressRule{{CIDR: "198.51.100.0/24", Port: 443}, {Domain: "example.org", Port: 443}} {
		spec := s.spec(t)
		spec.Network.Egress = []extensions.EgressRule{rule}
		h, _, err := b.Provision(t.Context(), onImage(t, spec))
		if !extensions.IsKind(err, extensions.KindUnsupported) || extensions.RemedyOf(err) == "" {
			t.Errorf("%v: %v, remedy %q", rule, err, extensions.RemedyOf(err))
		}
		if !h.IsZero() {
			t.Errorf("%v: a handle came back", rule)
		}
	}
	if after := s.left(t, before); len(after) > 0 {
		t.Errorf("made: %q", after)
	}
}
