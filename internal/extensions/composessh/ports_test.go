package composessh

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// echo makes a service send back what it gets at one port, of all addresses, and
// serve files at another, of its own loopback only.
func echo(t testing.TB, b *Backend, h extensions.Handle) (open, inside int) {
	t.Helper()
	run(t, b, h, extensions.ExecRequest{Shell: "nc -ll -p 7001 -e cat </dev/null >/dev/null 2>&1 & httpd -p 127.0.0.1:7002 -h /etc; " + listens("1B59") + listens("1B5A")})
	return 7001, 7002
}

// bounce sends data, closes that direction, and wants it back and then the end.
func bounce(t testing.TB, c net.Conn, data string) {
	t.Helper()
	must(t, c.SetDeadline(time.Now().Add(30*time.Second)))
	go func() {
		_, _ = io.WriteString(c, data)
		_ = c.(interface{ CloseWrite() error }).CloseWrite()
	}()
	got, err := io.ReadAll(c)
	if err != nil || string(got) != data {
		t.Errorf("%d of %d bytes came back, %v", len(got), len(data), err)
	}
}

// fetch gets a page and then the end.
func fetch(t testing.TB, c net.Conn) {
	t.Helper()
	must(t, c.SetDeadline(time.Now().Add(30*time.Second)))
	_, err := io.WriteString(c, "GET /passwd HTTP/1.0\r\n\r\n")
	must(t, err)
	page, err := io.ReadAll(c)
	if err != nil || !strings.Contains(string(page), "200 OK") {
		t.Errorf("%q, %v", page, err)
	}
}

// checkPorts connects to services that the host has no way to.
func checkPorts(t testing.TB, s *site, b *Backend, h extensions.Handle) {
	t.Helper()
	open, inside := echo(t, b, h)
	c, err := b.Dial(t.Context(), h, "web", open)
	must(t, err)
	bounce(t, c, strings.Repeat("0123456789abcdef", 1<<16))
	must(t, c.Close())
	for service, port := range map[string]int{"web": inside, "db": 8080} {
		c, err := b.Dial(t.Context(), h, service, port)
		must(t, err)
		fetch(t, c)
		must(t, c.Close())
	}
	_, err = b.Dial(t.Context(), h, "web", 7999)
	wantKind(t, "a port nobody listens at", err, extensions.KindUnavailable, "7999")
	_, err = b.Dial(t.Context(), h, "nope", 80)
	wantKind(t, "an unknown service", err, extensions.KindInvalid, "web")
	for _, p := range s.server.Processes() {
		if strings.Contains(p.String(), "RELAY") || strings.Contains(p.String(), "nsenter") {
			t.Errorf("a relay is left: %s", p)
		}
	}
}

func TestEveryRelayServes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.several(t, b, "web")
	open, inside := echo(t, b, h)
	for _, tools := range []string{"perl", "python3", "nc", "bash"} {
		for _, port := range []int{open, inside} {
			c, err := b.dial(t.Context(), h, "", port, tools)
			if extensions.IsKind(err, extensions.KindUnsupported) {
				t.Logf("%s is not here", tools)
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", tools, err)
				continue
			}
			if port == inside {
				fetch(t, c)
			} else if tools == "bash" { // which cannot close one direction
				must(t, c.SetDeadline(time.Now().Add(30*time.Second)))
				_, err = io.WriteString(c, "there")
				must(t, err)
				got := make([]byte, 5)
				if _, err := io.ReadFull(c, got); err != nil || string(got) != "there" {
					t.Errorf("bash: %q, %v", got, err)
				}
			} else {
				bounce(t, c, strings.Repeat(tools, 100_000))
			}
			must(t, c.Close())
		}
		_, err := b.dial(t.Context(), h, "", 7999, tools)
		if !extensions.IsKind(err, extensions.KindUnavailable) && !extensions.IsKind(err, extensions.KindUnsupported) {
			t.Errorf("%s, where nobody listens: %v", tools, err)
		}
	}
	_, err := b.dial(t.Context(), h, "", open, "no-such-tool")
	wantKind(t, "a host without tools", err, extensions.KindUnsupported)
}

func TestAConnectionEndsWhenItIsClosed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.provision(t, b, s.spec(t))
	// A service that never sends, never reads and never closes.
	run(t, b, h, extensions.ExecRequest{Shell: "nc -ll -p 7003 -e sleep 1000 </dev/null >/dev/null 2>&1 & " + listens("1B5B")})
	c, err := b.Dial(t.Context(), h, "", 7003)
	must(t, err)
	must(t, c.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a deadline passed, and reading says %v", err)
	}
	must(t, c.Close())
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("reading what is closed: %v", err)
	}
	for _, p := range s.server.Processes() {
		if strings.Contains(p.String(), "perl") || strings.Contains(p.String(), "nsenter") {
			t.Errorf("a relay is left: %s", p)
		}
	}
}

func TestWhereTheHostHasAWayItIsTaken(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.provision(t, b, s.spec(t, exttest.With(func(sp *extensions.Spec) { sp.Network.Default = "allow" })))
	open, inside := echo(t, b, h)
	for port, relayed := range map[int]bool{open: false, inside: true} {
		c, err := b.Dial(t.Context(), h, "", port)
		must(t, err)
		if _, is := c.(*relayConn); is != relayed {
			t.Errorf("port %d goes through a relay: %t, want %t", port, is, relayed)
		}
		if port == inside {
			fetch(t, c)
		} else {
			bounce(t, c, "there and back")
		}
		must(t, c.Close())
	}
}

// listens is a command that waits until something listens at a TCP port, written as the kernel's table has it.
func listens(port string) string {
	return "until grep -q ':" + port + " [0-9A-F:]* 0A ' /proc/net/tcp /proc/net/tcp6; do sleep 0.1; done; "
}
