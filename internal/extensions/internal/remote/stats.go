package remote

import "sync/atomic"

// Stats counts what reaching a host has cost.
type Stats struct {
	Connections int64 // dialled and logged in so far
	Sessions    int64 // session channels opened so far
	RoundTrips  int64 // execs accepted so far
	Open        int64 // connections open now
}

// counters are Stats being counted.
type counters struct {
	connections, sessions, roundTrips, open atomic.Int64
}

// totals counts for the process.
var totals counters

// Totals is what all hosts have cost this process so far.
func Totals() Stats { return totals.stats() }

func (c *counters) stats() Stats {
	return Stats{
		Connections: c.connections.Load(),
		Sessions:    c.sessions.Load(),
		RoundTrips:  c.roundTrips.Load(),
		Open:        c.open.Load(),
	}
}

func (c *counters) dialled() {
	c.connections.Add(1)
	c.open.Add(1)
	totals.connections.Add(1)
	totals.open.Add(1)
}

func (c *counters) closed() {
	c.open.Add(-1)
	totals.open.Add(-1)
}

func (c *counters) session() {
	c.sessions.Add(1)
	totals.sessions.Add(1)
}

func (c *counters) roundTrip() {
	c.roundTrips.Add(1)
	totals.roundTrips.Add(1)
}
