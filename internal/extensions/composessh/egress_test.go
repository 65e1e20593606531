package composessh

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// A program inside a sandbox that tries to get out in every way an ordinary
// process has. It prints one line per try: what, and "answered" or why not.
const outward = `
use strict; use Socket; use IO::Select; use Fcntl; use Errno;
$| = 1;
sub out { my ($name, $end) = @_; syswrite(STDOUT, "$name\t$end\n") }
sub par { my $try = shift; return if fork; $try->(@_); exit }
END { 1 while wait > 0; $? = 0 }
sub try_tcp { my ($name, $ip, $port, $near) = @_; socket(my $s, AF_INET, SOCK_STREAM, 0) or return out($name, "no socket");
	if ($near) { setsockopt($s, SOL_SOCKET, 25, "eth0\0"); setsockopt($s, SOL_SOCKET, 5, pack("i", 1)) }
	fcntl($s, F_SETFL, O_NONBLOCK); my $ok = connect($s, sockaddr_in($port, inet_aton($ip)));
	if (!$ok && $!{EINPROGRESS}) { my @w = IO::Select->new($s)->can_write(0.6); return out($name, "silent") unless @w; $! = unpack("i", getsockopt($s, SOL_SOCKET, SO_ERROR)); $ok = !($! + 0) }
	out($name, $ok ? "answered" : $!{ECONNREFUSED} ? "answered: refused" : "$!") }
sub try_udp { my ($name, $ip, $port, $near, $data) = @_; socket(my $s, AF_INET, SOCK_DGRAM, 0) or return out($name, "no socket");
	setsockopt($s, SOL_SOCKET, SO_BROADCAST, pack("i", 1));
	if ($near) { setsockopt($s, SOL_SOCKET, 25, "eth0\0"); setsockopt($s, SOL_SOCKET, 5, pack("i", 1)) }
	connect($s, sockaddr_in($port, inet_aton($ip))) or return out($name, "$!"); send($s, $data // "from inside: $name", 0) or return out($name, "$!");
	IO::Select->new($s)->can_read(0.4) or return out($name, "silent"); defined sysread($s, my $b, 512) ? out($name, "answered") : out($name, $!{ECONNREFUSED} ? "answered: refused" : "$!") }
sub try_icmp { my ($name, $ip) = @_; socket(my $s, AF_INET, SOCK_DGRAM, 1) or return out($name, "no socket"); connect($s, sockaddr_in(0, inet_aton($ip))) or return out($name, "$!");
	send($s, pack("CCnnn", 8, 0, 0, 1, 1), 0) or return out($name, "$!"); out($name, IO::Select->new($s)->can_read(0.4) ? "answered" : "silent") }
sub try_six { my ($name, $ip, $port) = @_; socket(my $s, AF_INET6, SOCK_DGRAM, 0) or return out($name, "no socket"); setsockopt($s, SOL_SOCKET, 25, "eth0\0");
	my $to = Socket::pack_sockaddr_in6($port, Socket::inet_pton(AF_INET6, $ip), $ip =~ /^f[ef]/ ? 2 : 0); send($s, "from inside: $name", 0, $to) or return out($name, "$!"); out($name, "answered: sent") }
sub try_name { my ($name, $host) = @_; my $got = gethostbyname($host); out($name, $got ? "answered: " . inet_ntoa($got) : "no such name") }
sub query { pack("nnnnnn", 7, 256, 1, 0, 0, 0) . join("", map { pack("C/a*", $_) } split /\./, shift) . pack("Cnn", 0, 1, 1) }
sub try_dns { my ($name, $tcp) = @_; my ($server) = do { open(my $f, "<", "/etc/resolv.conf"); map { /^nameserver\s+([\d.]+)/ ? $1 : () } <$f> };
	my $q = query("outside.example.org"); socket(my $s, AF_INET, $tcp ? SOCK_STREAM : SOCK_DGRAM, 0); connect($s, sockaddr_in(53, inet_aton($server))) or return out($name, "$!");
	syswrite($s, $tcp ? pack("n/a*", $q) : $q); IO::Select->new($s)->can_read(1.5) or return out($name, "silent"); my $n = sysread($s, my $b, 512) or return out($name, "closed");
	$b = substr($b, 2) if $tcp; my $code = ord(substr($b, 3, 1)) & 15; out($name, $code == 0 || $code == 3 ? "answered: code $code" : "code $code") }
sub try_socket { my ($name, @how) = @_; socket(my $s, $how[0], $how[1], $how[2]) ? out($name, "answered: given") : out($name, "$!") }
`

