package pgtest

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
)

// A server that answers at once is let go at once, and its answer is lost.
func TestALostAnswerLetsTheServerGo(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // at once
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	gone := make(chan error)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				close(gone)
				return
			}
			in := bufio.NewReader(conn)
			if err = copyMessage(io.Discard, in, 4); err == nil {
				err = copyMessage(io.Discard, in, 5)
			}
			if err == nil {
				_, err = io.WriteString(conn, "C\x00\x00\x00\x05\x00Z\x00\x00\x00\x05I")
			}
			if err == nil { // until it is let go
				_, err = io.Copy(io.Discard, conn)
			}
			_ = conn.Close()
			gone <- err
		}
	}()
	c := NewCutter(t, "postgres://"+l.Addr().String()+"/x")
	at, _, _ := strings.Cut(strings.TrimPrefix(c.Address, "postgres://"), "/")
	for range 200 {
		c.Cut(1, true)
		conn, err := net.Dial("tcp", at) //nolint:noctx // at once
		if err == nil {
			_, err = io.WriteString(conn, "\x00\x00\x00\x04Q\x00\x00\x00\x05\x00")
		}
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(conn); len(b) > 0 {
			t.Errorf("it was answered: %q", b)
		}
		if err := <-gone; err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	}
}
