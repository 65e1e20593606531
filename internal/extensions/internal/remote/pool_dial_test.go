package remote

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// slowDial makes the host's dials wait for the gate, and counts them.
func slowDial(c *Client) (gate chan struct{}, dials *atomic.Int64) {
	gate, dials = make(chan struct{}), new(atomic.Int64)
	h := c.host
	real := h.dial
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dial = func(ctx context.Context, s extensions.SSH, o Options) (*link, error) {
		dials.Add(1)
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return real(ctx, s, o)
	}
	return gate, dials
}

func TestDialOutlivesItsFirstCaller(t *testing.T) {
	t.Parallel()
	s := hosttest.SSHD(t)
	c := open(t, s.Host(), Options{})
	gate, dials := slowDial(c)
	first, cancel := context.WithCancel(t.Context())
	defer cancel()
	gone := make(chan error, 1)
	go func() { gone <- c.Call(first, Call{Script: "answer 1"}, nil) }()
	eventually(t, "a dial", func() bool { return dials.Load() == 1 })
	var others sync.WaitGroup
	others.Go(func() { calls(t, c, 5, "") })
	eventually(t, "six in line", func() bool { return waiting(c) == 6 })
	cancel()
	err := <-gone
	wantKind(t, err, extensions.KindInterrupted)
	if MayHaveStarted(err) || !strings.Contains(err.Error(), "nothing was started") {
		t.Error(err)
	}
	close(gate)
	others.Wait()
	if s.Connections() != 1 || dials.Load() != 1 {
		t.Errorf("%d connections, %d dials", s.Connections(), dials.Load())
	}
}

func waiting(c *Client) int {
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	return len(c.host.line)
}

func TestDialEndsWithItsLastCaller(t *testing.T) {
	t.Parallel()
	s := hosttest.SSHD(t)
	c := open(t, s.Host(), Options{})
	gate, dials := slowDial(c)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	wantKind(t, c.Call(ctx, Call{Script: "answer 1"}, nil), extensions.KindTimeout)
	eventually(t, "nobody dials", func() bool {
		c.host.mu.Lock()
		defer c.host.mu.Unlock()
		return c.host.stopDial == nil
	})
	close(gate)
	calls(t, c, 1, "")
	if dials.Load() != 2 {
		t.Errorf("%d dials", dials.Load())
	}
}

func TestCloseIsCounted(t *testing.T) {
	t.Parallel()
	s := hosttest.SSHD(t)
	o := Options{Home: t.TempDir()}
	a, b := open(t, s.Host(), o), open(t, s.Host(), o)
	calls(t, a, 1, "")
	_ = a.Close()
	_ = a.Close()
	calls(t, b, 1, "")
	if s.Connections() != 1 || b.Stats().Open != 1 {
		t.Errorf("%d connections, %+v", s.Connections(), b.Stats())
	}
	wantKind(t, a.Call(t.Context(), Call{Script: "answer 1"}, nil), extensions.KindInterrupted)

	running := make(chan error, 1)
	begun := make(chan struct{})
	go func() {
		running <- b.Call(t.Context(), Call{Script: "progress x; sleep 20", Progress: func(string) { close(begun) }}, nil)
	}()
	<-begun
	_ = b.Close()
	err := <-running
	wantKind(t, err, extensions.KindIndeterminate)
	if !errors.Is(err, errClosed) {
		t.Error(err)
	}
	if b.Stats().Open != 0 || b.HostKey() != nil {
		t.Errorf("%+v", b.Stats())
	}
	pool.Lock()
	defer pool.Unlock()
	if pool.hosts[b.host.key] != nil {
		t.Error("the host is still there")
	}
}

func TestCloseWhileDialling(t *testing.T) {
	t.Parallel()
	c := open(t, hosttest.SSHD(t).Host(), Options{})
	_, dials := slowDial(c)
	done := make(chan error, 1)
	go func() { done <- c.Call(t.Context(), Call{Script: "answer 1"}, nil) }()
	eventually(t, "a dial", func() bool { return dials.Load() == 1 })
	_ = c.Close()
	wantKind(t, <-done, extensions.KindInterrupted)
}

func TestErrorsOfADialAreEachCallersOwn(t *testing.T) {
	t.Parallel()
	s := hosttest.SSHD(t)
	s.Stop()
	c := open(t, s.Host(), Options{})
	seen := make(chan *extensions.Error, 5)
	var all sync.WaitGroup
	for i := range 5 {
		all.Go(func() {
			var e *extensions.Error
			err := c.Call(within(t, time.Minute), Call{Script: "answer 1"}, nil)
			if !errors.As(err, &e) || e.Kind != extensions.KindUnreachable || MayHaveStarted(err) {
				t.Errorf("%v", err)
				return
			}
			e.Op = strconv.Itoa(i) // the race detector sees one that is shared
			seen <- e
		})
	}
	all.Wait()
}

// Where there is no second connection, the first one serves all.
func TestSecondConnectionRefused(t *testing.T) {
	t.Parallel()
	s := hosttest.SSHD(t)
	c := open(t, s.Host(), Options{MaxSessions: 2})
	calls(t, c, 1, "")
	var dials atomic.Int64
	c.host.mu.Lock()
	c.host.dial = func(context.Context, extensions.SSH, Options) (*link, error) {
		dials.Add(1)
		return nil, errors.New("no")
	}
	c.host.mu.Unlock()
	calls(t, c, 20, "")
	if n := dials.Load(); n == 0 || n > 3 {
		t.Errorf("%d dials", n)
	}
	if st := c.Stats(); st.Connections != 1 {
		t.Errorf("%+v", st)
	}
}

// A forwarded connection needs no session.
func TestDialPastTheLine(t *testing.T) {
	t.Parallel()
	s := hosttest.SSHD(t)
	c := open(t, s.Host(), Options{MaxSessions: 1})
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { calls(t, c, 1, `while [ ! -e "$HOME/go" ]; do sleep 0.05; done`) })
	}
	eventually(t, "one is in line", func() bool { return c.Stats().RoundTrips == 2 && waiting(c) == 1 })
	conn, err := c.Dial(within(t, time.Minute), "tcp", echo(t, "tcp", "127.0.0.1:0"))
	if err != nil {
		t.Error(err)
	} else {
		_ = conn.Close()
	}
	runElsewhere(t, s, `touch "$HOME/go"`)
	all.Wait()
}
