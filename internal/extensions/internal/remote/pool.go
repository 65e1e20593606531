package remote

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const (
	// maxConns bounds a host's connections at a time.
	maxConns = 2
	// idleAfter is when an unused second connection ends.
	idleAfter = 10 * time.Second
	// secondAfter is how long the first connection serves alone after dialing a second one failed.
	secondAfter = 5 * time.Second
)

var errClosed = errors.New("the connection was closed here")

// pool holds the hosts that have clients.
var pool = struct {
	sync.Mutex
	hosts map[string]*host
}{hosts: map[string]*host{}}

// host is what the clients of one host share.
type host struct {
	counters
	key  string
	name string // for messages
	ssh  extensions.SSH
	opts Options
	dial func(context.Context, extensions.SSH, Options) (*link, error)
	refs int // guarded by pool's lock

	work sync.WaitGroup // what close waits for

	mu       sync.Mutex
	closed   bool
	conns    []*conn // live; the first is preferred
	line     []*waiter
	stopDial context.CancelFunc // nil while no dial runs
	notAgain time.Time          // earliest time for a second connection
	silent   error              // the last dial's error, if it ended in silence
	heard    time.Time          // until when silent applies
}

// waiter waits in line for a connection.
type waiter struct {
	session bool // wants a session of it, not just the connection
	got     chan grant
}

type grant struct {
	conn *conn
	err  error
}

// join finds or creates the host's entry and holds it.
func join(s extensions.SSH, name string, o Options) (*host, error) {
	o = o.withDefaults()
	key, err := json.Marshal(struct {
		SSH                     extensions.SSH
		ConfigFile, Home, Agent string
	}{s, o.ConfigFile, o.Home, o.Getenv("SSH_AUTH_SOCK")})
	if err != nil {
		return nil, extensions.Errorf(extensions.KindInternal, "host %s: %w", name, err)
	}
	pool.Lock()
	defer pool.Unlock()
	h := pool.hosts[string(key)]
	if h == nil {
		h = &host{key: string(key), name: name, ssh: s, opts: o, dial: dial}
		pool.hosts[h.key] = h
	}
	h.refs++
	return h, nil
}

// leave releases one hold; the last one ends the connections.
func (h *host) leave() {
	pool.Lock()
	h.refs--
	last := h.refs == 0
	if last {
		delete(pool.hosts, h.key)
	}
	pool.Unlock()
	if last {
		h.shut()
	}
}

func (h *host) shut() {
	h.mu.Lock()
	h.closed = true
	if h.stopDial != nil {
		h.stopDial()
	}
	for _, w := range h.line {
		w.got <- grant{err: h.interrupted(errClosed)}
	}
	h.line = nil
	conns := slices.Clone(h.conns)
	h.mu.Unlock()
	for _, c := range conns {
		c.kill(errClosed)
	}
	h.work.Wait()
}

// acquire waits for a connection and, if session is set, for a session on it. first goes to the head of the
// line: for a caller that was granted one in vain.
func (h *host) acquire(ctx context.Context, session, first bool) (*conn, error) {
	if ctx.Err() != nil {
		return nil, h.notStarted(ctx)
	}
	if err := h.silence(time.Now()); err != nil {
		return nil, err
	}
	w := &waiter{session: session, got: make(chan grant, 1)}
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil, h.interrupted(errClosed)
	}
	at := len(h.line)
	if first {
		at = 0
	}
	h.line = slices.Insert(h.line, at, w)
	h.serve()
	h.mu.Unlock()
	select {
	case g := <-w.got:
		return g.conn, g.err
	case <-ctx.Done():
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.line, w); i >= 0 {
		h.line = slices.Delete(h.line, i, i+1)
		if len(h.line) == 0 && h.stopDial != nil {
			h.stopDial() // nobody waits for it any more
		}
	} else if g := <-w.got; g.conn != nil {
		h.put(g.conn, session)
	}
	return nil, h.notStarted(ctx)
}

// silence returns the error of a host that was just found silent. Operations follow one another, and each
// would wait as long for the same result; a third of the time waited is short enough for a host that comes
// back.
func (h *host) silence(now time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.silent == nil || h.closed || len(h.conns) > 0 || !now.Before(h.heard) {
		return nil
	}
	return h.dialError(h.silent)
}

// release returns what acquire granted.
func (h *host) release(c *conn, session bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.put(c, session)
}

func (h *host) put(c *conn, session bool) {
	c.put(session)
	if c.idle() && len(h.conns) > 1 && h.conns[0] != c {
		c.timer = time.AfterFunc(idleAfter, func() { h.dropIdle(c) })
	}
	h.serve()
}

// dropIdle ends a second connection if it is still unneeded.
func (h *host) dropIdle(c *conn) {
	h.mu.Lock()
	drop := c.idle() && slices.Index(h.conns, c) > 0
	if drop {
		h.remove(c)
	}
	h.mu.Unlock()
	if drop {
		h.opts.Log.Debug("remote: second connection no longer needed", "host", h.name)
		c.kill(errClosed)
	}
}

func (h *host) remove(c *conn) {
	h.conns = slices.DeleteFunc(h.conns, func(o *conn) bool { return o == c })
}

// serve grants what there is, in the order of the line, and dials another connection if that is not enough.
// It is called, with the lock held, whenever either may have changed.
func (h *host) serve() {
	now := time.Now()
	full := false
	h.line = slices.DeleteFunc(h.line, func(w *waiter) bool {
		if w.session && full {
			return false
		}
		for _, c := range h.conns {
			if c.take(w.session, now) {
				w.got <- grant{conn: c}
				return true
			}
		}
		full = full || w.session
		return false
	})
	if len(h.line) == 0 || h.closed || h.stopDial != nil || len(h.conns) >= maxConns {
		return
	}
	if len(h.conns) == 0 || full && now.After(h.notAgain) {
		h.startDial()
	}
}

// startDial dials for everybody in line: the end of one caller does not end the dial.
func (h *host) startDial() {
	ctx, cancel := context.WithCancel(context.Background())
	h.stopDial = cancel
	h.work.Go(func() {
		l, err := h.dial(ctx, h.ssh, h.opts)
		h.dialed(ctx, l, err)
		cancel()
	})
}

func (h *host) dialed(ctx context.Context, l *link, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopDial, h.silent = nil, nil
	switch {
	case err == nil && h.closed:
		_ = l.close()
	case err == nil:
		h.counters.dialed()
		h.conns = append(h.conns, newConn(h, l))
		h.opts.Log.Debug("remote: connected", "host", h.name, "connections", len(h.conns))
	case ctx.Err() != nil: // given up; later callers have their own dial
	case len(h.conns) > 0: // the line continues with the existing connections
		h.notAgain = time.Now().Add(secondAfter)
		h.opts.Log.Debug("remote: no second connection", "host", h.name, "error", err)
	default:
		if errors.Is(err, errSlow) {
			h.silent, h.heard = err, time.Now().Add(h.opts.DialTimeout/3)
		}
		h.turnAway(err)
	}
	if !h.closed {
		h.serve()
	}
}

// turnAway tells everybody in line that there will be no connection.
func (h *host) turnAway(err error) {
	for _, w := range h.line {
		w.got <- grant{err: h.dialError(err)}
	}
	h.line = nil
}

// dialError returns err for one of several callers: each gets its own to add to.
func (h *host) dialError(err error) error {
	if e, ok := err.(*extensions.Error); ok { //nolint:errorlint // only err itself, not what it wraps, may be replaced
		own := *e
		return &own
	}
	return extensions.Errorf(extensions.KindUnreachable, "%s cannot be reached: %w", h.name, err)
}
