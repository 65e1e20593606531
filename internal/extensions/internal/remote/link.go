package remote

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// link is an authenticated connection with its hops.
type link struct {
	client  *ssh.Client
	hostKey ssh.PublicKey // shown by the host and accepted by the rules
	// close ends the connection and those of its jump hosts. It does not wait for the host, and may be called
	// more than once.
	close func() error
}

// dial connects to the host through its jump hosts and logs in. It checks every host's key before it offers
// anything to that host. The errors are *extensions.Error: KindInvalid for arguments and ssh_config,
// KindUnauthorized for host keys (HostKeyError) and refused logins, KindUnsupported for servers without a
// common algorithm, KindUnreachable for what could not be asked, KindTimeout for ctx's deadline and
// KindInterrupted for its cancellation.
func dial(ctx context.Context, s extensions.SSH, o Options) (*link, error) {
	hops, err := resolve(s, o)
	if err != nil {
		return nil, err
	}
	l, again, err := dialHops(ctx, hops)
	if again { // a cached credential was refused: its authority may have a new one
		l, _, err = dialHops(ctx, hops)
	}
	return l, err
}

func dialHops(ctx context.Context, hops []hop) (l *link, again bool, err error) {
	c := &chain{patience: newPatience(ctx)}
	for i, h := range hops {
		if err := c.extend(h); err != nil {
			c.abandon()
			if i < len(hops)-1 {
				err = viaJump(h, err)
			}
			return nil, c.stale, err
		}
	}
	l, err = c.finish()
	return l, false, err
}

// chain is a connection on its way through the hops.
type chain struct {
	*patience
	clients []*ssh.Client // the jump hosts', then the host's
	via     string        // the last jump host, for messages
	hostKey ssh.PublicKey // the last hop's
	stale   bool          // a credential cached earlier was refused
}

// finish hands the connection over: from here on, ctx does not end it.
func (c *chain) finish() (*link, error) {
	if !c.release() {
		c.abandon()
		return nil, c.failure("the host")
	}
	return &link{client: c.clients[len(c.clients)-1], hostKey: c.hostKey, close: sync.OnceValue(c.closeClients)}, nil
}

// abandon closes everything, from the first hop's socket up: a jump host that no longer answers must not
// delay the end.
func (c *chain) abandon() {
	c.cut()
	_ = c.closeClients()
	c.release()
}

// closeClients returns the error of the host's own connection; the jump hosts' connections end with it.
func (c *chain) closeClients() error {
	var first error
	for i, client := range slices.Backward(c.clients) {
		if err := client.Close(); i == len(c.clients)-1 {
			first = err
		}
	}
	return first
}