// stack is an agent and a service beside it that answers on port 8080.
func stack(image string) *extensions.Containers {
	return &extensions.Containers{
		Agent: extensions.Container{Image: extensions.Image{Pull: image}, Command: []string{"sleep", "3600"}},
		Services: map[string]extensions.Container{
			"peer": {Image: extensions.Image{Pull: image}, Command: []string{"httpd", "-f", "-p", "8080", "-h", "/var/www"}, Hostname: "peer-of-" +
				strings.ToLower(randomName())},
		},
	}
}

func randomName() string {
	id, err := extensions.NewID(nil)
	if err != nil {
		panic(err)
	}
	return string(id)[4:14]
}

// containerOf is the container of a sandbox's service.
func containerOf(t testing.TB, id extensions.ID, service string) string {
	t.Helper()
	return docker(t, "ps", "-q", "--filter", "label="+extensions.LabelID+"="+string(id), "--filter",
		"label=com.docker.compose.service="+service)
}

// addressOf is the container's address on its only network.
func addressOf(t testing.TB, container string) string {
	t.Helper()
	return docker(t, "inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", container)
}

// inside runs perl with the program beside a container's processes: in its
// network, with no more rights than they have. The answer is by name of the try.
func inside(t testing.TB, container, program string) map[string]string {
	t.Helper()
	if _, err := os.Stat("/usr/bin/perl"); err != nil {
		t.Skip("there is no /usr/bin/perl")
	}
	args := []string{"run", "--rm", "--network", "container:" + container, "--cap-drop", "NET_RAW", "--cap-drop", "NET_ADMIN",
		"--security-opt", "no-new-privileges", "-v", "/usr:/usr:ro", "-v", "/lib:/lib:ro"}
	if _, err := os.Stat("/lib64"); err == nil {
		args = append(args, "-v", "/lib64:/lib64:ro")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", append(args, hosttest.Image(t), "/usr/bin/perl", "-e", outward+program)...).CombinedOutput()
	if err != nil {
		t.Fatalf("inside: %v: %s", err, out)
	}
	answers := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if name, end, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			answers[name] = end
		}
	}
	return answers
}

// hostAddresses are this machine's, without its loopback.
func hostAddresses(t testing.TB) (four, six []string) {
	t.Helper()
	all, err := net.InterfaceAddrs()
	must(t, err)
	for _, a := range all {
		n, ok := a.(*net.IPNet)
		switch {
		case !ok || n.IP.IsLoopback():
		case n.IP.To4() != nil:
			four = append(four, n.IP.String())
		default:
			six = append(six, n.IP.String())
		}
	}
	return four, six
}

