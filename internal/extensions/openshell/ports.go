package openshell

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
)

// loopback is the only address inside that the gateway forwards to.
const loopback = "127.0.0.1"

// parting is how long the other end may take once ours is closed, so that what was written last arrives.
const parting = 5 * time.Second

// Dial implements extensions.PortForwarder by the gateway's ForwardTcp.
func (b *backend) Dial(ctx context.Context, h extensions.Handle, service string, port int) (net.Conn, error) {
	c, err := b.dial(ctx, h, service, port)
	if err != nil {
		return nil, failed("dial", h.ID, err)
	}
	return c, nil
}

func (b *backend) dial(ctx context.Context, h extensions.Handle, service string, port int) (net.Conn, error) {
	if port < 1 || port > 65535 {
		return nil, extensions.Errorf(extensions.KindInvalid, "%d is not a port", port)
	}
	if err := noService(service); err != nil {
		return nil, err
	}
	i, err := b.inside(ctx, h)
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // of the connection, which outlives its dial
	stop := context.AfterFunc(ctx, end)
	defer stop()
	s, err := b.gateway.ForwardTcp(life)
	if err == nil {
		err = s.Send(&gateway.TcpForwardFrame{Payload: &gateway.TcpForwardFrame_Init{Init: &gateway.TcpForwardInit{SandboxId: i.ref,
			Target: &gateway.TcpForwardInit_Tcp{Tcp: &gateway.TcpRelayTarget{Host: loopback, Port: uint32(port)}}}}}) //nolint:gosec // a port
		if errors.Is(err, io.EOF) {
			err = nil // its reader hears why
		}
	}
	if err == nil {
		err = opened(s)
	}
	if err != nil {
		end()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, unheard(err, port)
	}
	return forward(s, end, port), nil
}

// opened waits for the head of the answer, which the gateway sends once the port inside is connected; an answer without one is a
// refusal.
func opened(s gateway.OpenShell_ForwardTcpClient) error {
	head, err := s.Header()
	if err != nil || head != nil {
		return err
	}
	_, err = s.Recv()
	return err
}

// unheard is the error of a connection that was not made.
func unheard(err error, port int) error {
	switch {
	case extensions.IsKind(err, extensions.KindConflict), errors.Is(err, io.EOF), extensions.IsKind(err, extensions.KindUnavailable):
		return extensions.Errorf(extensions.KindUnavailable, "nothing listens on port %d in the sandbox: %w", port, err)
	}
	return err
}

// forwarded is a connection through the gateway: a pipe for each direction, whose far ends are the stream's.
type forwarded struct {
	in, out net.Conn // our ends
	to      address
	close   func() error
}

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

func forward(s gateway.OpenShell_ForwardTcpClient, end context.CancelFunc, port int) *forwarded {
	in, farIn := net.Pipe()
	out, farOut := net.Pipe()
	f := &forwarded{in: in, out: out, to: address(net.JoinHostPort("sandbox", strconv.Itoa(port)))}
	go func() {
		defer end()
		defer func() { _ = farIn.Close() }()
		for {
			frame, err := s.Recv()
			if err != nil {
				return
			}
			_, _ = farIn.Write(frame.GetData()) // once our end is closed, nobody wants it
		}
	}()
	go func() {
		buf := make([]byte, chunk)
		for {
			n, err := farOut.Read(buf)
			if n > 0 && s.Send(&gateway.TcpForwardFrame{Payload: &gateway.TcpForwardFrame_Data{Data: append([]byte(nil), buf[:n]...)}}) != nil {
				_ = farOut.Close()
				return
			}
			if err != nil {
				_ = s.CloseSend()
				return
			}
		}
	}()
	f.close = sync.OnceValue(func() error {
		time.AfterFunc(parting, end)
		return errors.Join(out.Close(), in.Close())
	})
	return f
}

func (f *forwarded) Read(p []byte) (int, error)  { return f.in.Read(p) }
func (f *forwarded) Write(p []byte) (int, error) { return f.out.Write(p) }

// CloseWrite ends what the port inside reads.
func (f *forwarded) CloseWrite() error { return f.out.Close() }

func (f *forwarded) Close() error         { return f.close() }
func (f *forwarded) LocalAddr() net.Addr  { return address("gateway") }
func (f *forwarded) RemoteAddr() net.Addr { return f.to }

func (f *forwarded) SetDeadline(t time.Time) error {
	return errors.Join(f.in.SetReadDeadline(t), f.out.SetWriteDeadline(t))
}
func (f *forwarded) SetReadDeadline(t time.Time) error  { return f.in.SetReadDeadline(t) }
func (f *forwarded) SetWriteDeadline(t time.Time) error { return f.out.SetWriteDeadline(t) }
