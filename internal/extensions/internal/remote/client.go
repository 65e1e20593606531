package remote

import (
	"context"
	"fmt"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Client is one user's hold on a host. It is safe for concurrent use.
type Client struct {
	host  *host
	name  string // the extensions.Host's, for messages
	ssh   extensions.SSH
	ctx   context.Context // the client's own life
	end   context.CancelCauseFunc
	leave func()
}

// Open prepares a client for the host. It does not dial; the first Run, Call or Dial does. A host without SSH
// is KindInvalid.
func Open(h extensions.Host, o Options) (*Client, error) {
	if h.SSH == nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "host %s has no ssh block", extensions.Clean(h.Name, 80)).
			WithRemedy("add an ssh block to the host")
	}
	c := &Client{name: extensions.Clean(h.Name, 80), ssh: *h.SSH}
	shared, err := join(*h.SSH, c.Destination(), o)
	if err != nil {
		return nil, err
	}
	c.host, c.leave = shared, sync.OnceFunc(shared.leave)
	c.ctx, c.end = context.WithCancelCause(context.Background())
	return c, nil
}

// Close releases the client's hold and cuts off what it still runs. The last client of a host closes its
// connections. A closed client starts nothing. Closing again does nothing.
func (c *Client) Close() error {
	c.end(errClosed)
	c.leave()
	return nil
}

// bound returns ctx, which also ends with the client.
func (c *Client) bound(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(c.ctx, func() { cancel(errClosed) })
	return ctx, func() {
		unhook()
		cancel(nil)
	}
}

// unreached names the host as its owner does in an error that says it was not reached. It comes last, because
// clients with different names may share a connection.
func (c *Client) unreached(err error) error {
	e, ok := err.(*extensions.Error) //nolint:errorlint // only err itself, not what it wraps, may be replaced
	if !ok || e.Kind != extensions.KindUnreachable || c.name == "" {
		return err
	}
	named := *e
	named.Err = fmt.Errorf("host %q: %w", c.name, e.Err)
	return &named
}

// Destination returns what a person passes to ssh(1) to get there: an alias or address as "host", "user@host"
// or "ssh://user@host:port". It omits jump hosts.
func (c *Client) Destination() string { return destination(c.ssh) }