// Under default deny nothing outside the sandbox can be reached or told
// anything, in any way that a process inside has.
func TestNothingGetsOut(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	image := hosttest.Image(t)
	mine, neighbour := s.spec(t), s.spec(t)
	mine.Image, mine.Containers = nil, stack(image)
	neighbour.Image, neighbour.Containers = nil, stack(image)
	s.provision(t, b, onImage(t, mine))
	s.provision(t, b, onImage(t, neighbour))
	agent, other := containerOf(t, mine.ID, "agent"), containerOf(t, neighbour.ID, "peer")
	e := listen(t)
	four, six := hostAddresses(t)
	own := addressOf(t, agent)

	// The tools work, and somebody listens.
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", fmt.Sprintf("%s:%d", four[0], e.port))
	must(t, err)
	must(t, c.Close())
	control := inside(t, agent, fmt.Sprintf(`
try_name("peer", "peer"); try_tcp("peer port", inet_ntoa(scalar gethostbyname("peer")), 8080); try_tcp("own closed port", "%s", 9); try_icmp("peer ping", inet_ntoa(scalar gethostbyname("peer")));
try_name("neighbour by alias", "%s"); try_udp("peer datagram", inet_ntoa(scalar gethostbyname("peer")), 9);`, own, neighbour.Containers.Services["peer"].Hostname))
	for _, name := range []string{"peer", "peer port", "own closed port", "peer ping", "peer datagram"} {
		if !strings.HasPrefix(control[name], "answered") {
			t.Errorf("control: %s: %q", name, control[name])
		}
	}
	if strings.HasPrefix(control["neighbour by alias"], "answered") {
		t.Errorf("the neighbour's service has a name here: %q", control["neighbour by alias"])
	}
	if heard := e.takeHeard(); len(heard) != 1 {
		t.Fatalf("control: heard %q", heard)
	}

	var p strings.Builder
	tries := 0
	add := func(format string, args ...any) {
		tries++
		fmt.Fprintf(&p, format+"\n", args...)
	}
	gateway := gatewayOf(own, addressOf(t, containerOf(t, mine.ID, "peer")))
	sshd := s.server.Port
	for _, ip := range append([]string{gateway, "169.254.169.254", "198.51.100.7", addressOf(t, other)}, four...) {
		add(`par(\&try_tcp, "TCP %s", "%[1]s", %d);`, ip, e.port)
		add(`par(\&try_tcp, "TCP past the routes %s", "%[1]s", %d, 1);`, ip, e.port)
		add(`par(\&try_udp, "UDP %s", "%[1]s", %d);`, ip, e.port)
		add(`par(\&try_udp, "UDP past the routes %s", "%[1]s", %d, 1);`, ip, e.port)
		add(`par(\&try_udp, "DNS at %s", "%[1]s", 53, 0, query("outside.example.org"));`, ip)
		add(`par(\&try_icmp, "ICMP %s", "%[1]s");`, ip)
	}
	for _, ip := range append([]string{"fe80::1", "ff02::1", "ff02::fb", "2001:db8::7"}, six...) {
		add(`par(\&try_six, "IPv6 %s", "%[1]s", %d);`, ip, e.port)
	}
	for _, ip := range []string{"255.255.255.255", "224.0.0.1", "224.0.0.251", broadcastOf(own)} {
		add(`par(\&try_udp, "to all %s", "%[1]s", %d);`, ip, e.port)
		add(`par(\&try_udp, "to all past the routes %s", "%[1]s", %d, 1);`, ip, e.port)
	}
	add(`par(\&try_tcp, "sshd of the host", "%s", %d);`, four[0], sshd)
	add(`par(\&try_tcp, "port of the neighbour", "%s", 8080);`, addressOf(t, other))
	for _, name := range []string{"host.docker.internal", "gateway.docker.internal", "outside.example.org",
		neighbour.Containers.Services["peer"].Hostname, string(neighbour.ID) + "-peer-1"} {
		add(`par(\&try_name, "name %s", "%[1]s");`, name)
	}
	add(`par(\&try_dns, "DNS by UDP", 0);`)
	add(`par(\&try_dns, "DNS by TCP", 1);`)
	add(`par(\&try_socket, "raw IP", AF_INET, SOCK_RAW, 1);`)
	add(`par(\&try_socket, "raw frame", 17, SOCK_RAW, 0x0300);`)
	add(`par(\&try_socket, "raw ARP", 17, SOCK_DGRAM, 0x0608);`)
	answers := inside(t, agent, p.String())
	if len(answers) != tries || tries < 40 {
		t.Errorf("%d tries, %d ends", tries, len(answers))
	}
	for name, end := range answers {
		// A datagram to all of one's own network is no way out: the ears tell.
		if strings.HasPrefix(end, "answered") && !strings.HasPrefix(name, "to all") {
			t.Errorf("%s: %s", name, end)
		}
	}
	time.Sleep(200 * time.Millisecond)
	if heard := e.takeHeard(); len(heard) > 0 {
		t.Errorf("the host heard %q", heard)
	}
	peer := containerOf(t, mine.ID, "peer")
	docker(t, "exec", "-d", peer, "nc", "-ll", "-p", "7005", "-e", "cat")
	const ask = "n=0; until echo inside | nc -w 5 peer 7005 2>/dev/null || [ $((n += 1)) -gt 100 ]; do sleep 0.1; done"
	if got := docker(t, "exec", agent, "sh", "-c", ask); got != "inside" {
		t.Errorf("control: the echo inside: %q", got)
	}
	if echoes(net.JoinHostPort(addressOf(t, peer), "7005")) {
		t.Error("the host reaches a port inside")
	}
	for _, service := range []string{"agent", "peer"} {
		status := docker(t, "exec", containerOf(t, mine.ID, service), "cat", "/proc/1/status")
		if caps := capabilities(t, status); caps&(1<<12|1<<13) != 0 {
			t.Errorf("%s may have raw sockets: %x", service, caps)
		}
	}
	t.Logf("%d tries", tries)
	if _, err := b.Teardown(t.Context(), b.handle(mine.ID)); err != nil {
		t.Error(err)
	}
	if left := devices(t, mine.ID); len(left) > 0 {
		t.Errorf("devices left behind: %q", left)
	}
}

// capabilities is the bounding set of a process.
func capabilities(t testing.TB, status string) uint64 {
	t.Helper()
	var set uint64
	i := strings.Index(status, "CapBnd:")
	if i < 0 {
		t.Fatal("no capabilities in the status")
	}
	_, err := fmt.Sscanf(status[i:], "CapBnd: %x", &set)
	must(t, err)
	return set
}

// gatewayOf is the first address of a /28 that is not one of these. Engines since
// 28 keep none for a gateway where a network has none.
func gatewayOf(ours ...string) string {
	a := slices.Clone(net.ParseIP(ours[0]).To4())
	for a[3] = a[3]&0xf0 + 1; slices.Contains(ours, a.String()); a[3]++ {
	}
	return a.String()
}

// broadcastOf is the last address of a /28.
func broadcastOf(ip string) string {
	a := slices.Clone(net.ParseIP(ip).To4())
	a[3] |= 0x0f
	return a.String()
}
