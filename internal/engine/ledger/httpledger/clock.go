package httpledger

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// minSkew is what two clocks may differ by without being corrected: they are
// compared in whole seconds, and answers take their time.
const minSkew = 10 * time.Second

// maxSkew is how far this machine's clock may be from the server's where
// something is begun: its end is counted by the one and kept by the other.
const maxSkew = 5 * time.Minute

// clock is how far this machine's is ahead of the server's, as told by its
// latest answer, in whole seconds; below zero it is behind.
type clock struct{ ahead atomic.Int64 }

func (c *clock) see(date string, now time.Time) {
	if there, err := http.ParseTime(date); err == nil {
		c.ahead.Store(int64(now.Sub(there).Round(time.Second)))
	}
}

// Ahead implements ledger.Clocked.
func (c *Client) Ahead() time.Duration {
	if off := time.Duration(c.clock.ahead.Load()); off.Abs() > minSkew {
		return off
	}
	return 0
}

// agrees refuses to begin what would end hours too early or too late.
func (c *Client) agrees() error {
	off, how := time.Duration(c.clock.ahead.Load()), "ahead of"
	if off < 0 {
		off, how = -off, "behind"
	}
	if off <= maxSkew {
		return nil
	}
	return oops(extensions.KindInvalid, "this machine's clock is %s %s that of the ledger %s", off.Round(time.Minute), how, c.URL()).
		WithRemedy("set the clock: a sandbox that is made with a wrong one ends at a wrong time")
}
