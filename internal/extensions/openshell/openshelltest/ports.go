package openshelltest

import (
	"context"
	"io"
	"net"
	"strconv"

	"google.golang.org/grpc/codes"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
)

// ForwardTcp implements gateway.OpenShellServer. Sandboxes have the machine's network, and so its loopback.
func (p plane) ForwardTcp(frames gateway.OpenShell_ForwardTcpServer) error {
	first, err := frames.Recv()
	if err != nil {
		return err
	}
	to := first.GetInit().GetTcp()
	if to == nil || to.GetPort() == 0 || to.GetPort() > 65535 || to.GetHost() != "127.0.0.1" {
		return refuse(codes.InvalidArgument, "target %s", to)
	}
	s, err := p.g.the(first.GetInit().GetSandboxId())
	if err != nil {
		return refuse(codes.NotFound, "sandbox not found")
	}
	life, err := s.life()
	if err != nil {
		return err
	}
	c, err := new(net.Dialer).DialContext(frames.Context(), "tcp", net.JoinHostPort(to.GetHost(), strconv.Itoa(int(to.GetPort()))))
	if err != nil {
		return refuse(codes.Unavailable, "relay target refused the connection")
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(life, func() { _ = c.Close() })()
	if err := frames.SendHeader(nil); err != nil {
		return err
	}
	go func() {
		for {
			f, err := frames.Recv()
			if err != nil {
				_ = c.(*net.TCPConn).CloseWrite()
				return
			}
			if _, err := c.Write(f.GetData()); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := c.Read(buf)
		if n > 0 {
			if err := frames.Send(&gateway.TcpForwardFrame{Payload: &gateway.TcpForwardFrame_Data{Data: append([]byte(nil), buf[:n]...)}}); err != nil {
				return err
			}
		}
		switch {
		case err == nil:
		case life.Err() != nil:
			return refuse(codes.Unavailable, "severed")
		case err == io.EOF: //nolint:errorlint // a connection's end is this very value
			return nil
		default:
			return refuse(codes.Unavailable, "%v", err)
		}
	}
}
