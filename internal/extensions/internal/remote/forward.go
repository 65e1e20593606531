package remote

import (
	"context"
	"net"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Dial connects from the host to addr: "host:port" for network tcp, a path for
// unix. The connection has deadlines and CloseWrite. ctx bounds Dial alone.
//
// Errors: KindUnsupported where the host's sshd forbids forwarding,
// KindUnavailable where nothing answers at addr, else Run's.
func (c *Client) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return nil, extensions.Errorf(extensions.KindUnsupported, "not yet")
}
