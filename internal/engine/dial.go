package engine

import (
	"context"
	"io"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Dialer connects to one port inside a sandbox, as often as it is called. The
// connections live until they are closed or the sandbox ends; those that know
// it have CloseWrite, which ends one direction.
type Dialer func(ctx context.Context) (io.ReadWriteCloser, error)

// Forward prepares connections to port of service inside ("" = the service the
// profile names). A port outside 1-65535 is KindInvalid; a place that cannot
// connect is KindUnsupported. Whether somebody listens there is found by each
// connection.
func (e *Engine) Forward(ctx context.Context, rec Receipt, service string, port int) (Dialer, error) {
	if port < 1 || port > 65535 {
		return nil, extensions.Invalid("port %d is not between 1 and 65535", "give the port that the service listens on inside", port)
	}
	b, h, err := e.enter(ctx, rec)
	if err != nil {
		return nil, err
	}
	if err := b.Can(extensions.PowerPorts); err != nil {
		return nil, err
	}
	return func(ctx context.Context) (io.ReadWriteCloser, error) { return b.Dial(ctx, h, service, port) }, nil
}
