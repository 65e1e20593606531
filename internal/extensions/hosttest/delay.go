package hosttest

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// DelayProxy listens on a loopback address and carries each connection to addr, delayed by half of rtt each
// way: the host seems that far away. It does not limit bandwidth, keeps order, and passes half-closed streams
// on. The handshake takes its time too: a client's first data arrives after one and a half rtt. conns counts
// the connections so far. The proxy ends with the test.
func DelayProxy(t testing.TB, addr string, rtt time.Duration) (listen string, conns func() int) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	p := &delayProxy{to: addr, half: rtt / 2, open: map[net.Conn]bool{}}
	p.wait.Add(1)
	go func() {
		defer p.wait.Done()
		p.serve(l)
	}()
	t.Cleanup(func() {
		_ = l.Close()
		p.closeAll()
		p.wait.Wait()
	})
	return l.Addr().String(), func() int { return int(p.count.Load()) }
}

type delayProxy struct {
	to    string
	half  time.Duration
	count atomic.Int64
	wait  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	open   map[net.Conn]bool
}

func (p *delayProxy) serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		p.count.Add(1)
		p.wait.Add(1)
		go func() {
			defer p.wait.Done()
			p.carry(c)
		}()
	}
}

// track closes c when the proxy ends, or at once if it has ended.
func (p *delayProxy) track(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = c.Close()
	}
	p.open[c] = true
}

func (p *delayProxy) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for c := range p.open {
		_ = c.Close()
	}
}

func (p *delayProxy) carry(client net.Conn) {
	p.track(client)
	defer client.Close()
	// The client considers itself connected now. At a distance that takes one rtt, and the server learns of
	// it half an rtt later.
	ready := time.Now().Add(3 * p.half)
	time.Sleep(time.Until(ready))
	server, err := (&net.Dialer{Timeout: 10 * time.Second}).Dial("tcp", p.to)
	if err != nil {
		return
	}
	p.track(server)
	defer server.Close()
	var both sync.WaitGroup
	both.Go(func() { p.pump(server, client) })
	both.Go(func() { p.pump(client, server) })
	both.Wait()
	p.mu.Lock()
	delete(p.open, client)
	delete(p.open, server)
	p.mu.Unlock()
}

type packet struct {
	due  time.Time
	data []byte
}

// pump copies src to dst, each piece half an rtt after it arrived.
func (p *delayProxy) pump(dst, src net.Conn) {
	queue := make(chan packet, 4096) // data on its way; far more than a window holds
	go func() {
		defer close(queue)
		for {
			buf := make([]byte, 32<<10)
			n, err := src.Read(buf)
			if n > 0 {
				queue <- packet{time.Now().Add(p.half), buf[:n]}
			}
			if err != nil {
				queue <- packet{due: time.Now().Add(p.half)}
				return
			}
		}
	}()
	broken := false
	for k := range queue { // read to its end in any case, so that the reader ends
		time.Sleep(time.Until(k.due))
		if broken {
			continue
		}
		if k.data == nil {
			if tcp, ok := dst.(*net.TCPConn); ok {
				_ = tcp.CloseWrite()
			}
			continue
		}
		if _, err := dst.Write(k.data); err != nil {
			broken = true
			_ = src.Close() // the sender notices at its next write
		}
	}
}
