package remote

import "sync/atomic"

// counters count the cost of reaching a host: logins, session channels, accepted execs, and the connections
// open now.
type counters struct {
	connections, sessions, roundTrips, open atomic.Int64
}

func (c *counters) dialed() {
	c.connections.Add(1)
	c.open.Add(1)
}

func (c *counters) closed() { c.open.Add(-1) }

func (c *counters) session() { c.sessions.Add(1) }

func (c *counters) roundTrip() { c.roundTrips.Add(1) }
