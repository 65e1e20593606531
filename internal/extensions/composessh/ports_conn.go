package composessh

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/remote"
)

// relayGrace is how long a relay gets to end after both sides closed.
const relayGrace = time.Second

// endLimit bounds ending a relay that nobody uses any more.
const endLimit = 20 * time.Second

// relayed is a relay's script on the host, with its streams.
type relayed struct {
	client *remote.Client
	call   insideCall
	cancel context.CancelFunc
	ctx    context.Context
	in     *io.PipeReader
	toHost *io.PipeWriter
	back   *inbox
	noise  bytes.Buffer // the script's other output; bounded
	ended  chan struct{}
	err    error // Run's, after ended
	once   sync.Once
}

func newRelayed(client *remote.Client, call insideCall) *relayed {
	r := &relayed{client: client, call: call, back: newInbox(), ended: make(chan struct{})}
	// A connection outlives the call that opened it.
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.in, r.toHost = io.Pipe()
	return r
}

func (r *relayed) run(c remote.Command, heard chan<- said) {
	defer close(r.ended)
	c.Stdin, c.Stdout = r.in, r.back
	c.Stderr = channel(r.call.vars["sbx_channel"], &bounded{&r.noise}, func(s said) {
		if s.EOF != nil {
			r.back.endAt(*s.EOF)
			return
		}
		select {
		case heard <- s:
		default:
		}
	})
	_, r.err = r.client.Run(r.ctx, c)
	_ = r.in.Close()
	r.back.end(r.err)
}

// end closes both directions and ensures that nothing of the relay remains.
func (r *relayed) end() {
	r.once.Do(func() {
		_ = r.toHost.Close()
		r.back.drop()
		select {
		case <-r.ended:
			r.cancel()
			return
		case <-time.After(relayGrace):
		}
		r.cancel()
		<-r.ended
		ctx, cancel := context.WithTimeout(context.Background(), endLimit)
		defer cancel()
		vars := map[string]string{"cancel": "1", "sbx_channel": execwire.NewNonce()}
		for _, name := range []string{"root", "account", "id", "service", "mark", "lock_wait"} {
			vars[name] = r.call.vars[name]
		}
		// If the host cannot be reached, the relay ends with its service.
		_, _ = r.client.Run(ctx, remote.Command{Script: r.call.script, Vars: vars})
	})
}

// bounded keeps the start of what is written.
type bounded struct{ b *bytes.Buffer }

func (w *bounded) Write(p []byte) (int, error) {
	if room := 4096 - w.b.Len(); room > 0 {
		w.b.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// inboxSize bounds the service's bytes that wait for their reader; beyond it the host's side waits.
const inboxSize = 256 << 10

// inbox holds received bytes until they are read.
type inbox struct {
	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at each change
	data     []byte
	total    int64
	last     int64 // total at which the service ended; -1 = unknown
	over     bool
	err      error
	dropped  bool
	deadline time.Time
}

func newInbox() *inbox { return &inbox{last: -1, changed: make(chan struct{})} }

// wake wakes all waiters; the caller holds the lock.
func (s *inbox) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *inbox) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.data) >= inboxSize && !s.dropped {
		changed := s.changed
		s.mu.Unlock()
		<-changed
		s.mu.Lock()
	}
	if !s.dropped {
		s.data = append(s.data, p...)
	}
	s.total += int64(len(p))
	s.wake()
	return len(p), nil
}

func (s *inbox) endAt(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = n
	s.wake()
}

func (s *inbox) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over, s.err = true, err; s.dropped {
		s.err = nil
	}
	s.wake()
}

// drop discards what nobody will read.
func (s *inbox) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped, s.data = true, nil
	s.wake()
}

func (s *inbox) setDeadline(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	s.wake()
}

func (s *inbox) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		var late <-chan time.Time
		switch {
		case s.dropped:
			return 0, net.ErrClosed
		case !s.deadline.IsZero() && !time.Now().Before(s.deadline):
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case len(s.data) > 0:
			n := copy(p, s.data)
			s.data = s.data[n:]
			s.wake()
			return n, nil
		case s.last >= 0 && s.total >= s.last:
			return 0, io.EOF
		case s.over && s.err != nil:
			return 0, s.err
		case s.over:
			return 0, io.EOF
		}
		var timer *time.Timer
		if !s.deadline.IsZero() {
			timer = time.NewTimer(time.Until(s.deadline))
			late = timer.C
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-late:
		}
		if timer != nil {
			timer.Stop()
		}
		s.mu.Lock()
	}
}

// relayConn is a connection through a relay. A goroutine does its writes, so that they can have deadlines.
type relayConn struct {
	r     *relayed
	there relayAddr
	local net.Conn // writes: our end of a pipe
	once  sync.Once
}

func newRelayConn(r *relayed, address string) *relayConn {
	ours, theirs := net.Pipe()
	c := &relayConn{r: r, there: relayAddr(address), local: ours}
	go func() {
		_, _ = io.Copy(r.toHost, theirs)
		_ = r.toHost.Close()
		_ = theirs.Close()
	}()
	return c
}

func (c *relayConn) Read(p []byte) (int, error) {
	n, err := c.r.back.Read(p)
	return n, c.wrap("read", err)
}

func (c *relayConn) Write(p []byte) (int, error) {
	n, err := c.local.Write(p)
	return n, c.wrap("write", err)
}

func (c *relayConn) wrap(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return &net.OpError{Op: op, Net: "tcp", Addr: c.there, Err: err}
}

// CloseWrite tells the service that no more follows; reading continues.
func (c *relayConn) CloseWrite() error { return c.local.Close() }

// Close ends the connection and the relay.
func (c *relayConn) Close() error {
	c.once.Do(func() {
		_ = c.local.Close()
		c.r.end()
	})
	return nil
}

func (c *relayConn) LocalAddr() net.Addr  { return relayAddr("relay") }
func (c *relayConn) RemoteAddr() net.Addr { return c.there }

func (c *relayConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *relayConn) SetReadDeadline(t time.Time) error {
	c.r.back.setDeadline(t)
	return nil
}

func (c *relayConn) SetWriteDeadline(t time.Time) error { return c.local.SetWriteDeadline(t) }

// relayAddr names the far end as the caller did: service:port.
type relayAddr string

func (relayAddr) Network() string  { return "tcp" }
func (a relayAddr) String() string { return string(a) }
