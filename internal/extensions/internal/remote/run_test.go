package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// lockedBuffer can be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestRunIsLiveBothWays(t *testing.T) {
	t.Parallel()
	c := open(t, hosttest.SSHD(t).Host(), Options{})
	in, feed := io.Pipe()
	var out lockedBuffer
	done := make(chan error, 1)
	go func() {
		exit, err := c.Run(within(t, time.Minute),
			Command{Script: "while read -r x; do echo \"got $x\"; done; echo end; exit 5", Stdin: in, Stdout: &out})
		if exit != 5 {
			t.Errorf("exit %d", exit)
		}
		done <- err
	}()
	for _, word := range []string{"a", "b"} {
		_, _ = feed.Write([]byte(word + "\n"))
		eventually(t, "an answer to "+word, func() bool { return strings.HasSuffix(out.String(), "got "+word+"\n") })
	}
	_ = feed.Close() // half-close: the script still prints after it
	if err := <-done; err != nil || out.String() != "got a\ngot b\nend\n" {
		t.Fatalf("%v, %q", err, out.String())
	}
}

func TestStdinThatNeverEnds(t *testing.T) {
	t.Parallel()
	c := open(t, hosttest.SSHD(t).Host(), Options{})
	in, feed := io.Pipe()
	defer func() { _ = feed.Close() }()
	exit, err := c.Run(within(t, time.Minute), Command{Script: "exit 4", Stdin: in})
	if exit != 4 || err != nil {
		t.Fatal(exit, err)
	}
}

// What a script leaves behind may hold its streams; Run does not wait for it.
func TestGrandchildHoldsTheStreams(t *testing.T) {
	t.Parallel()
	c := open(t, hosttest.SSHD(t).Host(), Options{})
	for script, most := range map[string]time.Duration{
		"echo out; sleep 600 & exit 6":                             drainGrace + time.Minute,
		"echo out; (while :; do echo x; sleep 0.1; done) & exit 6": drainLimit + time.Minute,
		"echo out; yes & exit 6":                                   drainLimit + time.Minute,
	} {
		var out bytes.Buffer
		begun := time.Now()
		exit, err := c.Run(within(t, time.Minute), Command{Script: script, Stdout: &limited{w: &out, n: 4}})
		if took := time.Since(begun); took > most || exit != 6 || err != nil || out.String() != "out\n" {
			t.Errorf("%s: exit %d, %v after %s, %q", script, exit, err, took, out.String())
		}
	}
	runScript(t, c, "echo fine")
}

// limited keeps the first n bytes and drops the rest.
type limited struct {
	w io.Writer
	n int
}

func (l *limited) Write(p []byte) (int, error) {
	k := min(l.n, len(p))
	l.n -= k
	_, err := l.w.Write(p[:k])
	return len(p), err
}

