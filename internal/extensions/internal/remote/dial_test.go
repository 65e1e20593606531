package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// wantGivenUp dials, cancels when ready says so, and wants the end at once.
func wantGivenUp(t *testing.T, u *me, h extensions.SSH, ready func() bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := dial(ctx, h, u.options())
		done <- err
	}()
	for end := time.Now().Add(time.Minute); !ready(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the dial does not get as far as it should")
		}
	}
	cancel()
	select {
	case err := <-done:
		wantError(t, err, extensions.KindInterrupted)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the cancellation is not in the chain: %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the dial does not end")
	}
}

// server accepts on loopback and hands each connection to serve.
func server(t *testing.T, serve func(net.Conn)) extensions.SSH {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { <-t.Context().Done(); _ = conn.Close() }() // or a silent one keeps its serve
			serve(conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return extensions.SSH{Address: "127.0.0.1", Port: int64(l.Addr().(*net.TCPAddr).Port), User: "nobody"}
}

// wantBounded dials a host that never becomes one, within the limit given.
func wantBounded(t *testing.T, h extensions.SSH, kind extensions.Kind, parts ...string) {
	t.Helper()
	u := newMe(t)
	o := u.options()
	o.DialTimeout = 400 * time.Millisecond
	start := time.Now()
	_, err := dial(t.Context(), h, o)
	if err == nil {
		t.Fatal("it connected")
	}
	wantError(t, err, kind, parts...)
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("it took %s", d)
	}
	if len(err.Error()) > 1500 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

func silent(conn net.Conn) {
	buffer := make([]byte, 1024)
	for {
		if _, err := conn.Read(buffer); err != nil {
			return
		}
	}
}

func TestHostsThatAreNone(t *testing.T) {
	t.Parallel()
	endless := func(piece string, pause time.Duration) func(net.Conn) {
		return func(conn net.Conn) {
			for {
				if _, err := conn.Write([]byte(piece)); err != nil {
					return
				}
				time.Sleep(pause)
			}
		}
	}
	for name, c := range map[string]struct {
		serve func(net.Conn)
		parts []string
	}{
		"says nothing":   {silent, []string{"does not answer: waited 400ms for an SSH server's greeting", "port is sshd's"}},
		"closes at once": {func(net.Conn) {}, []string{"handshake"}},
		"speaks HTTP": {func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) },
			[]string{"not an SSH server", "HTTP/1.1 400 Bad Request"}},
		"is too busy": {func(c net.Conn) { _, _ = c.Write([]byte("Exceeded MaxStartups\r\n")) },
			[]string{"Exceeded MaxStartups", "busy"}},
		"prints escapes":       {func(c net.Conn) { _, _ = c.Write([]byte("\x1b[2J\x00\xff\x07evil\n")) }, []string{"evil"}},
		"endless lines":        {endless("junk\n", 0), nil},
		"endless line":         {endless("junkjunk", 0), nil},
		"one byte at a time":   {endless("j", 20*time.Millisecond), []string{"does not answer"}},
		"garbage after hello":  {endless("SSH-2.0-x\r\n\x7f\xff\xff\xff\xff", 0), nil},
		"silent after hello":   {func(c net.Conn) { _, _ = c.Write([]byte("SSH-2.0-x\r\n")); silent(c) }, []string{"does not answer"}},
		"huge packet promised": {func(c net.Conn) { _, _ = c.Write([]byte("SSH-2.0-x\r\n\x00\x00\xff\x00")); silent(c) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantBounded(t, server(t, c.serve), extensions.KindUnreachable, c.parts...)
		})
	}
}

func TestHostThatStopsInTheMiddle(t *testing.T) {
	t.Parallel()
	s := sshd(t)
	s.Pause()
	defer s.Resume()
	wantBounded(t, keyed(s), extensions.KindUnreachable, "does not answer")
}

func TestNothingThere(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := int64(l.Addr().(*net.TCPAddr).Port)
	_ = l.Close()
	wantBounded(t, extensions.SSH{Address: "127.0.0.1", Port: port, User: "x"}, extensions.KindUnreachable, "nothing listens at")
	wantBounded(t, extensions.SSH{Address: "no-such-host.invalid", User: "x"}, extensions.KindUnreachable, "no-such-host.invalid")
	wantBounded(t, extensions.SSH{Address: "127.0.0.1", Port: 70000, User: "x"}, extensions.KindInvalid, "70000")
	wantBounded(t, extensions.SSH{User: "x"}, extensions.KindInvalid, "neither an address nor an alias")
}

func TestDialIsGivenUpAtOnce(t *testing.T) {
	t.Parallel()
	accepted := make(chan struct{}, 1)
	h := server(t, func(c net.Conn) { accepted <- struct{}{}; silent(c) })
	seen := func() bool {
		select {
		case <-accepted:
			return true
		default:
			return false
		}
	}
	wantGivenUp(t, newMe(t), h, seen)
	// Behind a jump host that works.
	s := sshd(t)
	j := keyed(s)
	j.HostKey = s.HostKeyLine
	h.Jump = []extensions.SSH{j}
	wantGivenUp(t, newMe(t), h, seen)
	// Behind one that stopped.
	h.Jump[0].Jump = nil
	s.Pause()
	defer s.Resume()
	start := time.Now()
	wantGivenUp(t, newMe(t), h, func() bool { return time.Since(start) > 100*time.Millisecond })
}

func TestDeadlineOfTheCaller(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := dial(ctx, server(t, silent), newMe(t).options())
	wantError(t, err, extensions.KindTimeout, "time ran out")
}

// The dial's context ends the dial, not the connection.
func TestConnectionOutlivesTheDial(t *testing.T) {
	t.Parallel()
	s, u := sshd(t), newMe(t)
	h := keyed(s)
	h.HostKey = s.HostKeyLine
	ctx, cancel := context.WithCancel(t.Context())
	l, err := dial(ctx, h, u.options())
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	time.Sleep(50 * time.Millisecond)
	if _, _, err := l.client.SendRequest("keepalive@openssh.com", true, nil); err != nil {
		t.Errorf("the connection ended with the dial's context: %v", err)
	}
	if err := l.close(); err != nil {
		t.Error(err)
	}
	if err := l.close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
	if err := l.client.Wait(); err == nil {
		t.Error("the connection is still there")
	}
}

func TestIPv6(t *testing.T) {
	t.Parallel()
	s, u := sshd(t, hosttest.WithListen("[::1]")), newMe(t)
	for _, address := range []string{"::1", "[::1]", "::1%lo"} {
		h := keyed(s)
		h.Address = address
		name := strings.Trim(address, "[]")
		u.file(t, "known_hosts", fmt.Sprintf("[%s]:%d %s\n", name, s.Port, s.HostKeyLine))
		u.mustDial(t, h)
		u.file(t, "known_hosts", "")
		u.fails(t, h, extensions.KindUnauthorized, fmt.Sprintf("[%s]:%d ssh-ed25519", name, s.Port))
	}
	// Through a jump host.
	jump := sshd(t)
	j, h := keyed(jump), keyed(s)
	j.HostKey, h.HostKey = jump.HostKeyLine, s.HostKeyLine
	h.Jump = []extensions.SSH{j}
	u.mustDial(t, h)
}

func TestNoCommonAlgorithm(t *testing.T) {
	t.Parallel()
	s, u := sshd(t, hosttest.WithConfig("Ciphers aes128-cbc")), newMe(t)
	h := keyed(s)
	h.HostKey = s.HostKeyLine
	u.fails(t, h, extensions.KindUnsupported, "aes128-cbc")
}
