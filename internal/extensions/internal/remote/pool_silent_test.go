package remote

import (
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// silenceIsOver waits until a host that was silent may be dialled again.
func silenceIsOver(t testing.TB, c *Client) {
	t.Helper()
	eventually(t, "the silence is over", func() bool { return c.host.silence(time.Now()) == nil })
}

// A host that accepts connections and says nothing is waited for once: those who
// come together share it, and those who come right after hear of it at once.
func TestASilentHostIsWaitedForOnce(t *testing.T) {
	t.Parallel()
	var accepted atomic.Int64
	h := extensions.Host{Name: "build-1"}
	h.SSH = new(extensions.SSH)
	*h.SSH = server(t, func(conn net.Conn) { accepted.Add(1); silent(conn) })
	c := open(t, h, Options{DialTimeout: 3 * time.Second})
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() { wantSilent(t, c.Call(within(t, time.Minute), Call{Script: "answer 1"}, nil)) })
	}
	all.Wait()
	c.host.mu.Lock()
	c.host.heard = time.Now().Add(time.Minute) // however slow this machine is
	c.host.mu.Unlock()
	wantSilent(t, c.Call(within(t, time.Minute), Call{Script: "answer 1"}, nil))
	_, err := c.Dial(within(t, time.Minute), "tcp", "127.0.0.1:1")
	wantSilent(t, err)
	if n := accepted.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func wantSilent(t testing.TB, err error) {
	t.Helper()
	var e *extensions.Error
	if !errors.As(err, &e) || e.Kind != extensions.KindUnreachable || MayHaveStarted(err) {
		t.Errorf("%v", err)
		return
	}
	for _, part := range []string{`host "build-1"`, "nobody@127.0.0.1:", "waited 3s for an SSH server's greeting"} {
		if !strings.Contains(e.Error(), part) {
			t.Errorf("%q is missing in: %v", part, e)
		}
	}
	if e.RetryAfter < 30*time.Second || !strings.Contains(e.Remedy, "sshd") {
		t.Errorf("to be asked again after %s; %s", e.RetryAfter, e.Remedy)
	}
}

// What is refused or cut off at once is worth another try at once.
func TestARefusalIsNoSilence(t *testing.T) {
	t.Parallel()
	var accepted atomic.Int64
	h := extensions.Host{Name: "build-1"}
	h.SSH = new(extensions.SSH)
	*h.SSH = server(t, func(net.Conn) { accepted.Add(1) }) // as sshd does above its MaxStartups
	c := open(t, h, Options{DialTimeout: 3 * time.Second})
	for want := int64(1); want <= 3; want++ {
		var e *extensions.Error
		err := c.Call(within(t, time.Minute), Call{Script: "answer 1"}, nil)
		if !errors.As(err, &e) || e.Kind != extensions.KindUnreachable || e.RetryAfter != 0 || accepted.Load() != want {
			t.Errorf("connection %d of %d: %v, again after %s", accepted.Load(), want, err, e.RetryAfter)
		}
	}
}

// A host that was silent is dialled again before long.
func TestSilenceIsNotBelievedForLong(t *testing.T) {
	t.Parallel()
	var accepted atomic.Int64
	h := extensions.Host{SSH: new(extensions.SSH)}
	*h.SSH = server(t, func(conn net.Conn) { accepted.Add(1); silent(conn) })
	c := open(t, h, Options{DialTimeout: 300 * time.Millisecond})
	for want := int64(1); want <= 2; want++ {
		wantKind(t, c.Call(within(t, time.Minute), Call{Script: "answer 1"}, nil), extensions.KindUnreachable)
		silenceIsOver(t, c)
		if n := accepted.Load(); n != want {
			t.Errorf("%d connections, want %d", n, want)
		}
	}
}
