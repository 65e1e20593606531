package remote

import (
	"context"
	"errors"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// errRefused says that the host refused.
var errRefused = errors.New("refused")

// session is one session channel.
type session struct {
	conn   *conn
	ch     ssh.Channel
	status chan int      // the exit code, if one comes
	gone   chan struct{} // closed when the host has closed the channel
}

// maxRefusals bounds how often one caller goes back to the line.
const maxRefusals = 20

// openSession gets a session and starts the command line in it. It replaces a connection that turns out dead
// once. The session's release returns its place.
func (h *host) openSession(ctx context.Context, tty *extensions.TTY) (*session, error) {
	redialled, refusals := false, 0
	for {
		c, err := h.acquire(ctx, true, redialled || refusals > 0)
		if err != nil {
			return nil, err
		}
		s, err := c.session(ctx)
		if err == nil {
			if err = s.start(ctx, tty); err == nil {
				return s, nil
			}
			s.close()
		}
		var no *ssh.OpenChannelError
		switch {
		case errors.As(err, &no):
			refusals++
			err := h.noSession(no)
			if c.sendBack(err) || refusals > maxRefusals {
				return nil, err
			}
			continue
		case errors.Is(err, errDead) && !redialled && ctx.Err() == nil:
			h.opts.Log.Debug("remote: redialing", "host", h.name, "error", err)
			redialled = true
			h.release(c, true)
			continue
		}
		h.release(c, true)
		return nil, h.openError(ctx, err)
	}
}

// session opens a session channel.
func (c *conn) session(ctx context.Context) (*session, error) {
	for {
		s := &session{conn: c, status: make(chan int, 1), gone: make(chan struct{})}
		err := c.await(ctx, "a session", func() error {
			ch, requests, err := c.link.client.OpenChannel("session", nil)
			if err != nil {
				return err
			}
			s.ch = ch
			go s.listen(requests)
			return nil
		}, s.close)
		if err == nil {
			c.host.mu.Lock()
			c.opened = true
			c.host.mu.Unlock()
			c.host.counters.session()
			return s, nil
		}
		var no *ssh.OpenChannelError
		if !errors.As(err, &no) || !c.refused() {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (h *host) noSession(no *ssh.OpenChannelError) error {
	return extensions.Errorf(extensions.KindUnavailable, "%s opens no session: %s", h.name, extensions.Clean(no.Message, 200)).
		WithRemedy("set MaxSessions to 1 or more in the host's sshd_config, and close its other sessions")
}

// sendBack returns a session that the host did not open. It ends a connection that has none left and so is of
// no use. never reports that the connection has not opened a single session; those in line then get the error
// too.
func (c *conn) sendBack(err error) (never bool) {
	h := c.host
	h.mu.Lock()
	c.used--
	useless := c.used == 0
	never = useless && !c.opened
	if never {
		h.turnAway(err)
	}
	pinned := c.pins > 0
	h.serve()
	h.mu.Unlock()
	if useless && !pinned {
		c.kill(errClosed)
	}
	return never
}

// start asks the host to run the command line, in a terminal if tty is set.
func (s *session) start(ctx context.Context, tty *extensions.TTY) error {
	c := s.conn
	if tty != nil {
		if err := s.ask(ctx, "pty-req", ptyRequest(tty)); err != nil {
			return err
		}
	}
	if err := s.ask(ctx, "exec", ssh.Marshal(struct{ Command string }{bootstrap})); err != nil {
		return err
	}
	c.host.counters.roundTrip()
	return nil
}

// ask sends a request that the host must grant.
func (s *session) ask(ctx context.Context, what string, payload []byte) error {
	return s.conn.await(ctx, what, func() error {
		ok, err := s.ch.SendRequest(what, true, payload)
		if err == nil && !ok {
			err = &refusal{what}
		}
		return err
	}, func() {})
}

// refusal is a request that the host refused.
type refusal struct{ what string }

func (r *refusal) Error() string   { return r.what + " was refused" }
func (r *refusal) Is(e error) bool { return e == errRefused }

// listen reads what the host says about the channel until it closes, even after our own end: an unread
// channel would block the connection.
func (s *session) listen(requests <-chan *ssh.Request) {
	defer close(s.gone)
	told := false
	for r := range requests {
		code, ok := exitCode(r)
		if ok && !told {
			told = true
			s.status <- code
		}
		if r.WantReply {
			_ = r.Reply(ok, nil)
		}
	}
}

// exitCode reads exit-status and exit-signal.
func exitCode(r *ssh.Request) (code int, ok bool) {
	switch r.Type {
	case "exit-status":
		var msg struct{ Status uint32 }
		if ssh.Unmarshal(r.Payload, &msg) != nil {
			return 0, false
		}
		return int(msg.Status & 0xff), true
	case "exit-signal":
		var msg struct {
			Signal  string
			Core    bool
			Message string
			Lang    string
		}
		if ssh.Unmarshal(r.Payload, &msg) != nil {
			return 0, false
		}
		return 128 + signalNumber(msg.Signal), true
	}
	return 0, false
}

// signals maps the names of RFC 4254, and those that OpenSSH adds, to their POSIX numbers.
var signals = map[string]int{
	"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "TRAP": 5, "ABRT": 6, "FPE": 8, "KILL": 9, "SEGV": 11, "PIPE": 13, "ALRM": 14, "TERM": 15,
	"USR1": 10, "USR2": 12,
}

func signalNumber(name string) int { return signals[name] } // an unknown one is 128

// close tells the host that we are done with the channel. It does not wait.
func (s *session) close() {
	if s.ch != nil {
		_ = s.ch.Close()
	}
}

// finish closes the channel and returns the session, after giving the host a moment to close it too.
func (s *session) finish(ended bool) {
	if ended {
		select {
		case <-s.gone:
		case <-time.After(100 * time.Millisecond):
		}
	}
	s.close()
	s.conn.host.release(s.conn, true)
}
