package remote

import "golang.org/x/crypto/ssh"

// Stats counts what reaching a host has cost.
type Stats struct {
	Connections, Sessions, RoundTrips, Open int64
}

// Stats counts for the host, over all clients that share its connections.
func (c *Client) Stats() Stats {
	n := &c.host.counters
	return Stats{Connections: n.connections.Load(), Sessions: n.sessions.Load(), RoundTrips: n.roundTrips.Load(), Open: n.open.Load()}
}

// HostKey is what the host showed on the live connection, a certificate where it
// has one; nil while there is no connection.
func (c *Client) HostKey() ssh.PublicKey {
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	if len(c.host.conns) == 0 {
		return nil
	}
	return c.host.conns[0].link.hostKey
}
