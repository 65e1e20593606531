package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestPortsAreReadOrRefused(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][2]int{"8080": {0, 8080}, "5433:5432": {5433, 5432}, "0:1": {0, 1}} {
		if local, port, err := parsePorts(in); err != nil || local != want[0] || port != want[1] {
			t.Errorf("%q: %d, %d, %v", in, local, port, err)
		}
	}
	for _, in := range []string{"", "x", "0", "65536", "-1", "1:2:3", "70000:1", "web:80", ":80"} {
		if _, _, err := parsePorts(in); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// upcase answers what it was sent, in capitals, when the sender has ended.
func upcase(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				b, _ := io.ReadAll(c)
				_, _ = c.Write(bytes.ToUpper(b))
			}()
		}
	}()
	return l.Addr().String()
}

func TestForwardCarriesHalfClosedConnectionsUntilInterrupted(t *testing.T) {
	t.Parallel()
	inside := upcase(t)
	out, printed := io.Pipe()
	a := &app{out: printed, err: io.Discard}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan error, 1)
	go func() {
		ended <- a.forward(ctx, func(ctx context.Context) (io.ReadWriteCloser, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", inside)
		}, 0)
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "hello"); err != nil {
			t.Fatal(err)
		}
		_ = c.(*net.TCPConn).CloseWrite()
		got, err := io.ReadAll(c)
		_ = c.Close()
		if err != nil || string(got) != "HELLO" {
			t.Errorf("%q, %v", got, err)
		}
	}
	held, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	interrupt()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("an open connection holds the command after it was interrupted")
	}
}

func TestForwardTellsWhyAConnectionFailed(t *testing.T) {
	t.Parallel()
	out, printed := io.Pipe()
	told, tell := io.Pipe()
	a := &app{out: printed, err: tell}
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- a.forward(ctx, func(context.Context) (io.ReadWriteCloser, error) { return nil, errors.New("nobody listens on 80") }, 0)
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, _ := bufio.NewReader(told).ReadString('\n'); !strings.Contains(got, "nobody listens on 80") {
		t.Errorf("told %q", got)
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("the client was left open: %d, %v", n, err)
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestForwardFindsOutWhichServiceIsMeantBeforeItListens(t *testing.T) {
	t.Parallel()
	for kind, stops := range map[extensions.Kind]bool{extensions.KindInvalid: true, extensions.KindUnavailable: false} {
		err := tryOnce(t.Context(), func(context.Context) (io.ReadWriteCloser, error) {
			return nil, extensions.Errorf(kind, "use one of db, web")
		})
		if (err != nil) != stops {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
