package exttest

import (
	"bytes"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"
)

// The bounds of what a Listener of this machine waits for and keeps.
const (
	listenPatience = 3 * time.Second // Heard
	listenDeadline = 10 * time.Second
	listenMost     = 4 << 10 // bytes of one connection
)

// ListenOn listens at an address of this machine, by TCP and UDP on one port, until the test ends. send has, by its
// way, the command that sends a word there from inside.
func ListenOn(t testing.TB, address string, send map[string]func(address, port, word string) []string) Listener {
	t.Helper()
	tcp, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatalf("listen at %s: %v", address, err)
	}
	to := tcp.Addr().(*net.TCPAddr)
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: to.IP, Port: to.Port})
	if err != nil {
		_ = tcp.Close()
		t.Fatalf("listen at %s: %v", to, err)
	}
	h := &heard{}
	var running sync.WaitGroup
	t.Cleanup(func() {
		_, _ = tcp.Close(), udp.Close()
		running.Wait()
	})
	running.Go(func() {
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer func() { _ = c.Close() }()
				_ = c.SetDeadline(time.Now().Add(listenDeadline))
				b, _ := io.ReadAll(io.LimitReader(c, listenMost))
				h.add(b)
			})
		}
	})
	running.Go(func() {
		buffer := make([]byte, listenMost)
		for {
			n, _, err := udp.ReadFrom(buffer)
			if err != nil {
				return
			}
			h.add(buffer[:n])
		}
	})
	l := Listener{CIDR: netip.PrefixFrom(to.AddrPort().Addr().Unmap(), to.AddrPort().Addr().Unmap().BitLen()).String(), Port: to.Port,
		Heard: h.within, Send: map[string]func(string) []string{}}
	for way, command := range send {
		l.Send[way] = func(word string) []string { return command(address, strconv.Itoa(to.Port), word) }
	}
	return l
}

type heard struct {
	mu  sync.Mutex
	all []byte
}

func (h *heard) add(b []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, b...)
}

func (h *heard) within(word string) bool {
	for end := time.Now().Add(listenPatience); ; time.Sleep(20 * time.Millisecond) {
		h.mu.Lock()
		found := bytes.Contains(h.all, []byte(word))
		h.mu.Unlock()
		if found || time.Now().After(end) {
			return found
		}
	}
}
