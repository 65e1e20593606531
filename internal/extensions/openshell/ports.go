package openshell

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/grpcline"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
)

// loopback is the only address inside that the gateway forwards to.
const loopback = "127.0.0.1"

// Dial implements extensions.PortForwarder by the gateway's ForwardTcp.
func (b *backend) Dial(ctx context.Context, h extensions.Handle, service string, port int) (net.Conn, error) {
	c, err := b.connect(ctx, h, service, port)
	if err != nil {
		return nil, extensions.Failed("dial", h.ID, err, nil)
	}
	return c, nil
}

func (b *backend) connect(ctx context.Context, h extensions.Handle, service string, port int) (net.Conn, error) {
	if port < 1 || port > 65535 {
		return nil, extensions.Errorf(extensions.KindInvalid, "%d is not a port", port)
	}
	if service != "" {
		return nil, extensions.Errorf(extensions.KindUnsupported, "a sandbox of %s has no services, so %q does not exist", vendor,
			extensions.Clean(service, 80)).At("service")
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
			Target: &gateway.TcpForwardInit_Tcp{Tcp: &gateway.TcpRelayTarget{Host: loopback, Port: uint32(port)}}}}})
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
	return grpcline.Forward(grpcline.Bytes{CloseSend: s.CloseSend, End: end,
		Recv: func() ([]byte, error) {
			f, err := s.Recv()
			return f.GetData(), err
		},
		Send: func(b []byte) error {
			return s.Send(&gateway.TcpForwardFrame{Payload: &gateway.TcpForwardFrame_Data{Data: b}})
		}}, net.JoinHostPort("sandbox", strconv.Itoa(port))), nil
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
