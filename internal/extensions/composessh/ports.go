package composessh

import (
	"context"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/remote"
)

// relayFiles are those of a relay.
var relayFiles = []string{"kill", "toolbox", "frame", "inside", "idle", "relay"}

// directLimit bounds connecting to an address that the host can route to.
const directLimit = 5 * time.Second

// relayTools are tried in this order. All but the last close each direction separately; bash closes both
// together.
const relayTools = "perl python3 nc socat bash"

// Dial implements extensions.PortForwarder. If the host can reach the service's address, its sshd connects;
// otherwise, and for what listens on the service's own loopback, a relay runs in the service's network. The
// connection has deadlines and CloseWrite.
func (b *Backend) Dial(ctx context.Context, h extensions.Handle, service string, port int) (net.Conn, error) {
	c, err := b.dial(ctx, h, service, port, relayTools)
	if err != nil {
		return nil, failed("dial", h.ID, err)
	}
	return c, nil
}

func (b *Backend) dial(ctx context.Context, h extensions.Handle, service string, port int, tools string) (net.Conn, error) {
	if port < 1 || port > 65535 {
		return nil, extensions.Errorf(extensions.KindInvalid, "%d is not a port", port).At("port").WithRemedy("use 1 to 65535")
	}
	call, err := b.enter(ctx, h, service)
	if err != nil {
		return nil, err
	}
	call.script = script(relayFiles...)
	for name, value := range map[string]string{
		"port": strconv.Itoa(port), "mark": execwire.NewNonce(), "direct": "1", "tools": tools, "cancel": "",
	} {
		call.vars[name] = value
	}
	first, r, err := b.relay(ctx, call)
	if err != nil {
		return nil, err
	}
	if len(first.Direct) == 0 {
		return r.conn(first, call, port)
	}
	r.end()
	if c := b.direct(ctx, first.Direct); c != nil {
		return c, nil
	}
	call.vars["direct"] = ""
	if first, r, err = b.relay(ctx, call); err != nil {
		return nil, err
	}
	return r.conn(first, call, port)
}

// direct connects through sshd to the first address that answers.
func (b *Backend) direct(ctx context.Context, addresses []string) net.Conn {
	ctx, cancel := context.WithTimeout(ctx, directLimit)
	defer cancel()
	for _, a := range addresses {
		if c, err := b.client.Dial(ctx, "tcp", a); err == nil {
			return c
		}
	}
	return nil
}

// relay starts the script and waits for its first report.
func (b *Backend) relay(ctx context.Context, call insideCall) (said, *relayed, error) {
	r := newRelayed(b.client, call)
	heard := make(chan said, 1)
	go r.run(remote.Command{Script: call.script, Vars: call.vars}, heard)
	select {
	case first := <-heard:
		if first.Failure != nil {
			r.end()
			return said{}, nil, first.Failure.classify()
		}
		return first, r, nil
	case <-r.ended:
		select {
		case first := <-heard:
			if first.Failure != nil {
				return said{}, nil, first.Failure.classify()
			}
			return first, r, nil
		default:
		}
		r.end()
		if r.err != nil {
			return said{}, nil, r.err
		}
		why := extensions.Clean(strings.TrimSpace(r.noise.String()), 300)
		return said{}, nil, extensions.Errorf(extensions.KindUnavailable, "the relay on the host ended at once: %s",
			why).WithRemedy("try again; check Docker on the host")
	case <-ctx.Done():
		r.end()
		return said{}, nil, ctx.Err()
	}
}

// conn builds the connection of a relay whose first report was first.
func (r *relayed) conn(first said, call insideCall, port int) (net.Conn, error) {
	if first.Connected != "" {
		return newRelayConn(r, net.JoinHostPort(call.vars["service"], strconv.Itoa(port))), nil
	}
	r.end()
	if first.State == "no-tool" {
		return nil, extensions.Errorf(extensions.KindUnsupported, "the host has no program to relay a connection").
			WithRemedy("install one of perl, python3, busybox, ncat, socat or bash on the host, or publish the port")
	}
	return nil, extensions.Errorf(extensions.KindUnavailable, "nothing accepts connections to port %d in the service: %s", port,
		extensions.Clean(first.Refused, 100)).
		WithRemedy("check that the service listens on this port; see its log")
}
