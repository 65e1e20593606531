package remote

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// calls runs n scripts at a time, each for a moment, and reports what failed.
func calls(t testing.TB, c *Client, n int, script string) {
	t.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			var got int
			err := c.Call(within(t, time.Minute), Call{Script: script + "\nanswer \"$i\"", Vars: map[string]string{"i": strconv.Itoa(i)}}, &got)
			if err != nil || got != i {
				t.Errorf("call %d: answer %d, %v", i, got, err)
			}
		})
	}
	all.Wait()
}

func TestFiftyCallsNeedTwoConnections(t *testing.T) {
	t.Parallel()
	s := hosttest.SSHD(t)
	c := open(t, s.Host(), Options{})
	calls(t, c, 50, "sleep 0.1")
	if n := s.Connections(); n != 2 || s.Throttled() {
		t.Errorf("%d connections, throttled %v", n, s.Throttled())
	}
	if st := c.Stats(); st.Sessions != 50 || st.RoundTrips != 50 || st.Connections != 2 {
		t.Errorf("%+v", st)
	}
}

func TestOneConnectionWhileItHasRoom(t *testing.T) {
	t.Parallel()
	s := hosttest.SSHD(t)
	a, b := open(t, s.Host(), Options{}), open(t, s.Host(), Options{Home: "/nonexistent"})
	other := open(t, s.Host(), Options{Home: "/nonexistent"})
	calls(t, b, 2, "sleep 0.2") // which the server may still count among its ten
	calls(t, other, 8, "sleep 0.2")
	if n := s.Connections(); n != 1 {
		t.Errorf("%d connections for 8 sessions", n)
	}
	_ = a // another Home may mean another ssh_config: it shares nothing
	calls(t, a, 1, "")
	if n := s.Connections(); n != 2 {
		t.Errorf("%d connections", n)
	}
}

func TestSecondConnectionEndsWhenIdle(t *testing.T) {
	t.Parallel()
	s := hosttest.SSHD(t)
	c := open(t, s.Host(), Options{MaxSessions: 1})
	calls(t, c, 2, "sleep 0.5")
	if n := c.Stats().Open; n != 2 {
		t.Fatalf("%d connections", n)
	}
	time.Sleep(idleAfter / 2)
	calls(t, c, 1, "") // the first one serves it
	eventually(t, "the second connection is closed", func() bool { return c.Stats().Open == 1 })
	calls(t, c, 1, "")
	if n := s.Connections(); n != 2 {
		t.Errorf("%d connections", n)
	}
}

func TestFewerSessionsThanWeWish(t *testing.T) {
	t.Parallel()
	for _, most := range []int{1, 2, 3} {
		t.Run(strconv.Itoa(most), func(t *testing.T) {
			t.Parallel()
			s := hosttest.SSHD(t, hosttest.WithConfig(fmt.Sprintf("MaxSessions %d", most)))
			c := open(t, s.Host(), Options{})
			calls(t, c, 20, "sleep 0.05")
			for range 10 {
				calls(t, c, 1, "")
			}
			if st := c.Stats(); st.RoundTrips != 30 || st.Open > 2 {
				t.Errorf("%+v", st)
			}
			if n := s.Connections(); n > 4 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

func TestNoSessionsAtAll(t *testing.T) {
	t.Parallel()
	s := hosttest.SSHD(t, hosttest.WithConfig("MaxSessions 0"))
	c := open(t, s.Host(), Options{})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, err := c.Run(within(t, time.Minute), Command{Script: "true"})
			wantKindIn(t, err, extensions.KindUnavailable)
		})
	}
	all.Wait()
	if n := s.Connections(); n > 10 {
		t.Errorf("%d connections", n)
	}
}

func wantKindIn(t testing.TB, err error, kind extensions.Kind) {
	t.Helper()
	if !extensions.IsKind(err, kind) {
		t.Errorf("got %v (%s), want %s", err, extensions.KindOf(err), kind)
	}
}

// Sessions of scripts that outlive their callers do not stop others for good.
func TestAbandonedScriptsDoNotBlock(t *testing.T) {
	t.Parallel()
	s := hosttest.SSHD(t, hosttest.WithConfig("MaxSessions 2"))
	c := open(t, s.Host(), Options{})
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		err := c.Call(ctx, Call{Script: "progress x; sleep 30", Progress: func(string) { cancel() }}, nil)
		cancel()
		wantKind(t, err, extensions.KindIndeterminate)
	}
	calls(t, c, 4, "")
}

func TestQueueIsInOrderAndCanBeLeft(t *testing.T) {
	t.Parallel()
	s := hosttest.SSHD(t)
	c := open(t, s.Host(), Options{MaxSessions: 1})
	order := filepath.Join(s.HomeDir, "order")
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { calls(t, c, 1, "while [ ! -e \"$HOME/go\" ]; do sleep 0.05; done") })
	}
	eventually(t, "both are busy", func() bool { return c.Stats().RoundTrips == 2 && waiting(c) == 0 })
	tired, leave := context.WithCancel(t.Context())
	defer leave()
	for i := range 6 {
		all.Go(func() {
			ctx := within(t, time.Minute)
			if i == 2 {
				ctx = tired
			}
			err := c.Call(ctx, Call{Script: "echo $i >>" + order + "; answer 1", Vars: map[string]string{"i": strconv.Itoa(i)}}, nil)
			if i == 2 {
				wantKindIn(t, err, extensions.KindInterrupted)
			} else if err != nil {
				t.Error(err)
			}
		})
		eventually(t, "it is in line", func() bool { return waiting(c) == i+1 })
	}
	leave()
	eventually(t, "one has left", func() bool { return waiting(c) == 5 })
	c.host.mu.Lock() // one at a time from here on
	c.host.conns[1].limit = 0
	c.host.conns[1].lowered = time.Now()
	c.host.mu.Unlock()
	runElsewhere(t, s, `touch "$HOME/go"`)
	all.Wait()
	if got := readFile(t, order); got != "0\n1\n3\n4\n5\n" {
		t.Errorf("order %q", got)
	}
}

// runElsewhere runs a script past the client under test.
func runElsewhere(t *testing.T, s *hosttest.Server, script string) {
	t.Helper()
	if exit, _, errs := runScript(t, open(t, s.Host(), Options{}), script); exit != 0 {
		t.Fatal(errs)
	}
}
