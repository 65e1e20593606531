package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const (
	// recoverAfter is how long a lowered limit applies: sessions that scripts without a caller hold on the
	// host become free again.
	recoverAfter = 30 * time.Second
	// settle is how long a host may take to count a session as closed.
	settle = time.Second
)

// errDead says that the connection is gone and the script was not handed over.
var errDead = errors.New("connection lost")

// errNoAnswer says that a connected host did not answer.
var errNoAnswer = errors.New("no answer")

// conn is one live connection of a host.
type conn struct {
	host *host
	link *link
	once sync.Once
	dead chan struct{} // closed when the connection is gone
	why  error         // set before closing dead

	// Guarded by the host's lock.
	used     int       // sessions granted
	pins     int       // forwarded connections
	opened   bool      // a session was opened
	limit    int       // sessions the host is believed to allow
	lowered  time.Time // when limit was last lowered
	released time.Time // when a session was last returned
	timer    *time.Timer
}

func newConn(h *host, l *link) *conn {
	c := &conn{host: h, link: l, dead: make(chan struct{}), limit: h.opts.MaxSessions}
	h.work.Go(func() {
		err := l.client.Wait()
		c.kill(fmt.Errorf("%w: %s", errDead, extensions.Clean(err.Error(), 300))) // a host may say why it hangs up
	})
	h.work.Go(c.watch)
	return c
}

func (c *conn) idle() bool { return c.used == 0 && c.pins == 0 }

// take grants the connection, or a session on it, if available.
func (c *conn) take(session bool, now time.Time) bool {
	if session {
		if c.limit < c.host.opts.MaxSessions && now.Sub(c.lowered) > recoverAfter {
			c.limit++
			c.lowered = now
		}
		if c.used >= c.limit {
			return false
		}
		c.used++
	} else {
		c.pins++
	}
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	return true
}

func (c *conn) put(session bool) {
	if session {
		c.used--
		c.released = time.Now()
	} else {
		c.pins--
	}
}

// kill ends the connection, once, with the reason.
func (c *conn) kill(why error) {
	c.once.Do(func() {
		h := c.host
		h.mu.Lock()
		c.why = why
		close(c.dead)
		h.remove(c)
		if c.timer != nil {
			c.timer.Stop()
		}
		h.counters.closed()
		if !h.closed {
			h.serve()
		}
		h.mu.Unlock()
		_ = c.link.close()
	})
}

// gone reports whether the connection is dead. Its channels end a moment before it does.
func (c *conn) gone() bool {
	select {
	case <-c.dead:
		return true
	case <-time.After(100 * time.Millisecond):
		return false
	}
}

func (c *conn) isDead() bool {
	select {
	case <-c.dead:
		return true
	default:
		return false
	}
}

// watch asks an idle host for signs of life.
func (c *conn) watch() {
	t := time.NewTicker(c.host.opts.KeepAlive)
	defer t.Stop()
	for {
		select {
		case <-c.dead:
			return
		case <-t.C:
			if !c.alive(context.Background()) {
				return
			}
		}
	}
}

// alive asks the host for a sign of life and ends the connection if none comes in time. The content of the
// answer does not matter.
func (c *conn) alive(ctx context.Context) bool {
	limit := 2 * c.host.opts.KeepAlive
	answered := make(chan error, 1)
	go func() {
		_, _, err := c.link.client.SendRequest("keepalive@openssh.com", true, nil)
		answered <- err
	}()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case err := <-answered:
		return err == nil
	case <-c.dead:
		return false
	case <-ctx.Done():
		return true // unknown
	case <-t.C:
		c.kill(fmt.Errorf("%w: no sign of life for %s", errDead, limit))
		return false
	}
}

// await does one thing that the host must answer. If the host does not, await asks it for a sign of life, or
// ends the connection at once if nobody else uses it. undo is called with a late success.
func (c *conn) await(ctx context.Context, what string, do func() error, undo func()) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	t := time.NewTimer(c.host.opts.DialTimeout)
	defer t.Stop()
	select {
	case err := <-done:
		if err != nil && !isRefusal(err) && c.gone() {
			return c.why
		}
		return err
	case <-c.dead:
		return c.why
	case <-ctx.Done():
	case <-t.C:
		c.host.mu.Lock()
		alone := c.used+c.pins <= 1
		c.host.mu.Unlock()
		if alone {
			c.kill(fmt.Errorf("%w: %w to %s for %s", errDead, errNoAnswer, what, c.host.opts.DialTimeout))
			return c.why
		}
		if !c.alive(ctx) && c.gone() {
			return c.why
		}
	}
	go func() {
		if <-done == nil {
			undo()
		}
	}()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w to %s for %s", errNoAnswer, what, c.host.opts.DialTimeout)
}

func isRefusal(err error) bool {
	var e *ssh.OpenChannelError
	return errors.As(err, &e) || errors.Is(err, errRefused)
}

// refused learns from a session that the host did not open. It reports whether to retry the same connection
// at once.
func (c *conn) refused() (again bool) {
	h := c.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(c.released) < settle && c.used > 0 {
		c.released = time.Time{} // the host may not have counted it yet, once
		return true
	}
	c.limit = c.used - 1 // without the refused one
	c.lowered = time.Now()
	h.opts.Log.Debug("remote: the host allows fewer sessions", "host", h.name, "sessions", c.limit)
	return false
}
