package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Dial connects from the host to addr: "host:port" for network tcp, a path for unix. The connection has
// deadlines and CloseWrite. ctx bounds only Dial itself.
//
// Errors: KindUnsupported if the host's sshd forbids forwarding, KindUnavailable if nothing answers at addr,
// else Run's.
func (c *Client) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	kind, extra, err := channelOf(network, addr)
	if err != nil {
		return nil, err
	}
	ctx, done := c.bound(ctx)
	defer done()
	h := c.host
	for redialled := false; ; redialled = true {
		via, err := h.acquire(ctx, false, redialled)
		if err != nil {
			return nil, c.unreached(err)
		}
		ch, err := via.channel(ctx, kind, extra)
		if err == nil {
			return newForwarded(ch, network, addr, func() { h.release(via, false) }), nil
		}
		h.release(via, false)
		if errors.Is(err, errDead) && !redialled && ctx.Err() == nil {
			continue
		}
		return nil, h.forwardError(ctx, network, addr, err)
	}
}

// channelOf returns the kind of channel that leads to addr, and its message.
func channelOf(network, addr string) (kind string, extra []byte, err error) {
	switch network {
	case "unix":
		return "direct-streamlocal@openssh.com", ssh.Marshal(struct {
			Path, Reserved0 string
			Reserved1       uint32
		}{Path: addr}), nil
	case "tcp":
		name, port, err := net.SplitHostPort(addr)
		number, bad := strconv.ParseUint(port, 10, 16)
		if err != nil || bad != nil || number == 0 {
			return "", nil, extensions.Errorf(extensions.KindInvalid, "%q is not a host:port to connect to", addr)
		}
		return "direct-tcpip", ssh.Marshal(struct {
			Host   string
			Port   uint32
			Origin string
			From   uint32
		}{name, uint32(number), "127.0.0.1", 0}), nil
	}
	return "", nil, extensions.Errorf(extensions.KindInvalid, "SSH has no connections of the network %q", network)
}

// channel opens a channel that is not a session.
func (c *conn) channel(ctx context.Context, kind string, extra []byte) (ssh.Channel, error) {
	var ch ssh.Channel
	err := c.await(ctx, "a connection", func() error {
		opened, requests, err := c.link.client.OpenChannel(kind, extra)
		if err != nil {
			return err
		}
		ch = opened
		go ssh.DiscardRequests(requests)
		return nil
	}, func() { _ = ch.Close() })
	if err != nil {
		return nil, err
	}
	return ch, nil
}

func (h *host) forwardError(ctx context.Context, network, addr string, err error) error {
	var no *ssh.OpenChannelError
	if !errors.As(err, &no) {
		return h.openError(ctx, err)
	}
	what := fmt.Sprintf("%s does not connect to %s (%s)", h.name, extensions.Clean(addr, 200), extensions.Clean(no.Message, 200))
	switch {
	case no.Reason == ssh.Prohibited || no.Reason == ssh.UnknownChannelType:
		return extensions.Errorf(extensions.KindUnsupported, "%s: its sshd forbids it", what).WithRemedy("%s", forwardRemedy(network))
	case network == "unix": // sshd does not distinguish the two
		return extensions.Errorf(extensions.KindUnavailable, "%s: nothing listens there, or its sshd forbids it", what).WithRemedy("%s",
			forwardRemedy(network))
	}
	return extensions.Errorf(extensions.KindUnavailable, "%s: nothing answers there", what)
}

func forwardRemedy(network string) string {
	option := "AllowTcpForwarding"
	if network == "unix" {
		option = "AllowStreamLocalForwarding"
	}
	return "set " + option + " to yes or local in the host's sshd_config, and let the key forward (no restrict, no-port-forwarding or " +
		"permitopen)"
}

// address is the far end of a forwarded connection, as the caller named it.
type address struct{ network, addr string }

func (a address) Network() string { return a.network }
func (a address) String() string  { return a.addr }

// forwarded is a connection through a channel.
type forwarded struct {
	ch      ssh.Channel
	remote  address
	release func() // once

	pieces    chan []byte // read ahead; closed at the end
	rest      []byte      // the rest of a piece; guarded by reading
	reading   sync.Mutex
	writing   sync.Mutex
	read      deadline
	write     deadline
	closed    chan struct{}
	closeOnce sync.Once
}
