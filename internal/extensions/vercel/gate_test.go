package vercel_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// gate stands before an address of the vendor's and can be shut for good.
type gate struct {
	url   string
	front net.Listener
	mu    sync.Mutex
	open  map[net.Conn]bool
}

func gateTo(t testing.TB, url string) *gate {
	t.Helper()
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{url: "http://" + front.Addr().String(), front: front, open: map[net.Conn]bool{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := front.Accept()
			if err != nil {
				return
			}
			all.Go(func() { g.pass(c, strings.TrimPrefix(url, "http://")) })
		}
	})
	t.Cleanup(func() {
		g.shut()
		all.Wait()
	})
	return g
}

func (g *gate) pass(c net.Conn, to string) {
	defer func() { _ = c.Close() }()
	there, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = there.Close() }()
	g.mu.Lock()
	g.open[c] = true
	g.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(there, c); _ = there.Close() })
	both.Go(func() { _, _ = io.Copy(c, there); _ = c.Close() })
	both.Wait()
	g.mu.Lock()
	delete(g.open, c)
	g.mu.Unlock()
}

func (g *gate) shut() {
	_ = g.front.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.open {
		_ = c.Close()
	}
}