// Output that is still on its way when the script ends is not lost.
func TestAllOutputArrives(t *testing.T) {
	t.Parallel()
	c := open(t, hosttest.SSHD(t).Host(), Options{})
	var out, errs bytes.Buffer
	slow := writerFunc(func(p []byte) (int, error) {
		time.Sleep(10 * time.Millisecond)
		return out.Write(p)
	})
	exit, err := c.Run(within(t, time.Minute),
		Command{Script: "head -c 5000000 /dev/zero & head -c 3000000 /dev/zero >&2; wait", Stdout: slow, Stderr: &errs})
	if exit != 0 || err != nil || out.Len() != 5_000_000 || errs.Len() != 3_000_000 {
		t.Fatal(exit, err, out.Len(), errs.Len())
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestSlowReaderHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	c := open(t, hosttest.SSHD(t).Host(), Options{})
	gate := make(chan struct{})
	var got int
	done := make(chan error, 1)
	stuck := make(chan struct{})
	var once sync.Once
	go func() {
		_, err := c.Run(within(t, time.Minute), Command{Script: "head -c 20000000 /dev/zero", Stdout: writerFunc(func(p []byte) (int, error) {
			once.Do(func() { close(stuck) })
			<-gate
			got += len(p)
			return len(p), nil
		})})
		done <- err
	}()
	<-stuck
	calls(t, c, 7, "")
	if n := c.Stats().Connections; n != 1 {
		t.Errorf("%d connections", n)
	}
	close(gate)
	if err := <-done; err != nil || got != 20_000_000 {
		t.Error(got, err)
	}
}

func TestWriterThatFails(t *testing.T) {
	t.Parallel()
	c := open(t, hosttest.SSHD(t).Host(), Options{})
	full := errors.New("disk full")
	_, err := c.Run(within(t, time.Minute), Command{Script: "yes", Stdout: writerFunc(func([]byte) (int, error) { return 0, full })})
	wantKind(t, err, extensions.KindIndeterminate)
	if !errors.Is(err, full) {
		t.Error(err)
	}
}

// A cancelled Run ends what it ran, even if that neither reads nor writes.
func TestRunCancelled(t *testing.T) {
	t.Parallel()
	s := hosttest.SSHD(t)
	c := open(t, s.Host(), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var late time.Time
	_, err := c.Run(ctx, Command{Script: "sleep 600 & echo go; wait", Stdout: writerFunc(func(p []byte) (int, error) {
		late = time.Now()
		cancel()
		return len(p), nil
	})})
	wantKind(t, err, extensions.KindIndeterminate)
	if took := time.Since(late); took > terminateLimit+time.Minute {
		t.Errorf("it took %s", took)
	}
	eventually(t, "nothing runs there", func() bool { return len(s.Processes()) == 0 })
}

func TestNothingIsWrittenAfterTheEnd(t *testing.T) {
	t.Parallel()
	c := open(t, hosttest.SSHD(t).Host(), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer // the race detector sees a write beside the read below
	_, err := c.Run(ctx, Command{Script: "while :; do echo x; done", Stdout: writerFunc(func(p []byte) (int, error) {
		if out.Len() > 1000 {
			cancel()
		}
		return out.Write(p)
	})})
	n := out.Len()
	time.Sleep(200 * time.Millisecond)
	wantKind(t, err, extensions.KindIndeterminate)
	if out.Len() != n {
		t.Error(n, out.Len())
	}
}

func TestTTY(t *testing.T) {
	t.Parallel()
	c := open(t, hosttest.SSHD(t).Host(), Options{})
	in, feed := io.Pipe()
	sizes := make(chan [2]uint16)
	var out lockedBuffer
	done := make(chan error, 1)
	script, _ := bigScript() // longer than a terminal's line and full of what it would interpret
	script = strings.Replace(script, "sha256sum;", "", 1)
	go func() {
		exit, err := c.Run(within(t, time.Minute), Command{
			Script: script + "tty >/dev/null || exit 9; stty size; trap 'stty size' WINCH; while [ \"$x\" != two ]; do read -r x; done; echo " +
				"\"got $x\"; cat; exit 3",
			Stdin: in, Stdout: &out, TTY: &extensions.TTY{Rows: 40, Cols: 100, Resize: sizes},
		})
		if exit != 3 {
			t.Errorf("exit %d", exit)
		}
		done <- err
	}()
	eventually(t, "its size", func() bool { return strings.Contains(out.String(), "40 100") })
	sizes <- [2]uint16{50, 120}
	eventually(t, "its new size", func() bool { // a shell tells it between two lines
		_, _ = feed.Write([]byte("one\r")) // as a terminal sends it
		time.Sleep(100 * time.Millisecond)
		return strings.Contains(out.String(), "50 120")
	})
	_, _ = feed.Write([]byte("two\r"))
	eventually(t, "what was read, and the echo of it", func() bool {
		return strings.Contains(out.String(), "two\r\n") && strings.Contains(out.String(), "got two\r\n")
	})
	_ = feed.Close()
	if err := <-done; err != nil || strings.Contains(out.String(), "sbx-") {
		t.Errorf("%v, %q", err, out.String())
	}
}

func TestTTYInterrupt(t *testing.T) {
	t.Parallel()
	c := open(t, hosttest.SSHD(t).Host(), Options{})
	in, feed := io.Pipe()
	defer func() { _ = feed.Close() }()
	var out lockedBuffer
	go func() {
		for !strings.Contains(out.String(), "ready") {
			time.Sleep(10 * time.Millisecond)
		}
		_, _ = feed.Write([]byte{3})
	}()
	exit, err := c.Run(within(t, time.Minute),
		Command{Script: "echo ready; sleep 30", Stdin: in, Stdout: &out, TTY: &extensions.TTY{Rows: 24, Cols: 80}})
	if exit != 130 || err != nil {
		t.Error(exit, err, out.String())
	}
}

func TestTTYForbidden(t *testing.T) {
	t.Parallel()
	c := open(t, hosttest.SSHD(t, hosttest.WithConfig("PermitTTY no")).Host(), Options{})
	_, err := c.Run(within(t, time.Minute), Command{Script: "true", TTY: &extensions.TTY{Rows: 24, Cols: 80}})
	wantRemedy(t, err)
	runScript(t, c, "true")
}
