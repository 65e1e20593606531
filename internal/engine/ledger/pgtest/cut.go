package pgtest

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// Cutter stands between a client and the server and cuts one connection at a chosen exchange, once.
type Cutter struct {
	Address string // the database, through the cutter

	mu     sync.Mutex
	left   int  // exchanges until the cut; 0 = none
	answer bool // cut after the server has the request, before its answer
	cuts   int
	seen   int  // all exchanges so far
	stay   bool // off after the cut
	off    bool
	open   map[net.Conn]bool
}

// Off cuts every connection and accepts no new one until On.
func (c *Cutter) Off() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off = true
	for conn := range c.open {
		_ = conn.Close()
	}
}

// ended also cuts the other connections if the cut stays.
func (c *Cutter) ended() {
	c.mu.Lock()
	stay := c.off
	c.mu.Unlock()
	if stay {
		c.Off()
	}
}

// On lets connections through again, and disarms a cut that is still to come.
func (c *Cutter) On() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off, c.left = false, 0
}

// through keeps a pair of connections, unless none are allowed.
func (c *Cutter) through(pair ...net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range pair {
		if c.off {
			_ = conn.Close()
		}
		c.open[conn] = !c.off
	}
	return !c.off
}

// Cut arms the cutter: it drops the n-th exchange from now on (1 is the next), either the request itself or, with
// answer, the server's answer.
func (c *Cutter) Cut(n int, answer bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.answer, c.cuts, c.stay = n, answer, 0, false
}

// OffFrom cuts as Cut does; from then on nothing passes until On.
func (c *Cutter) OffFrom(n int, answer bool) {
	c.Cut(n, answer)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stay = true
}

// Exchanges returns the number of exchanges so far.
func (c *Cutter) Exchanges() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen
}

// Cuts returns the number of connections cut since Cut.
func (c *Cutter) Cuts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cuts
}

// exchange counts one request; cut reports whether to cut it.
func (c *Cutter) exchange() (cut, answer bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen++
	if c.left == 0 {
		return false, false
	}
	c.left--
	if c.left == 0 {
		c.cuts++
		c.off = c.stay
		return true, c.answer
	}
	return false, false
}

// NewCutter puts a cutter in front of the database at address.
func NewCutter(t testing.TB, address string) *Cutter {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	target := u.Host
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // at once
	if err != nil {
		t.Fatal(err)
	}
	u.Host = l.Addr().String()
	u.RawQuery = "sslmode=disable" // messages must be distinguishable
	c := &Cutter{Address: u.String(), open: map[net.Conn]bool{}}
	var wg sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		c.Off()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target) //nolint:noctx // at once
			if err != nil {
				_ = client.Close()
				continue
			}
			if !c.through(client, server) {
				continue
			}
			pair := &link{client: client, server: server, answered: make(chan struct{})}
			wg.Go(func() { c.requests(pair) })
			wg.Go(pair.answers)
		}
	})
	return c
}

// link is a client's connection and its connection to the server.
type link struct {
	client, server net.Conn
	silent         atomic.Bool   // the next answer is the last, and is lost
	answered       chan struct{} // the server answers no more
}

// answers copies the server's messages. An answer ends with ReadyForQuery.
func (p *link) answers() {
	defer close(p.answered)
	defer p.server.Close()
	defer p.client.Close()
	in, out := bufio.NewReader(p.server), bufio.NewWriter(p.client)
	for {
		kind, err := in.Peek(1)
		if err != nil {
			return
		}
		last := p.silent.Load() && kind[0] == 'Z'
		to := io.Writer(out)
		if p.silent.Load() {
			to = io.Discard
		}
		if copyMessage(to, in, 5) != nil || last {
			return
		}
		if in.Buffered() == 0 && out.Flush() != nil {
			return
		}
	}
}

// requests copies the client's messages. A request ends with Query or Sync; see "Message Formats" of PostgreSQL's
// manual.
func (c *Cutter) requests(p *link) {
	defer p.server.Close()
	defer p.client.Close()
	in := bufio.NewReader(p.client)
	if copyMessage(p.server, in, 4) != nil { // the start-up message has no type
		return
	}
	for {
		kind, err := in.Peek(1)
		if err != nil {
			return
		}
		ends := kind[0] == 'Q' || kind[0] == 'S'
		cut, answer := false, false
		if ends {
			cut, answer = c.exchange()
		}
		if cut && !answer {
			c.ended()
			return
		}
		if cut { // the server's side stays open until it has finished, and no longer
			p.silent.Store(true)
			_ = p.client.(*net.TCPConn).SetLinger(0)
			_ = copyMessage(p.server, in, 5)
			_ = p.client.Close()
			<-p.answered
			c.ended()
			return
		}
		if copyMessage(p.server, in, 5) != nil {
			return
		}
	}
}

func copyMessage(w io.Writer, r *bufio.Reader, header int) error {
	head := make([]byte, header)
	if _, err := io.ReadFull(r, head); err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	_, err := io.CopyN(w, r, int64(binary.BigEndian.Uint32(head[header-4:]))-4)
	return err
}
