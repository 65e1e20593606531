package composessh

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// A service that is alone answers by all its names and to whoever forwards its port, and has nothing else that leads
// anywhere.
func TestASandboxThatIsAloneHasItsLoopback(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	before := s.residue(t)
	h := s.provision(t, b, s.stack(t, `
services:
  web:
    image: IMAGE
    command: [sh, -c, "nc -ll -p 7001 -e cat"]
    hostname: box
    networks: { default: { aliases: [shop] } }
    ports: ["7001:7001"]
`, exttest.With(func(sp *extensions.Spec) {
		sp.Options = map[string]any{"publish": publishNone}
		sp.Readiness = &extensions.Probe{TCP: "web:7001", Interval: extensions.Duration(300 * time.Millisecond), Timeout: extensions.Duration(time.Minute)}
	})))
	r := run(t, b, h, extensions.ExecRequest{Shell: `hostname; ls /sys/class/net; cat /proc/net/route /proc/net/ipv6_route | grep -v ' lo$' | wc -l
for name in web box shop localhost; do echo hello | nc "$name" 7001 || echo "$name"; done
nslookup outside.example.org >/dev/null 2>&1 || echo unknown`})
	if got := strings.Join(strings.Fields(string(r.Stdout)), " "); got != "box lo 1 hello hello hello hello unknown" {
		t.Errorf("inside: %q, %q", got, r.Stderr)
	}
	c, err := b.Dial(t.Context(), h, "web", 7001)
	must(t, err)
	bounce(t, c, strings.Repeat("0123456789abcdef", 1<<10))
	must(t, c.Close())
	if left := docker(t, "network", "ls", "-q", "--filter", "label="+extensions.LabelID+"="+string(h.ID)); left != "" {
		t.Errorf("it has the network %s", left)
	}
	if left := devices(t, h.ID); len(left) > 0 {
		t.Errorf("it has the devices %q", left)
	}
	if o := s.observe(t, b, h); o.Phase != extensions.PhaseReady {
		t.Errorf("it is %s: %s", o.Phase, o.Reason)
	}
	report, err := b.Teardown(t.Context(), h)
	must(t, err)
	if got := strings.Join(report.Removed, " "); got != "containers folder" {
		t.Errorf("removed: %s", got)
	}
	if left := s.left(t, before); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// The loopback of one is not that of another, nor the host's.
func TestSandboxesThatAreAloneDoNotMeet(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(t, err)
	one, other := s.provision(t, b, s.spec(t)), s.provision(t, b, s.spec(t))
	run(t, b, one, extensions.ExecRequest{Shell: "nc -ll -p 7003 -e cat </dev/null >/dev/null 2>&1 & " + listens("1B5B")})
	for _, c := range []struct {
		at         extensions.Handle
		port, want string
	}{{one, "7003", "hello"}, {other, "7003", "refused"}, {other, port, "refused"}} {
		r := run(t, b, c.at, extensions.ExecRequest{Shell: "echo hello | nc -w 5 127.0.0.1 " + c.port + " 2>/dev/null || echo refused"})
		if got := strings.TrimSpace(string(r.Stdout)); got != c.want {
			t.Errorf("%s at %s: %q", c.at.ID, c.port, got)
		}
	}
	if mode := docker(t, "inspect", "-f", "{{.HostConfig.NetworkMode}}", containerOf(t, one.ID, "agent")); mode != "none" {
		t.Errorf("%s: the image's container has the network %s", hosttest.Image(t), mode)
	}
}
