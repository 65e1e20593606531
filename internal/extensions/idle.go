package extensions

import (
	"slices"
	"time"
)

// IdleReap names the mechanism that ends an unsupervised sandbox after it was idle for
// Spec.IdleReap.
type IdleReap string

const (
	IdleReapNone   IdleReap = "none"   // nobody: a spec that asks for it is refused
	IdleReapHost   IdleReap = "host"   // a process on the host, as at the deadline
	IdleReapNative IdleReap = "native" // the backend itself
)

// IdleReaps lists every value, weakest first.
var IdleReaps = []IdleReap{IdleReapNone, IdleReapHost, IdleReapNative}

// MinIdleReap is the shortest Spec.IdleReap of a profile. A place looks now and then, and whoever has just made a
// sandbox needs a moment to use it.
const MinIdleReap = time.Minute

// idleShare is the floor of CPU use: 1/100 of one core. A runtime with an empty event loop, a database without
// queries and a shell that wakes once a second use less; whatever computes uses more.
const idleShare = 100

// IdleCPU is the CPU time that a sandbox may use within so long an idle time and still be idle.
func IdleCPU(idle time.Duration) time.Duration { return idle / idleShare }

// CheckIdleReap refuses, with KindUnsupported, an end by idleness at a place where nobody enforces one.
func (c Capabilities) CheckIdleReap(after Duration) error {
	if after == 0 || c.IdleReap != IdleReapNone && slices.Contains(IdleReaps, c.IdleReap) {
		return nil
	}
	return Errorf(KindUnsupported, "nobody ends an idle sandbox at the place").At("ttl.idle_reap").
		WithRemedy("remove ttl.idle_reap and set a shorter ttl, or choose another extension")
}
