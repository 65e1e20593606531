package remote

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// echo answers each connection with what it sent, and "end" after its end.
func echo(t *testing.T, network, addr string) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), network, addr)
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
				_, _ = io.Copy(c, c)
				_, _ = c.Write([]byte("end"))
			}()
		}
	}()
	return l.Addr().String()
}

func TestDialCarriesBothWaysAndHalfCloses(t *testing.T) {
	t.Parallel()
	s := hosttest.SSHD(t)
	c := open(t, s.Host(), Options{})
	payload, _ := randomPayload(t, 5<<20)
	for network, addr := range map[string]string{
		"tcp":  echo(t, "tcp", "127.0.0.1:0"),
		"unix": echo(t, "unix", filepath.Join(s.HomeDir, "socket")),
	} {
		conn, err := c.Dial(within(t, time.Minute), network, addr)
		if err != nil {
			t.Fatal(err)
		}
		if conn.RemoteAddr().String() != addr || conn.RemoteAddr().Network() != network {
			t.Errorf("remote address %v", conn.RemoteAddr())
		}
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		go func() {
			_, _ = conn.Write(payload)
			_ = conn.(interface{ CloseWrite() error }).CloseWrite()
		}()
		got, err := io.ReadAll(conn)
		if err != nil || string(got) != string(payload)+"end" {
			t.Errorf("%s: %d of %d bytes, %v", network, len(got), len(payload), err)
		}
		_ = conn.Close()
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	}
	if st := c.Stats(); st.Connections != 1 || st.Sessions != 0 {
		t.Errorf("%+v", st)
	}
}

func TestDialDeadlines(t *testing.T) {
	t.Parallel()
	c := open(t, hosttest.SSHD(t).Host(), Options{})
	conn, err := c.Dial(within(t, time.Minute), "tcp", echo(t, "tcp", "127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	buf := make([]byte, 10)
	_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := conn.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	if _, err := conn.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	_ = conn.SetReadDeadline(time.Time{})
	_, _ = conn.Write([]byte("x"))
	if n, err := conn.Read(buf); n != 1 || err != nil {
		t.Error(n, err)
	}
	_ = conn.SetWriteDeadline(time.Now().Add(-time.Second))
	if _, err := conn.Write(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	_ = conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)) // nobody reads: the windows fill up
	for err = nil; err == nil; {
		_, err = conn.Write(make([]byte, 1<<20))
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

func TestDialServesHTTP(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer web.Close()
	c := open(t, hosttest.SSHD(t).Host(), Options{})
	tr := &http.Transport{DialContext: c.Dial}
	defer tr.CloseIdleConnections()
	for range 3 {
		req, err := http.NewRequestWithContext(within(t, time.Minute), http.MethodGet, web.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{Transport: tr}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(body) != "hello" || err != nil {
			t.Error(string(body), err)
		}
	}
}

func TestDialErrors(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	c := open(t, hosttest.SSHD(t).Host(), Options{})
	for _, bad := range []string{"", "x", "host", "host:0", "host:70000", "host:http"} {
		_, err := c.Dial(ctx, "tcp", bad)
		wantKindIn(t, err, extensions.KindInvalid)
	}
	_, err := c.Dial(ctx, "udp", "127.0.0.1:1")
	wantKindIn(t, err, extensions.KindInvalid)
	_, err = c.Dial(ctx, "tcp", "127.0.0.1:1")
	wantKindIn(t, err, extensions.KindUnavailable)
	_, err = c.Dial(ctx, "unix", "/nonexistent")
	wantKindIn(t, err, extensions.KindUnavailable)
	shut := open(t, hosttest.SSHD(t, hosttest.WithConfig("AllowTcpForwarding no", "AllowStreamLocalForwarding no")).Host(), Options{})
	_, err = shut.Dial(ctx, "tcp", "127.0.0.1:1")
	wantKindIn(t, err, extensions.KindUnsupported)
	if !strings.Contains(extensions.RemedyOf(err), "AllowTcpForwarding") {
		t.Error(extensions.RemedyOf(err))
	}
	_, err = shut.Dial(ctx, "unix", "/nonexistent")
	if !strings.Contains(extensions.RemedyOf(err), "AllowStreamLocalForwarding") {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = c.Dial(ended, "tcp", "127.0.0.1:1")
	wantKindIn(t, err, extensions.KindInterrupted)
}

// A forwarded connection ends with its ssh connection, and with its client.
func TestDialEndsWithTheConnection(t *testing.T) {
	t.Parallel()
	s := hosttest.SSHD(t)
	c := open(t, s.Host(), Options{})
	addr := echo(t, "tcp", "127.0.0.1:0")
	conn, err := c.Dial(within(t, time.Minute), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s.Cut()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("it reads from a dead connection")
	}
	_ = conn.Close()
	if conn, err = c.Dial(within(t, time.Minute), "tcp", addr); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("it reads from a closed client")
	}
	_ = conn.Close()
}
