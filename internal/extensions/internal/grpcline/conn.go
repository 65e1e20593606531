package grpcline

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

const (
	// piece is the most of a connection's bytes in one message.
	piece = 256 << 10
	// parting is how long the other end may take once ours is closed, so that what was written last arrives.
	parting = 5 * time.Second
)

// Conn is a connection whose bytes are messages of one stream: a pipe for each direction, whose far ends are the stream's.
type Conn struct {
	in, out net.Conn // our ends
	to      address
	close   func() error
}

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// Bytes is a stream of messages that hold bytes. One goroutine calls Send and CloseSend, another Recv.
type Bytes struct {
	Recv      func() ([]byte, error)
	Send      func([]byte) error // may keep what it gets
	CloseSend func() error
	End       context.CancelFunc // ends the stream; Recv and Send fail then
}

// Forward returns the connection of a stream; to is its other end's name.
func Forward(s Bytes, to string) *Conn {
	in, farIn := net.Pipe()
	out, farOut := net.Pipe()
	go func() {
		defer s.End()
		defer func() { _ = farIn.Close() }()
		for {
			b, err := s.Recv()
			if err != nil {
				return
			}
			_, _ = farIn.Write(b) // once our end is closed, nobody wants it
		}
	}()
	go func() {
		for {
			buf := make([]byte, piece)
			n, err := farOut.Read(buf)
			if n > 0 && s.Send(buf[:n]) != nil {
				_ = farOut.Close()
				return
			}
			if err != nil {
				_ = s.CloseSend()
				return
			}
		}
	}()
	return &Conn{in: in, out: out, to: address(to), close: sync.OnceValue(func() error {
		time.AfterFunc(parting, s.End)
		return errors.Join(out.Close(), in.Close())
	})}
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) { return c.in.Read(p) }

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) { return c.out.Write(p) }

// CloseWrite ends what the other end reads.
func (c *Conn) CloseWrite() error { return c.out.Close() }

// Close implements net.Conn.
func (c *Conn) Close() error { return c.close() }

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return address("sandboxer") }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.to }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.in.SetReadDeadline(t), c.out.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.in.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.out.SetWriteDeadline(t) }
