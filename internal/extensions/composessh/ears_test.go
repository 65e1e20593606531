package composessh

import (
	"fmt"
	"net"
	"sync"
	"testing"
)

// ears listen on every address of this machine, on one port of TCP and UDP, and
// remember what they were told.
type ears struct {
	port  int
	tcp   net.Listener
	udp   net.PacketConn
	mu    sync.Mutex
	heard []string
	wg    sync.WaitGroup
}

func listen(t testing.TB) *ears {
	t.Helper()
	var e ears
	var err error
	config := net.ListenConfig{}
	for range 20 {
		e.tcp, err = config.Listen(t.Context(), "tcp", ":0")
		must(t, err)
		e.port = e.tcp.Addr().(*net.TCPAddr).Port
		if e.udp, err = config.ListenPacket(t.Context(), "udp", fmt.Sprintf(":%d", e.port)); err == nil {
			break
		}
		must(t, e.tcp.Close())
	}
	must(t, err)
	e.wg.Go(func() {
		for {
			c, err := e.tcp.Accept()
			if err != nil {
				return
			}
			e.hear("TCP from " + c.RemoteAddr().String())
			_, _ = c.Write([]byte("heard\n"))
			_ = c.Close()
		}
	})
	e.wg.Go(func() {
		buffer := make([]byte, 2048)
		for {
			n, from, err := e.udp.ReadFrom(buffer)
			if err != nil {
				return
			}
			e.hear(fmt.Sprintf("UDP from %s: %q", from, buffer[:n]))
			_, _ = e.udp.WriteTo([]byte("heard"), from)
		}
	})
	t.Cleanup(func() {
		_ = e.tcp.Close()
		_ = e.udp.Close()
		e.wg.Wait()
	})
	return &e
}

func (e *ears) hear(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard = append(e.heard, what)
}

// takeHeard returns what was heard since the last time.
func (e *ears) takeHeard() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	heard := e.heard
	e.heard = nil
	return heard
}
