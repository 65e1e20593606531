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

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/remote"
)

// relayGrace is how long a relay gets to end after both sides were closed.
const relayGrace = time.Second

// relayed is a relay's script on the host, with its streams.
type relayed struct {
	client *remote.Client
	call   insideCall
	cancel context.CancelFunc
	ctx    context.Context
	in     *io.PipeReader
	toHost *io.PipeWriter
	back   *spool
	noise  bytes.Buffer // what the script prints beside; bounded
	ended  chan struct{}
	err    error // of Run, after ended
	once   sync.Once
}

func newRelayed(client *remote.Client, call insideCall) *relayed {
	r := &relayed{client: client, call: call, back: newSpool(), ended: make(chan struct{})}
	// A connection outlives the call that made it.
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.in, r.toHost = io.Pipe()
	return r
}

func (r *relayed) run(c remote.Command, heard chan<- said) {
	defer close(r.ended)
	c.Stdin, c.Stdout = r.in, r.back
	c.Stderr = newChannel(r.call.vars["channel"], &bounded{&r.noise}, func(s said) {
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

// end closes both directions and sees that nothing of the relay stays behind.
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
		vars := map[string]string{"cancel": "1", "channel": newNonce()}
		for _, name := range []string{"root", "account", "id", "service", "mark", "lock_wait"} {
			vars[name] = r.call.vars[name]
		}
		// Where the host cannot be asked, the relay ends with its service.
		_, _ = r.client.Run(ctx, remote.Command{Script: r.call.script, Vars: vars})
	})
}

// bounded keeps the beginning of what is written.
type bounded struct{ b *bytes.Buffer }

func (w *bounded) Write(p []byte) (int, error) {
	if room := 4096 - w.b.Len(); room > 0 {
		w.b.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// spoolSize bounds what of a service's bytes waits for its reader; beyond it
// the host's side waits.
const spoolSize = 256 << 10

// spool holds what came back until it is read.
type spool struct {
	mu       sync.Mutex
	changed  chan struct{} // closed and made anew at each change
	held     []byte
	total    int64
	last     int64 // total at which the service ended; -1 = not told
	over     bool
	err      error
	dropped  bool
	deadline time.Time
}

func newSpool() *spool { return &spool{last: -1, changed: make(chan struct{})} }

// wake tells all who wait; the lock is held.
func (s *spool) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *spool) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.held) >= spoolSize && !s.dropped {
		changed := s.changed
		s.mu.Unlock()
		<-changed
		s.mu.Lock()
	}
	if !s.dropped {
		s.held = append(s.held, p...)
	}
	s.total += int64(len(p))
	s.wake()
	return len(p), nil
}

func (s *spool) endAt(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = n
	s.wake()
}

func (s *spool) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over, s.err = true, err; s.dropped {
		s.err = nil
	}
	s.wake()
}

// drop lets go of what nobody will read.
func (s *spool) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped, s.held = true, nil
	s.wake()
}

func (s *spool) setDeadline(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	s.wake()
}

func (s *spool) Read(p []byte) (int, error) {
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
		case len(s.held) > 0:
			n := copy(p, s.held)
			s.held = s.held[n:]
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

// relayConn is a connection through a relay. Writes go by way of a goroutine,
// so that they can have deadlines.
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

// CloseWrite tells the service that no more is sent; reading goes on.
func (c *relayConn) CloseWrite() error { return c.local.Close() }

// Close ends the connection, and the relay.
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

// relayAddr names the far end as it was asked for: service:port.
type relayAddr string

func (relayAddr) Network() string  { return "tcp" }
func (a relayAddr) String() string { return string(a) }
