package composessh

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// outside is a machine beyond this one: a network namespace with two addresses,
// which packets reach only by being forwarded.
type outside struct {
	name   string
	here   string // this machine's address on the way there
	first  string
	second string
}

func newOutside(t testing.TB) *outside {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can make a network namespace")
	}
	for _, program := range []string{"ip", "iptables"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	tag := strings.ToLower(randomName())[:6]
	// Documentation addresses: somebody's, but nobody's here.
	net3 := []string{"198.51.100", "203.0.113"}[rand.IntN(2)]
	base := 8 * (1 + rand.IntN(30))
	o := &outside{name: "sbxtest-" + tag, here: fmt.Sprintf("%s.%d", net3, base+1), first: fmt.Sprintf("%s.%d", net3, base+2),
		second: fmt.Sprintf("%s.%d", net3, base+3)}
	ip := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %q: %v: %s", args, err, out)
		}
	}
	ip("netns", "add", o.name)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", o.name).Run() })
	ip("link", "add", "vh"+tag, "type", "veth", "peer", "name", "vo"+tag, "netns", o.name)
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", "vh"+tag).Run() })
	ip("addr", "add", o.here+"/29", "dev", "vh"+tag)
	ip("link", "set", "vh"+tag, "up")
	ip("-n", o.name, "addr", "add", o.first+"/29", "dev", "vo"+tag)
	ip("-n", o.name, "addr", "add", o.second+"/29", "dev", "vo"+tag)
	ip("-n", o.name, "link", "set", "vo"+tag, "up")
	ip("-n", o.name, "link", "set", "lo", "up")
	ip("-n", o.name, "route", "add", "default", "via", o.here)
	return o
}

// within runs f with the namespace's network: what it opens stays there.
func (o *outside) within(t testing.TB, f func() error) {
	t.Helper()
	done := make(chan error)
	go func() {
		// The thread keeps the namespace, so it must end with this goroutine.
		runtime.LockOSThread()
		ns, err := os.Open("/run/netns/" + o.name)
		if err == nil {
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
			_ = ns.Close()
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// listen opens a TCP listener in the namespace.
func (o *outside) listen(t testing.TB, addr string) net.Listener {
	t.Helper()
	var l net.Listener
	o.within(t, func() (err error) {
		l, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp4", addr)
		return err
	})
	return l
}

// packets opens a UDP socket in the namespace.
func (o *outside) packets(t testing.TB, addr string) net.PacketConn {
	t.Helper()
	var c net.PacketConn
	o.within(t, func() (err error) {
		c, err = (&net.ListenConfig{}).ListenPacket(t.Context(), "udp4", addr)
		return err
	})
	return c
}
