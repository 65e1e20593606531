package remote

import (
	"context"
	"fmt"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Client is one user's hold on a host. Its methods may be called from several
// goroutines.
type Client struct {
	host  *host
	name  string // of the extensions.Host, for messages
	ssh   extensions.SSH
	ctx   context.Context // the client's own life
	end   context.CancelCauseFunc
	leave func()
}

// Open prepares a client for the host. It does not dial: the first Run, Call or
// Dial does. A host without SSH is KindInvalid.
func Open(h extensions.Host, o Options) (*Client, error) {
	if h.SSH == nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "host %s has no ssh block", extensions.Clean(h.Name, 80)).
			WithRemedy("say in the host's ssh block how it is reached")
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

// Close gives up the client's hold: what it still runs is cut off, and with the
// last client of a host its connections end. A closed client starts nothing.
// Closing again does nothing.
func (c *Client) Close() error {
	c.end(errClosed)
	c.leave()
	return nil
}

// bound is ctx, ended also with the client.
func (c *Client) bound(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(c.ctx, func() { cancel(errClosed) })
	return ctx, func() {
		unhook()
		cancel(nil)
	}
}

// unreached names the host as its owner knows it in an error that says it was not
// reached. Clients of several names may share the connection, so it is done last.
func (c *Client) unreached(err error) error {
	e, ok := err.(*extensions.Error) //nolint:errorlint // only err itself, not what it wraps, may be replaced
	if !ok || e.Kind != extensions.KindUnreachable || c.name == "" {
		return err
	}
	named := *e
	named.Err = fmt.Errorf("host %q: %w", c.name, e.Err)
	return &named
}

// Destination is what a person gives to ssh(1) to get there: an alias or
// address as "host", "user@host" or "ssh://user@host:port". Jump hosts are not in it.
func (c *Client) Destination() string { return destination(c.ssh) }
