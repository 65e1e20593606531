package composessh

import (
	"net"
	"sync"
	"testing"
)

// gate stands before an sshd, so that a test can cut the line to it, or let
// words go in one direction only.
type gate struct {
	address  string
	port     int64
	to       string
	listener net.Listener

	mu     sync.Mutex
	closed bool // nobody gets through
	mute   bool // what the host says is kept back
	conns  map[net.Conn]bool
	wg     sync.WaitGroup
}

func newGate(t testing.TB, to string) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	g := &gate{address: "127.0.0.1", port: int64(l.Addr().(*net.TCPAddr).Port), to: to, listener: l, conns: map[net.Conn]bool{}}
	g.wg.Go(g.serve)
	t.Cleanup(func() {
		_ = l.Close()
		g.cut()
		g.wg.Wait()
	})
	return g
}

func (g *gate) serve() {
	for {
		in, err := g.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", g.to)
		g.mu.Lock()
		if err != nil || g.closed {
			g.mu.Unlock()
			_ = in.Close()
			if out != nil {
				_ = out.Close()
			}
			continue
		}
		g.conns[in], g.conns[out] = true, true
		g.mu.Unlock()
		g.wg.Go(func() { g.copy(out, in, false) })
		g.wg.Go(func() { g.copy(in, out, true) })
	}
}

func (g *gate) copy(to, from net.Conn, muted bool) {
	defer func() {
		_, _ = to.Close(), from.Close()
	}()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		g.mu.Lock()
		drop := muted && g.mute
		g.mu.Unlock()
		if n > 0 && !drop {
			if _, e := to.Write(b[:n]); e != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// cut ends every connection.
func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.conns {
		_ = c.Close()
		delete(g.conns, c)
	}
}

// shut cuts the line and lets nobody through until open.
func (g *gate) shut() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cut()
}

func (g *gate) open() {
	g.mu.Lock()
	g.closed, g.mute = false, false
	g.mu.Unlock()
}

// silence keeps back what the host says from now on.
func (g *gate) silence() {
	g.mu.Lock()
	g.mute = true
	g.mu.Unlock()
}
