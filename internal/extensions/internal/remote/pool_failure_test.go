package remote

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

func readFile(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestConnectionCutMidScript(t *testing.T) {
	t.Parallel()
	s := hosttest.SSHD(t)
	c := open(t, s.Host(), Options{})
	err := c.Call(within(t, time.Minute), Call{
		Script: `cd
echo begun >>runs; progress go
for i in $(seq 600); do [ ! -e cut ] || break; sleep 0.1; done
echo lost; echo lost >&2; progress lost
json_string "$(id)" | cat
echo ended >>runs
answer 1`,
		Progress: func(string) {
			s.Cut()
			if err := os.WriteFile(s.HomeDir+"/cut", nil, 0o600); err != nil {
				t.Error(err)
			}
		},
	}, nil)
	wantKind(t, err, extensions.KindIndeterminate)
	if !MayHaveStarted(err) || !strings.Contains(err.Error(), "its outcome is unknown") {
		t.Error(err)
	}
	eventually(t, "the script went on to its end", func() bool {
		b, _ := os.ReadFile(s.HomeDir + "/runs")
		return strings.Contains(string(b), "ended")
	})
	if got := readFile(t, s.HomeDir+"/runs"); got != "begun\nended\n" {
		t.Errorf("it ran twice: %q", got)
	}
	calls(t, c, 1, "")
}

func TestConnectionCutWhileIdle(t *testing.T) {
	t.Parallel()
	s := hosttest.SSHD(t)
	c := open(t, s.Host(), Options{})
	for range 3 {
		calls(t, c, 1, "")
		s.Cut() // whether we have noticed by then or not
		calls(t, c, 3, "")
	}
}

func TestRestartedServerIsDialledAgain(t *testing.T) {
	t.Parallel()
	s := hosttest.SSHD(t)
	c := open(t, s.Host(), Options{})
	calls(t, c, 1, "")
	key := c.HostKey()
	s.Stop()
	err := c.Call(within(t, time.Minute), Call{Script: "answer 1"}, nil)
	wantKind(t, err, extensions.KindUnreachable)
	again := hosttest.SSHD(t, hosttest.WithPort(s.Port))
	if again.HostKeyLine != s.HostKeyLine {
		t.Skip("the servers of a process no longer share their keys")
	}
	calls(t, c, 5, "")
	if string(c.HostKey().Marshal()) != string(key.Marshal()) {
		t.Error("another key")
	}
}

// A host that has stopped answering is noticed, busy or idle.
func TestPausedServerIsFoundDead(t *testing.T) {
	t.Parallel()
	s := hosttest.SSHD(t)
	defer s.Resume()
	c := open(t, s.Host(), Options{KeepAlive: 2 * time.Second, DialTimeout: 3 * time.Second})
	begun := time.Now()
	err := c.Call(within(t, time.Minute), Call{Script: "progress go; sleep 60; answer 1", Progress: func(string) { s.Pause() }}, nil)
	wantKind(t, err, extensions.KindIndeterminate)
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	if !strings.Contains(err.Error(), "no sign of life") {
		t.Error(err)
	}
	begun = time.Now()
	err = c.Call(within(t, time.Minute), Call{Script: "answer 1"}, nil)
	wantKind(t, err, extensions.KindUnreachable)
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	s.Resume()
	silenceIsOver(t, c)
	calls(t, c, 1, "")
}

// A request for a session that gets no answer ends by itself, long before the
// next look for signs of life.
func TestPausedServerBeforeTheScript(t *testing.T) {
	t.Parallel()
	s := hosttest.SSHD(t)
	defer s.Resume()
	c := open(t, s.Host(), Options{KeepAlive: 2 * time.Minute, DialTimeout: 3 * time.Second})
	calls(t, c, 1, "")
	s.Pause()
	begun := time.Now()
	err := c.Call(within(t, time.Minute), Call{Script: "answer 1"}, nil)
	wantKind(t, err, extensions.KindUnreachable)
	if took := time.Since(begun); took > time.Minute || MayHaveStarted(err) {
		t.Errorf("it took %s: %v", took, err)
	}

	silenceIsOver(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	wantKind(t, c.Call(ctx, Call{Script: "answer 1"}, nil), extensions.KindTimeout)
	s.Resume()
	calls(t, c, 2, "")
}

func TestFarAwayHost(t *testing.T) {
	t.Parallel()
	s := hosttest.SSHD(t)
	addr, conns := hosttest.DelayProxy(t, s.Addr, 50*time.Millisecond)
	c := open(t, through(t, s, addr), Options{})
	calls(t, c, 1, "")
	begun := time.Now()
	calls(t, c, 50, "cat; sleep 0.1")
	took := time.Since(begun)
	t.Logf("50 calls took %s", took)
	if conns() > 2 || took > time.Minute {
		t.Errorf("%d connections, %s", conns(), took)
	}
	payload, digest := randomPayload(t, 1<<20)
	var out strings.Builder
	var all sync.WaitGroup
	all.Go(func() { calls(t, c, 5, "") })
	exit, err := c.Run(within(t, time.Minute), Command{Script: "sha256sum", Stdin: strings.NewReader(string(payload)), Stdout: &out})
	if exit != 0 || err != nil || !strings.HasPrefix(out.String(), digest) {
		t.Errorf("exit %d, %v, %q", exit, err, out.String())
	}
	all.Wait()
}
